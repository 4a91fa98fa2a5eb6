"""The page about a history in a headless browser: keyboard, find, dark mode, many operations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from pulsar_ml.harness.histories.history import Operation, history_of
from pulsar_ml.harness.linearize import check
from pulsar_ml.harness.models import Register
from pulsar_ml.report.history_page import history_page
from tests.report.conftest import console, media
from tests.report.kit import HOSTILE

pytestmark = pytest.mark.xdist_group("browser")

STALE = [
    Operation("writer", "write", (1,), None, 0, 3),
    Operation("reader", "read", (), 1, 1, 4),
    Operation("reader", "read", (), None, 5, 6),
    Operation(HOSTILE, "write", (HOSTILE,), None, 7, None, crashed=True),
]
INK = """
const canvas = document.getElementById("drawing");
const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
let sum = 0, drawn = 0;
for (let at = 0; at < pixels.length; at += 4)
  if (pixels[at + 3]) { drawn++; sum += pixels[at] + pixels[at + 1] + pixels[at + 2]; }
return [drawn, sum / Math.max(1, drawn)];
"""


def opened(browser: Chrome, tmp_path: Path, operations: Sequence[Operation]) -> WebElement:
    """The drawing on the page about these operations of a register."""
    history, model = history_of(operations), Register(None)
    page = tmp_path / "page.html"
    page.write_text(history_page(history, check(history, model), model, name="history"))
    browser.set_window_size(1200, 900)
    browser.get("about:blank")
    browser.get(page.as_uri())
    assert complaints(browser) == []
    WebDriverWait(browser, 20).until(lambda _: ink(browser)[0] > 0)
    return browser.find_element(By.ID, "drawing")


def complaints(browser: Chrome) -> list[str]:
    """Messages on the console, without those about the test's own look at pixels."""
    messages = [str(line["message"]) for line in console(browser)]
    return [message for message in messages if "getImageData" not in message]


def ink(browser: Chrome) -> tuple[int, float]:
    """How many pixels are drawn, and their mean brightness."""
    drawn, brightness = browser.execute_script(INK)
    return int(drawn), float(brightness)


def text_of(browser: Chrome, name: str) -> str:
    return browser.find_element(By.ID, name).text


def test_the_keyboard_goes_through_operations_and_steps(browser: Chrome, tmp_path: Path) -> None:
    drawing = opened(browser, tmp_path, STALE)
    assert "read() -> None" in text_of(browser, "fact"), "the blocked operation is selected"
    assert "nothing leads to it; part of the core" in text_of(browser, "fact")
    assert text_of(browser, "state") == "2 of 2; then the state is 1"
    drawing.send_keys(Keys.ARROW_LEFT)
    assert "read() -> 1" in text_of(browser, "fact")
    drawing.send_keys(Keys.ARROW_UP)
    assert "thread writer: write(1)" in text_of(browser, "fact")
    drawing.send_keys("[")
    drawing.send_keys("[")
    assert text_of(browser, "state") == "0 of 2; then the state is None"
    drawing.send_keys("]")
    assert text_of(browser, "state").startswith("1 of 2")


def test_a_click_selects_and_the_core_stands_alone(browser: Chrome, tmp_path: Path) -> None:
    opened(browser, tmp_path, STALE)
    browser.find_element(By.ID, "core").click()
    assert text_of(browser, "shown") == "2 operations"
    browser.find_element(By.ID, "core").click()
    assert text_of(browser, "shown") == "4 operations"
    before = ink(browser)[0]
    browser.find_element(By.ID, "closer").click()
    WebDriverWait(browser, 20).until(lambda _: ink(browser)[0] != before)


def test_texts_are_found_and_are_no_markup(browser: Chrome, tmp_path: Path) -> None:
    opened(browser, tmp_path, STALE)
    find = browser.find_element(By.ID, "filter")
    find.send_keys("write(1)")
    assert text_of(browser, "shown") == "1 operation found of 4"
    assert "write(1)" in text_of(browser, "fact")
    find.clear()
    find.send_keys("-> ?")
    assert HOSTILE[:12] in text_of(browser, "fact")
    assert complaints(browser) == []
    assert not browser.find_elements(By.CSS_SELECTOR, "img")


def test_the_drawing_follows_the_theme_and_a_narrow_screen(browser: Chrome, tmp_path: Path) -> None:
    opened(browser, tmp_path, STALE)
    light = ink(browser)[1]
    media(browser, [{"name": "prefers-color-scheme", "value": "dark"}])
    WebDriverWait(browser, 20).until(lambda _: ink(browser)[1] != light)
    assert ink(browser)[1] < light
    media(browser, [])
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": False},
    )
    wide, window = browser.execute_script(
        "return [document.documentElement.scrollWidth, innerWidth]"
    )
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert window == 360
    assert wide <= window


def test_ten_thousand_operations_are_a_few_elements(browser: Chrome, tmp_path: Path) -> None:
    rows = [
        Operation(at % 8, "write", (at,), None, 3 * at, 3 * at + 20) for at in range(0, 10_000, 2)
    ]
    rows += [
        Operation(8, "read", (), 2 * (at // 2), 3 * at + 40, 3 * at + 41) for at in range(5_000)
    ]
    drawing = opened(browser, tmp_path, rows)
    assert browser.execute_script("return document.getElementsByTagName('*').length") < 200
    find = browser.find_element(By.ID, "filter")
    find.send_keys("write(8888)")
    assert text_of(browser, "shown") == "1 operation found of 10,000"
    for _ in range(5):
        drawing.send_keys("+")
    drawing.send_keys(Keys.ARROW_RIGHT)
    assert "write(8888)" in text_of(browser, "fact")
