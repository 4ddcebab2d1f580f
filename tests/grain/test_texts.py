"""Texts come out of Grain's batches as they went in, zero bytes and all."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

from shardctl.grain import keep_texts
from shardctl.grain.loader import keeping_texts
from tests.grain.toys import needs_grain

TEXTS = [b"a", b"bc\0", b"", b"\0\0"]


def test_what_has_no_bytes_is_as_it_was() -> None:
    array = np.arange(3)
    for one in (array, 7, "text", None, object()):
        assert keep_texts(one) is one
    assert keep_texts({"a": [array, (1, "x")]}) == {"a": [array, (1, "x")]}


def test_batches_of_grain_keep_them() -> None:
    grain = needs_grain()
    examples = [{"text": text, "pair": (text, 1)} for text in TEXTS]
    for size in (1, 4):
        lost = next(iter(grain.MapDataset.source(examples).batch(size)))["text"]
        assert lost.dtype.kind == "S"
        batches = list(grain.MapDataset.source(examples).map(keep_texts).batch(size))
        assert [text for batch in batches for text in batch["text"].tolist()] == TEXTS
        assert [text for batch in batches for text in batch["pair"][0].tolist()] == TEXTS
        assert {batch["text"].dtype for batch in batches} == {np.dtype(object)}


def test_the_operation_does_the_same() -> None:
    needs_grain()
    operation = pickle.loads(pickle.dumps(keeping_texts()))
    assert operation.map({"text": TEXTS[1]})["text"].tolist() == TEXTS[1]
    module = sys.modules["shardctl.grain.loader"]
    assert type(operation) is module.KeepTexts
    with pytest.raises(AttributeError):
        module.Other  # noqa: B018
