"""Texts in batches as tf.data has them, where Grain's own stacking would change them."""

from __future__ import annotations

from functools import cache
from typing import Any

from shardctl.core.arguments.checked import checked
from shardctl.grain.libraries import grain


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
