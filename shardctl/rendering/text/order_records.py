"""Records of the examples of an order, and the line that names the pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardctl.core.order.order import Order
from shardctl.core.settings.document import settings_in_force
from shardctl.planning.locate import MATCH_FIELDS, Match


def match_record(match: Match) -> dict[str, Any]:
    """Return an example of an order with the fields that documents give it."""
    return {name: getattr(match, name) for name in MATCH_FIELDS}


def pipeline_record(order: Order) -> dict[str, Any]:
    """Return the settings in force, with every default filled in."""
    return settings_in_force(order.settings, ordered=order.dataset.ordered)


def pipeline_line(spec: str, order: Order) -> str:
    """Return one line that names the spec, the dataset and the settings that shape the order."""
    return f"{spec} of {order.dataset.title}: {settings_words(pipeline_record(order))}"


def settings_words(in_force: Mapping[str, Any]) -> str:
    """Return those of the settings in force that shape an order, as words."""
    words = [f"cycle {in_force['cycle']}", f"block {in_force['block']}"]
    if in_force["reverse"]:
        words.append("files reversed")
    elif in_force["file_order"]:
        words.append("files in a given order")
    if in_force["shuffle_files"]:
        again = "" if in_force["reshuffle"] else ", the same each epoch"
        seed = in_force["shuffle_seed"]
        words.append(f"files shuffled{'' if seed is None else f' with seed {seed}'}{again}")
    if in_force["repeat_files"]:
        words.append("files repeated")
    if in_force["host"]:
        words.append(f"host {in_force['host']} by {in_force['host_by']}")
    if in_force["buffer"]:
        seed = in_force["buffer_seed"]
        size = "the whole epoch" if in_force["buffer"] == -2 else f"{in_force['buffer']:,}"
        words.append(f"shuffle buffer {size}{'' if seed is None else f' with seed {seed}'}")
    if in_force["global_seed"] is not None:
        words.append(f"global seed {in_force['global_seed']}")
    if in_force["epochs"] > 1:
        words.append(f"{in_force['epochs']} epochs")
    if in_force["batch"]:
        words.append(
            f"batches of {in_force['batch']}{', last dropped' * in_force['drop_remainder']}"
        )
    if in_force["pass"]:
        words.append(f"pass {in_force['pass']}")
    if in_force["loop"] != "python":
        words.append("Keras fit")
    return ", ".join(words)
