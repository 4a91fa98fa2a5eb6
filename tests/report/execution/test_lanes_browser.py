"""The drawn interleaving in a headless browser: folding, keyboard, source, slider, links, paper."""

from __future__ import annotations

from datetime import UTC, datetime
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
from pulsar_ml.report.history_page import data_of, drawn_operations, order_of
from pulsar_ml.report.page import render
from pulsar_ml.report.single import gather_failures
from pulsar_ml.report.traces import Drawn, TraceView
from tests.report.conftest import console, media
from tests.report.kit import failure_of, module_path
from tests.report.reading import report

pytestmark = pytest.mark.xdist_group("browser")

PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False}
INSIDE = """
const pane = arguments[0].getBoundingClientRect();
return [...arguments[0].querySelectorAll(".step:not([hidden])")].every((step) => {
  const box = step.getBoundingClientRect();
  return box.left >= pane.left && box.width > 100 && step.scrollWidth <= step.clientWidth + 1;
});
"""
# Arrows keep to the gutters: the middle of each long piece touches no text of a step.
CROSSED = """
const texts = [...document.querySelectorAll(".step:not([hidden]) .text")].map(
  (text) => text.getBoundingClientRect());
const origin = document.querySelector(".arrows").getBoundingClientRect();
let crossed = 0;
for (const path of document.querySelectorAll(".arrow:not(.sees)")) {
  const length = path.getTotalLength();
  for (let at = 12; at < length - 12; at += 3) {
    const point = path.getPointAtLength(at), x = point.x + origin.left, y = point.y + origin.top;
    crossed += texts.some((box) =>
      x > box.left + 2 && x < box.right - 2 && y > box.top + 4 && y < box.bottom - 4);
  }
}
return crossed;
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages of single failures, by the names of their programs."""
    folder = tmp_path_factory.mktemp("pages")
    for name in ("message_relaxed", "race_after"):
        record = folder / f"{name}.json"
        record.write_text(failure_of(name).to_json())
        assert report(record, "--module", module_path()).exit_code == 1
    return folder


def page(browser: Chrome, path: Path, fragment: str = "") -> WebElement:
    """The open signature of a page; the browser's console stays empty."""
    browser.set_window_size(1200, 900)
    browser.get("about:blank")
    browser.get(path.as_uri() + fragment)
    WebDriverWait(browser, 20).until(
        lambda _: browser.find_elements(By.CSS_SELECTOR, ".group[open] .body")
    )
    assert console(browser) == []
    return browser.find_element(By.CSS_SELECTOR, ".group[open] .body")


def steps(body: WebElement) -> list[WebElement]:
    found = body.find_elements(By.CSS_SELECTOR, ".step")
    return [step for step in found if step.is_displayed()]


def fact(body: WebElement) -> str:
    return body.find_element(By.CSS_SELECTOR, ".pointed .fact").text


def test_the_page_of_one_failure_begins_with_its_sentence(browser: Chrome, pages: Path) -> None:
    body = page(browser, pages / "race_after.html")
    assert browser.find_element(By.TAG_NAME, "h1").text == (
        "Threads 0 and 1 race on one memory location: "
        "store relaxed at races.h:15 and load relaxed at races.h:16"
    )
    (label,) = body.find_elements(By.CSS_SELECTOR, ".lacking")
    assert label.text.startswith("✗ no synchronisation: store relaxed at races.h:15")
    assert len(body.find_elements(By.CSS_SELECTOR, ".arrow.missing")) == 1
    assert len(body.find_elements(By.CSS_SELECTOR, ".source .line.fatal")) == 2
    assert browser.execute_script(CROSSED) == 0, "no arrow runs through a text"


def test_focus_says_where_a_read_came_from_and_enter_goes_there(
    browser: Chrome, pages: Path
) -> None:
    body = page(browser, pages / "message_relaxed.html")
    (stale,) = body.find_elements(By.CSS_SELECTOR, ".step.stale")
    before = fact(body)
    browser.execute_script("arguments[0].focus()", stale)
    said = fact(body)
    assert said != before and "(1 store old)" in said
    (line,) = body.find_elements(By.CSS_SELECTOR, ".source .line.active")
    number = line.find_element(By.CLASS_NAME, "number").text
    assert number == stale.text.rpartition(":")[2]
    stale.send_keys(Keys.ARROW_UP)
    reader = browser.switch_to.active_element
    assert "the value was stored by thread 0" in fact(body)
    reader.send_keys(Keys.ENTER)
    writer = browser.switch_to.active_element
    assert "<- 1 relaxed" in writer.text and writer != reader
    writer.send_keys(Keys.ARROW_RIGHT)
    assert "Thread 1" in fact(body)


