"""Python code as a script that somebody pasted it into runs it, with the real TFDS."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any
from unittest import mock


def run(code: Iterable[str], names: Mapping[str, object] | None = None) -> dict[str, Any]:
    """Run code and return its names; the datasets that it makes have the tfds_ids of examples."""
    import tensorflow as tf
    import tensorflow_datasets as tfds

    import shardctl.tfds

    text = "".join(code)
    ast.parse(text)
    for line in text.splitlines():  # names, specs and seeds are as long as they are
        assert len(line) <= 100 or re.search(r'"|\d{20}', line), line
    with_ids: dict[str, Any] = {"add_tfds_id": True}
    tf.random.set_seed(None)
    namespace = dict(names or {})
    with (
        mock.patch.object(tfds, "ReadConfig", functools.partial(tfds.ReadConfig, **with_ids)),
        mock.patch.object(
            shardctl.tfds, "resume", functools.partial(shardctl.tfds.resume, **with_ids)
        ),
    ):
        exec(compile(text, "pasted.py", "exec"), namespace)
    return namespace


def read(dataset: Any) -> list[str]:
    """Return the tfds_ids of a dataset of examples or batches, without their folders."""
    found: list[bytes] = []
    for element in dataset.as_numpy_iterator():
        ids = element["tfds_id"]
        found += ids.tolist() if hasattr(ids, "tolist") else [ids]
    return [name.decode().rpartition("/")[2] for name in found]


def sizes(dataset: Any) -> list[int]:
    """Return the sizes of the batches of a dataset."""
    return [len(element["tfds_id"]) for element in dataset.as_numpy_iterator()]
