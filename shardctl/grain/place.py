"""A place in an order as text: what Grain keeps of a sampler, and what a position is made of again.

Grain writes `repr(sampler)` into its checkpoints and restores where it is the same text. So it says
all that the order follows from, and nothing that another release or another folder would change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from shardctl.core.arguments.checked import checked
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.settings.document import settings_in_force, settings_of_document
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.text import printable
from shardctl.errors import DatasetError
from shardctl.feeding.key_order import KeyOrder
from shardctl.files import fields
from shardctl.files.json_text import parse_json
from shardctl.files.position_file import (
    PositionRecord,
    stretch_document,
    stretches_of_document,
)
from shardctl.grain.libraries import grain

_FORM = re.compile(r"shardctl\.grain\.Sampler\((?P<place>\{.*\})\)", re.DOTALL)
_ALWAYS = ("cycle", "block")  # whose defaults are TFDS's, and of files in order others


def place_text(order: KeyOrder, **others: int | None) -> str:
    """Return what a sampler of an order is called: its dataset, spec, settings and place.

    `others` are numbers that Grain is to compare too.
    """
    identity = order.dataset.identity
    document: dict[str, Any] = {
        "dataset": identity.title,
        "fingerprint": identity.fingerprint,
        "spec": order.spec,
        "settings": _settings_document(order.settings, ordered=identity.ordered),
        "size": order.total,
        "consumed": order.consumed,
        **{name: value for name, value in others.items() if value is not None},
    }
    if order.stretches:
        document["stretches"] = [stretch_document(one) for one in order.stretches]
    return f"shardctl.grain.Sampler({json.dumps(document)})"


def place_of_text(text: str, *, source: str) -> Mapping[str, object]:
    """Return what `place_text` wrote, as a mapping.

    Raises:
        DatasetError: it is the text of another sampler; `source` names it.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        raise DatasetError(
            f"{source} is of another sampler than shardctl.grain's: {printable(text, 80)}"
        )
    return fields.mapping(parse_json(found["place"].encode(), source=source), source)


def record_of_place(
    place: Mapping[str, object], dataset: Dataset, consumed: int, *, source: str
) -> PositionRecord:
    """Return the position after so many examples of the order that a place is in.

    Raises:
        DatasetError: it is of another dataset than `dataset`, or damaged.
    """
    identity = dataset.identity
    with fields.said_about(source):
        title = fields.text(place.get("dataset"), "dataset")
        if place.get("fingerprint") != identity.fingerprint:
            now = "" if title == identity.title else f" {printable(identity.title)}, with"
            raise DatasetError(
                f"it is of {printable(title)}, and this is{now or ' the same name with'} other "
                "files: their names or lengths differ; if it is the same order, begin with the "
                f"count that it holds, consumed={consumed}"
            )
        settings = settings_in_force(ReadSettings(), ordered=identity.ordered)
        settings |= fields.mapping(place.get("settings"), "settings")
        return PositionRecord(
            dataset=identity,
            spec=fields.text(place.get("spec"), "spec"),
            settings=settings_of_document(settings, "settings"),
            consumed=consumed,
            stretches=stretches_of_document(place.get("stretches", [])),
        )


def _settings_document(settings: ReadSettings, *, ordered: bool) -> dict[str, Any]:
    """Return the settings that are not as they are without any: a new one changes no text."""
    default = settings_in_force(ReadSettings(), ordered=ordered)
    return {
        name: value
        for name, value in settings_in_force(settings, ordered=ordered).items()
        if name in _ALWAYS or value != default.get(name)
    }


# Texts in batches as tf.data has them, where Grain's own stacking would change them.


@checked
def keep_texts(example: object) -> Any:
    """Return an example whose bytes come out of Grain's batch as they went in, as in tf.data.

    NumPy stacks bytes as a type of fixed width, which drops zero bytes at the end of each and
    differs from batch to batch; as objects they stay what they are. `data_loader` does this by
    itself; behind `map_dataset` it is a map before the batch: `.map(keep_texts).batch(32)`.

    >>> import numpy as np
    >>> examples = [{"text": b"a"}, {"text": bytes(2)}]
    >>> np.stack([keep_texts(one)["text"] for one in examples]).tolist()
    [b'a', b'\\x00\\x00']
    """
    import numpy as np

    if isinstance(example, bytes):
        kept = np.empty((), object)
        kept[()] = example
        return kept
    if type(example) is dict:
        return {key: keep_texts(value) for key, value in example.items()}
    if type(example) in (list, tuple):
        return type(example)(map(keep_texts, example))  # type: ignore[call-overload, call-arg]
    return example


def keeping_texts() -> Any:
    """Return the operation of Grain that keeps texts, for a place before the batch."""
    return _kind()()


@cache
def _kind() -> type:
    base = grain().transforms.Map
    return type(base)("KeepTexts", (_KeepsTexts, base), {"__module__": __name__})  # type: ignore[no-any-return]


def __getattr__(name: str) -> type:
    # Worker processes look for the class by its name.
    if name == "KeepTexts":
        return _kind()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _KeepsTexts:
    def map(self, element: Any) -> Any:
        """Return the element with its texts as objects."""
        return keep_texts(element)
