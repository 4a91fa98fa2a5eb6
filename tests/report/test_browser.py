"""The page in a headless browser without a network: keyboard, dark mode, print, hostile texts.

These tests run where Debian's chromium and its driver are installed, see tests/conftest.py.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from benchmarks.report import write_run as write_large_run
from pulsar_ml.cli import main
from tests.report.conftest import console, media
from tests.report.kit import (
    HOSTILE,
    failure_of,
    module_path,
    of_failure,
    row,
    violation,
    write_run,
)

pytestmark = pytest.mark.xdist_group("browser")


def shown(browser: Chrome, run: Path, *options: str) -> None:
    """The report of ``run`` in the browser; its console must stay empty."""
    page = run / "report.html"
    CliRunner().invoke(main, ["report", str(run), "-o", str(page), *options])
    browser.set_window_size(1200, 900)
    browser.get("about:blank")
    browser.get(page.as_uri())
    assert console(browser) == []


def test_the_kill_table_of_the_product_fits_in_the_light_and_in_the_dark(
    browser: Chrome, tmp_path: Path
) -> None:
    run = write_run(tmp_path / "run", [row(0)])
    quoted = HOSTILE.replace("\x00", "").replace('"', '""')
    head = "case,technique,source,seeds,found,spent,first,seconds,verdicts,size\n"
    cells = f'H01,c11,0,20,20,9,8,0,"{quoted}",\n'
    (run / "kill_table.csv").write_text(head + cells + "M03,c11,0,20,0,9,,,,\n", encoding="utf-8")
    for scheme in ("light", "dark"):
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
        )
        shown(browser, run)
        section = browser.find_element(By.CSS_SELECTOR, "section[aria-labelledby=cells]")
        rows = section.find_elements(By.CSS_SELECTOR, "tbody tr")
        assert [one.text.split()[:2] for one in rows] == [["H01", "20/20"], ["M03", "0/20"]]
        assert rows[1].find_element(By.CSS_SELECTOR, ".wrong").text == "not found"
        assert "taken" not in browser.title
        assert section.find_elements(By.TAG_NAME, "img") == []
        assert browser.execute_script(
            "return document.documentElement.scrollWidth <= window.innerWidth"
        )
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def groups(browser: Chrome) -> list[WebElement]:
    return browser.find_elements(By.CSS_SELECTOR, "details.group")


def pressed(button: WebElement) -> None:
    """By the key: groups get their heights when they are scrolled to, and a click would miss."""
    button.send_keys(Keys.ENTER)


def opened(browser: Chrome, summary: WebElement, selector: str) -> WebElement:
    """Opens a summary and waits for its contents, which appear a moment later."""
    pressed(summary)
    group = summary.find_element(By.XPATH, "./..")
    WebDriverWait(browser, 20).until(lambda _: group.find_elements(By.CSS_SELECTOR, selector))
    return group.find_element(By.CSS_SELECTOR, selector)


def focused(browser: Chrome) -> str:
    script = (
        "const e = document.activeElement; "
        "return e.id || e.className || e.tagName + ' ' + e.textContent"
    )
    return str(browser.execute_script(script))


@pytest.fixture
def failing(tmp_path: Path) -> Path:
    rows = [
        row(seed, found=[of_failure(failure_of(name))])
        for seed, name in enumerate(("race_met", "seqlock_fences"))
    ]
    return write_run(tmp_path / "run", rows)


def test_groups_open_and_draw_their_interleaving(browser: Chrome, failing: Path) -> None:
    shown(browser, failing, "--module", module_path())
    first, second = groups(browser)
    assert not browser.find_elements(By.CSS_SELECTOR, ".lanes"), (
        "nothing is drawn before it is asked for"
    )
    drawing = opened(browser, first.find_element(By.TAG_NAME, "summary"), ".lanes")
    assert drawing.is_displayed() and drawing.size["height"] > 100
    assert len(first.find_elements(By.CSS_SELECTOR, ".step.first, .step.second")) == 2
    assert first.find_elements(By.CSS_SELECTOR, ".arrows .arrow.missing")
    assert not second.find_elements(By.CSS_SELECTOR, ".body")


def test_the_page_works_from_the_keyboard(browser: Chrome, failing: Path) -> None:
    shown(browser, failing)
    keys = browser.switch_to
    keys.active_element.send_keys(Keys.TAB)
    assert focused(browser) == "skip"
    assert browser.find_element(By.CLASS_NAME, "skip").location["x"] >= 0, (
        "it is seen when it has the focus"
    )
    keys.active_element.send_keys(Keys.ENTER)
    keys.active_element.send_keys(Keys.TAB)
    assert focused(browser) == "filter"
    keys.active_element.send_keys(Keys.TAB)
    assert focused(browser) == "open-all"
    keys.active_element.send_keys(Keys.TAB)
    assert focused(browser).startswith("SUMMARY Threads 0 and 1 race on")
    outline = browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    keys.active_element.send_keys(Keys.ENTER)
    WebDriverWait(browser, 20).until(
        lambda _: groups(browser)[0].find_elements(By.CSS_SELECTOR, ".command button")
    )
    keys.active_element.send_keys(Keys.TAB)
    assert focused(browser) == "anchor"
    keys.active_element.send_keys(Keys.TAB)
    assert focused(browser) == "BUTTON Copy"
    keys.active_element.send_keys(Keys.ENTER)
    browser.set_script_timeout(10)
    status = browser.execute_async_script(
        "const done = arguments[0], at = document.getElementById('shown');"
        "const look = () => at.textContent.includes('command')"
        "? done(at.textContent) : setTimeout(look, 20);"
        "look()"
    )
    assert status in ("The command was copied.", "The command is selected.")


def test_the_list_can_be_searched(browser: Chrome, failing: Path) -> None:
    shown(browser, failing)
    browser.find_element(By.ID, "filter").send_keys("data race")
    assert len(groups(browser)) == 1
    browser.find_element(By.ID, "filter").send_keys(" of nothing")
    assert groups(browser) == []
    assert browser.find_element(By.ID, "shown").text == "0 signatures shown"


def test_hostile_texts_are_texts(browser: Chrome, tmp_path: Path) -> None:
    found = [violation(HOSTILE, HOSTILE), violation("I1", HOSTILE + " again")]
    run = write_run(
        tmp_path / "run", [row(0, found=found, suite=HOSTILE, host=HOSTILE)], run_id=HOSTILE
    )
    shown(browser, run)
    pressed(browser.find_element(By.ID, "open-all"))
    for one in groups(browser):
        assert opened(
            browser, one.find_element(By.XPATH, ".//summary[starts-with(., 'Seeds')]"), "tbody td"
        )
    assert console(browser) == []
    assert not browser.find_elements(By.CSS_SELECTOR, "img")
    assert browser.title.startswith("Violations: run </script><img")
    assert HOSTILE.split("\x00")[0] in groups(browser)[0].text


def test_the_page_s_own_policy_stops_foreign_scripts(browser: Chrome, failing: Path) -> None:
    shown(browser, failing)
    browser.execute_script(
        "const s = document.createElement('script'); s.textContent = 'document.title = 1';"
        "document.body.append(s);"
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=1>')"
    )
    messages = " ".join(line["message"] for line in console(browser))
    assert "Content Security Policy" in messages
    assert browser.title != "1"


@pytest.mark.parametrize(("theme", "dark"), [("light", False), ("dark", True)])
def test_colours_follow_the_theme(browser: Chrome, failing: Path, theme: str, dark: bool) -> None:
    shown(browser, failing)
    media(browser, [{"name": "prefers-color-scheme", "value": theme}])
    colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in colour.strip("rgb()").split(","))
    assert (brightness < 200) == dark
    media(browser, [])


def test_a_narrow_screen_scrolls_only_inside_of_tables_and_drawings(
    browser: Chrome, failing: Path
) -> None:
    shown(browser, failing, "--module", module_path())
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": False},
    )
    pressed(browser.find_element(By.ID, "open-all"))
    wide, window = browser.execute_script(
        "return [document.documentElement.scrollWidth, innerWidth]"
    )
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert window == 360
    assert wide <= window


def test_paper_holds_what_is_collapsed(browser: Chrome, failing: Path) -> None:
    shown(browser, failing, "--module", module_path())
    printed: dict[str, Any] = browser.execute_cdp_cmd("Page.printToPDF", {})
    assert base64.b64decode(printed["data"]).startswith(b"%PDF")
    assert len(browser.find_elements(By.CSS_SELECTOR, ".lanes")) == 2, (
        "printing opens what is shown"
    )


def test_ten_thousand_violations_do_not_freeze_the_page(browser: Chrome, tmp_path: Path) -> None:
    """Hidden groups have no elements, so the number of elements is small."""
    write_large_run(tmp_path / "run", 10_000)
    shown(browser, tmp_path / "run")
    count = "return document.getElementsByTagName('*').length"
    assert browser.execute_script(count) < 2_000
    assert browser.find_element(By.ID, "shown").text == "100 signatures of 10,000 shown"
    pressed(browser.find_element(By.ID, "more"))
    WebDriverWait(browser, 20).until(lambda _: len(groups(browser)) == 200)
    browser.find_element(By.ID, "filter").send_keys("9999")

    def filtered(_: Chrome) -> list[WebElement]:
        return [group for group in groups(browser) if "seed 9999 " in group.text]

    (one,) = WebDriverWait(browser, 20).until(filtered)
    assert (
        "the count is 9999 behind"
        in opened(browser, one.find_element(By.TAG_NAME, "summary"), ".message").text
    )
    assert browser.execute_script(count) < 4_000
