"""Records of the examples of an order, and the line that names the pipeline."""

from __future__ import annotations

from typing import Any

from shardctl.core.order.order import Order
from shardctl.core.settings.document import settings_in_force
from shardctl.core.settings.table import SETTINGS, InForce


def pipeline_record(order: Order) -> dict[str, Any]:
    """Return the settings in force, with every default filled in."""
    return settings_in_force(order.settings, ordered=order.dataset.ordered)


def pipeline_line(spec: str, order: Order) -> str:
    """Return one line that names the spec, the dataset and the settings that shape the order."""
    return f"{spec} of {order.dataset.title}: {settings_words(pipeline_record(order))}"


# Where places are equal the order of the table counts.
_SAID = sorted((s for s in SETTINGS if s.said is not None), key=lambda setting: setting.place)


def settings_words(in_force: InForce) -> str:
    """Return those of the settings in force that shape an order, as words."""
    said = (setting.said(in_force) for setting in _SAID if setting.said is not None)
    return ", ".join(words for words in said if words)
