"""The metrics of the released jars, from stored answers, beside those exported here."""

from __future__ import annotations

from tools.conformance import metrics


def test_only_listed_metrics_differ_and_every_listed_one_does() -> None:
    different = [metrics.compared(lines)[1] for lines in metrics.stored().values()]
    assert len(different) == 2
    assert {name for found in different for name in found} == set(metrics.LISTED)


def test_the_page_has_the_differences() -> None:
    page = metrics.PAGE.read_text()
    assert metrics.page_with(metrics.stored(), page) == page
    counts = {metrics.compared(lines)[0] for lines in metrics.stored().values()}
    assert counts == {16}


def test_another_name_type_unit_or_attribute_is_a_difference() -> None:
    lines = metrics.stored()["4.2.4"]
    equal, _ = metrics.compared(lines)
    entry = next(line for line in lines if "cache.entry.count" in line)
    for changed in (
        entry.replace("entry.count", "entry.number"),
        entry.replace("upDownCounterBuilder", "counterBuilder"),
        entry.replace("{entry}", "{entries}"),
        entry.replace("status=evicted", "status=removed"),
        entry.replace("otel", "prometheus").replace("upDownCounterBuilder", "GAUGE"),
    ):
        others = [changed if line == entry else line for line in lines]
        assert metrics.compared(others)[0] == equal - 1
