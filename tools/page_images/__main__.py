"""Makes the pictures of the report page in docs/images: builds programs with bugs, finds their
failures, opens the pages in a headless Chromium and keeps what it shows.

Needs a C++ compiler and Debian's chromium and chromium-driver.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path(__file__).parent
IMAGES = ROOT / "docs" / "images"
QUALITY = 82  # of the pictures
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run")
TESTS = ("queue_test.cpp", "flags_test.cpp", "stack_test.cpp")
FAILURES = Path(".pulsar_ml") / "failures"
FIND_WRONG_ANSWERS = """
from pathlib import Path
from pulsar_ml.harness import operations
from pulsar_ml.harness.search.interleave import interleave
from pulsar_ml.harness.testing.records import keep_failure
inbox = operations("inbox.hpp", "Inbox", put="void put(long)", get="long get()",
                   model="inbox.py:InOrder", into=".pulsar_ml/build")
failure = interleave(inbox, threads=2, operations=3, executions=4000).failure
print(keep_failure(failure, Path()))
"""


@dataclass(frozen=True)
class Picture:
    """One picture: its page, the size of the window, and what is done before it is taken.

    Attributes:
        name: the name of the picture.
        page: the start of the page's name.
        width, height: the window, in pixels of the page.
        scheme: light or dark.
        before: a script that runs first.
    """

    name: str
    page: str
    width: int
    height: int
    scheme: str = "light"
    before: str = ""


FOCUS = "document.querySelector('.step.{}').focus({{ focusVisible: true }});"
FOLD = "document.querySelector('.block').click();"
SLIDE = (
    "const slider = document.querySelector('.inevitability input'); slider.value = 2;"
    "slider.dispatchEvent(new Event('input'));"
)
PICTURES = (
    Picture("page-race", "test_queue-", 1240, 1160, before=FOCUS.format("second")),
    Picture("page-stale-read", "test_flags-", 1240, 1060, "dark", FOCUS.format("stale")),
    Picture("page-free", "test_stack-", 1240, 1080, before=FOLD),
    Picture("page-wrong-answers", "Inbox-", 1240, 1520, before=SLIDE),
    Picture("page-phone", "test_queue-", 390, 1100, "dark"),
)


def run(*words: str, folder: Path) -> None:
    """Run a command in the folder of the examples; failures are what it is for."""
    found = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**found, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(words[:4])} ended with {done.returncode}:\n{done.stderr}")


def make_pages(folder: Path) -> None:
    """Find the failures of all examples, and make a page of each."""
    for source in SOURCES.glob("*.*"):
        if source.name not in ("__init__.py", "__main__.py"):
            shutil.copy(source, folder)
    run("-m", "pulsar_ml", "check", *TESTS, folder=folder)
    run("-c", FIND_WRONG_ANSWERS, folder=folder)
    (race,) = (folder / FAILURES).glob("test_queue-*.json")
    run("-m", "pulsar_ml", "explain", str(race.relative_to(folder)), "--trust", folder=folder)
    for record in sorted((folder / FAILURES).glob("*.json")):
        name = str(record.relative_to(folder))
        run("-m", "pulsar_ml", "report", name, "--trust", folder=folder)


def browser(folder: Path) -> Chrome:
    options = ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for flag in (*FLAGS, f"--user-data-dir={folder / 'browser'}"):
        options.add_argument(flag)
    return Chrome(options, Service(shutil.which("chromedriver")))


def take(chrome: Chrome, picture: Picture, folder: Path) -> Path:
    (page,) = (folder / FAILURES).glob(f"{picture.page}*.html")
    window: dict[str, Any] = {
        "width": picture.width,
        "height": picture.height,
        "deviceScaleFactor": 1,
        "mobile": False,
    }
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", window)
    scheme = {"name": "prefers-color-scheme", "value": picture.scheme}
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    chrome.get("about:blank")
    chrome.get(page.as_uri())
    drawn = "return document.querySelectorAll('.arrows .arrow').length > 0"
    WebDriverWait(chrome, 60).until(lambda _: chrome.execute_script(drawn))
    chrome.execute_script(picture.before)
    settled = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))"
    chrome.execute_async_script(settled)
    shot = chrome.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    path = IMAGES / f"{picture.name}.webp"
    path.write_bytes(base64.b64decode(shot["data"]))
    return path


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "example"
        folder.mkdir()
        make_pages(folder)
        chrome = browser(Path(temporary))
        try:
            for picture in PICTURES:
                path = take(chrome, picture, folder)
                print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1e3:.0f} kB")
        finally:
            chrome.quit()


if __name__ == "__main__":
    main()
