"""Records of the examples of an order, and the line that names the pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from shardctl.core.order.order import Order
from shardctl.core.settings.document import settings_in_force
from shardctl.core.settings.table import SETTINGS, InForce
from shardctl.files.documents import Document
from shardctl.files.head import head
from shardctl.rendering.text.command_line import as_options
from shardctl.rendering.text.looks import Look
from shardctl.rendering.text.tables import Screen, paragraph


def order_head(kind: str, order: Order) -> Document:
    """Return the fields that a document about an order begins with."""
    assumptions = list(map(as_options, order.assumptions))
    return head(kind, order.dataset.identity, assumptions=assumptions)


def order_heading(spec: str, order: Order, screen: Screen, style: Look = "") -> Iterator[str]:
    """Yield the line that names the pipeline, and what the order depends on unstated."""
    yield from heading(pipeline_line(spec, order), order.assumptions, screen, style)


def heading(
    title: str, assumptions: Iterable[str], screen: Screen, style: Look = ""
) -> Iterator[str]:
    """Yield a title, and below it what is assumed."""
    yield paragraph(title, screen, style=style)
    for text in assumptions:
        yield paragraph(f"assumed: {as_options(text)}", screen)


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
