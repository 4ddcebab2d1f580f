"""Records of the examples of an order, and the line that names the pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardctl.core.order.order import Order
from shardctl.core.settings.document import settings_in_force
from shardctl.planning.locate import MATCH_FIELDS, Match


def match_record(match: Match) -> dict[str, Any]:
    """Return an example of an order with the fields of the contract."""
    return {name: getattr(match, name) for name in MATCH_FIELDS}


def pipeline_record(order: Order) -> dict[str, Any]:
    """Return every setting in force."""
    return settings_in_force(order.settings, ordered=order.dataset.ordered)


def pipeline_line(spec: str, order: Order) -> str:
    """Return one line that names the spec, the dataset and the settings that shape the order."""
    return f"{spec} of {order.dataset.title}: {settings_words(pipeline_record(order))}"


def settings_words(force: Mapping[str, Any]) -> str:
    """Return the settings in force that shape an order, as words."""
    words = [f"cycle {force['cycle']}", f"block {force['block']}"]
    if force["reverse"]:
        words.append("files reversed")
    elif force["file_order"]:
        words.append("files in a given order")
    if force["shuffle_files"]:
        again = "" if force["reshuffle"] else ", the same each epoch"
        seed = force["shuffle_seed"]
        words.append(f"files shuffled{'' if seed is None else f' with seed {seed}'}{again}")
    if force["repeat_files"]:
        words.append("files repeated")
    if force["host"]:
        words.append(f"host {force['host']} by {force['host_by']}")
    if force["buffer"]:
        seed = force["buffer_seed"]
        size = "the whole epoch" if force["buffer"] == -2 else f"{force['buffer']:,}"
        words.append(f"shuffle buffer {size}{'' if seed is None else f' with seed {seed}'}")
    if force["global_seed"] is not None:
        words.append(f"global seed {force['global_seed']}")
    if force["epochs"] > 1:
        words.append(f"{force['epochs']} epochs")
    if force["batch"]:
        words.append(f"batches of {force['batch']}{', last dropped' * force['drop_remainder']}")
    if force["pass"]:
        words.append(f"pass {force['pass']}")
    if force["loop"] != "python":
        words.append("Keras fit")
    return ", ".join(words)