def test_operations_fold_and_arrows_follow(browser: Chrome, pages: Path) -> None:
    body = page(browser, pages / "message_relaxed.html")
    count = len(steps(body))
    head = body.find_element(By.CSS_SELECTOR, ".block")
    arrow = "return document.querySelector('.arrow.missing').getAttribute('d')"
    drawn = browser.execute_script(arrow)
    head.click()
    assert head.get_attribute("aria-expanded") == "false"
    assert len(steps(body)) < count
    assert browser.execute_script(arrow) != drawn
    head.send_keys(Keys.ENTER)
    assert len(steps(body)) == count
    everything = body.find_element(By.CSS_SELECTOR, ".pointed button")
    everything.click()
    assert (steps(body), everything.text) == ([], "Unfold all")
    everything.click()
    assert len(steps(body)) == count


def test_the_slider_shows_what_the_continuations_keep(browser: Chrome, pages: Path) -> None:
    body = page(browser, pages / "message_relaxed.html")
    slider = body.find_element(By.CSS_SELECTOR, "input[type=range]")
    said = body.find_element(By.CSS_SELECTOR, ".inevitability output")
    assert said.text == "All steps are kept: this is the execution that failed."
    assert not body.find_elements(By.CSS_SELECTOR, ".step.anew")
    slider.send_keys(Keys.HOME)
    assert "continuations fail when the first" in said.text
    assert said.text == slider.get_attribute("aria-valuetext")
    assert body.find_elements(By.CSS_SELECTOR, ".step.anew")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_both_threads_without_scrolling_sideways(
    browser: Chrome, pages: Path, scheme: str
) -> None:
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    media(browser, [{"name": "prefers-color-scheme", "value": scheme}])
    try:
        body = page(browser, pages / "race_after.html")
        wide = "return [document.documentElement.scrollWidth, innerWidth]"
        assert browser.execute_script(wide) == [390, 390]
        lanes = body.find_element(By.CSS_SELECTOR, ".lanes")
        assert browser.execute_script(INSIDE, lanes)
        assert browser.execute_script("return arguments[0].scrollWidth <= 390", lanes)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        media(browser, [])


def test_a_link_opens_its_signature_wherever_it_is(browser: Chrome, pages: Path) -> None:
    report(pages, "--module", module_path(), "-o", str(pages / "all.html"))
    browser.get((pages / "all.html").as_uri())
    links = browser.find_elements(By.CSS_SELECTOR, ".group .anchor")
    assert len(links) == 2
    name = str(links[1].get_attribute("href")).rpartition("#")[2]
    page(browser, pages / "all.html", f"#{name}")
    (opened,) = browser.find_elements(By.CSS_SELECTOR, ".group[open]")
    assert opened.get_attribute("id") == name


def test_paper_has_every_step_with_its_arrows(browser: Chrome, pages: Path) -> None:
    body = page(browser, pages / "race_after.html")
    count = len(steps(body))
    body.find_element(By.CSS_SELECTOR, ".pointed button").click()
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert len(steps(body)) == count
    browser.get((pages / "race_after.html").as_uri())
    browser.execute_script(
        "document.querySelector('.group').open = false; dispatchEvent(new Event('beforeprint'))"
    )
    body = browser.find_element(By.CSS_SELECTOR, ".group[open] .body")
    assert len(steps(body)) == count, "what was closed is drawn for paper"
    lanes = body.find_element(By.CSS_SELECTOR, ".lanes")
    widths = str(lanes.value_of_css_property("grid-template-columns")).split()
    assert sum(float(width.removesuffix("px")) for width in widths) <= 680
    assert browser.execute_script(CROSSED) == 0


def test_wrong_answers_show_the_operations_and_the_longest_legal_order(
    browser: Chrome, pages: Path, tmp_path: Path
) -> None:
    findings = gather_failures(pages / "race_after.json")
    history = history_of(
        [
            Operation("writer", "write", (1,), None, 0, 3),
            Operation("reader", "read", (), 1, 1, 4),
            Operation("reader", "read", (), None, 5, 6),
        ]
    )
    model = Register(None)
    verdict = check(history, model)
    shown = drawn_operations(history, verdict)
    data = data_of(history, verdict, model, shown, order_of(verdict, shown))
    drawn = Drawn("", history={"title": "No legal order", **data})
    view = TraceView((), "", failure_of("race_after"), drawn)
    path = tmp_path / "answers.html"
    path.write_text(render(findings, [view], made_at=datetime.now(UTC)))
    body = page(browser, path)
    assert body.find_element(By.ID, "h0-state").text == "2 of 2; then the state is 1"
    assert "nothing leads to it" in body.find_element(By.ID, "h0-fact").text
    body.find_element(By.ID, "h0-back").click()
    assert body.find_element(By.ID, "h0-state").text.startswith("1 of 2")
    assert body.find_element(By.ID, "h0-core").is_displayed()
    label = body.find_element(By.ID, "h0-drawing").get_attribute("aria-describedby")
    assert label == "h0-fact"
