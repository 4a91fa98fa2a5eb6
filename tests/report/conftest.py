"""A headless browser without a network, for tests of pages; Debian's chromium and its driver."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars",
)  # fmt: skip


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    options = ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = Chrome(options, Service(shutil.which("chromedriver")))
    try:
        yield chrome
    finally:
        chrome.quit()


def console(browser: Chrome) -> list[dict[str, Any]]:
    """The messages on the browser's console since the last call."""
    messages: list[dict[str, Any]] = browser.get_log("browser")  # type: ignore[no-untyped-call]
    return messages


def media(browser: Chrome, features: list[dict[str, str]]) -> None:
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
