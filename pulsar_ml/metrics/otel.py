"""Exports the metrics as OpenTelemetry instruments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from pulsar_ml.errors import UsageError
from pulsar_ml.metrics.names import INSTRUMENTS, Instrument
from pulsar_ml.metrics.quantities import Labelled, Registry

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

SCOPE = "org.apache.pulsar.broker"


def export(
    registry: Registry,
    *,
    provider: MeterProvider | None = None,
    attributes: Mapping[str, str] | None = None,
) -> None:
    """Creates an observable instrument for each metric; a collection reads the registry.

    ``provider`` defaults to the global one. Every value has the ``attributes`` (for example
    pulsar.cluster). Export a registry only once for each provider. Raises UsageError when
    OpenTelemetry is not installed.
    """
    try:
        from opentelemetry import metrics
    except ImportError:
        raise UsageError(
            "OpenTelemetry is not installed: pip install 'pulsar_ml[metrics]'"
        ) from None
    meter = metrics.get_meter(SCOPE, meter_provider=provider)
    common = dict(attributes or {})
    for instrument in INSTRUMENTS:
        create = (
            meter.create_observable_counter
            if instrument.kind == "counter"
            else meter.create_observable_up_down_counter
        )
        create(
            instrument.name,
            callbacks=[observer(registry, instrument, common)],
            unit=instrument.unit,
            description=instrument.description,
        )
    for gauge in registry.labelled:
        if gauge.exporter == "prometheus":
            continue
        create_labelled = (
            meter.create_observable_gauge
            if gauge.kind == "gauge"
            else meter.create_observable_up_down_counter
        )
        create_labelled(
            gauge.name,
            callbacks=[labelled_observer(gauge, common)],
            unit=gauge.unit,
            description=gauge.description,
        )


def observer(
    registry: Registry, instrument: Instrument, common: Mapping[str, str]
) -> Callable[[CallbackOptions], Iterable[Observation]]:
    from opentelemetry.metrics import Observation

    def observe(options: CallbackOptions) -> Iterable[Observation]:
        quantities = registry.read()
        for value, term in instrument.terms.items():
            number = term.of(quantities)
            if number is not None:
                attribute = {instrument.attribute: value} if instrument.attribute else {}
                yield Observation(number, {**common, **attribute})

    return observe


def labelled_observer(
    gauge: Labelled, common: Mapping[str, str]
) -> Callable[[CallbackOptions], Iterable[Observation]]:
    from opentelemetry.metrics import Observation

    def observe(options: CallbackOptions) -> Iterable[Observation]:
        for labels, number in gauge.read():
            known = zip(gauge.labels, labels, strict=True)
            yield Observation(number, {**common, **{name: text for name, text in known if text}})

    return observe
