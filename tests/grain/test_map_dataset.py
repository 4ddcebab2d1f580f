"""The MapDataset: random access, Grain's own batches, states, texts, and what is refused."""

from __future__ import annotations

import json
import pickle
import random
import sys
from typing import Any

import numpy as np
import pytest

import shardctl
from shardctl import ReadSettings
from shardctl.errors import DatasetError, UsageError
from shardctl.grain import consumed, keep_texts, map_dataset
from shardctl.grain.loader import PaddedSource, Padding
from shardctl.order.order import Order
from tests.cases import counted
from tests.grain.toys import as_lists, cut, needs_grain, raises_in_one_line, random_settings, toy

DATA = toy(11, 13, 16)
SOURCE = list(range(40))
SETTINGS = ReadSettings(shuffle_seed=3, buffer=9, buffer_seed=1, epochs=2, batch=7)


def order_of(settings: ReadSettings) -> Order:
    return shardctl.plan_order(DATA, "train", settings).order


def test_it_is_read_anywhere() -> None:
    needs_grain()
    examples = map_dataset(SOURCE, DATA, "train", SETTINGS)
    ids = order_of(SETTINGS).read(0, 80).tolist()
    assert len(examples) == 80
    assert [examples[i] for i in (5, 79, 0, -1, -80)] == [ids[i] for i in (5, 79, 0, -1, -80)]
    assert list(examples) == ids
    assert list(examples[10:20:3]) == ids[10:20:3]
    assert examples._getitems([4, 9]) == [ids[4], ids[9]]
    assert pickle.loads(pickle.dumps(examples))[17] == ids[17]


def test_batches_of_random_settings_are_those_of_the_order() -> None:
    needs_grain()
    numbers = random.Random(2)
    for _ in counted(range(25)):
        settings = random_settings(numbers)
        order = order_of(settings)
        expected = cut(order.read(0, order.num_examples).tolist(), settings.batch)
        examples = map_dataset(SOURCE, DATA, "train", settings)
        if settings.batch is not None:
            examples = examples.batch(settings.batch)
        assert as_lists(examples, settings.batch) == expected
        if len(expected) < 3:
            continue
        iterator = iter(examples.to_iter_dataset())
        head = as_lists((next(iterator) for _ in range(2)), settings.batch)
        again = iter(examples.to_iter_dataset())
        again.set_state(iterator.get_state())
        assert head + as_lists(again, settings.batch) == expected


def test_a_state_and_the_dataset_are_a_position() -> None:
    needs_grain()
    examples = map_dataset(SOURCE, DATA, "train", SETTINGS)
    iterator = iter(examples.batch(7).to_iter_dataset())
    for step in range(13):
        state = iterator.get_state()
        assert json.loads(examples.position(state))["consumed"] == min(7 * step, 80)
        assert consumed(state, batch=7) == 7 * step
        rest = map_dataset(SOURCE, DATA, "train", SETTINGS, states=[examples.position(state)])
        assert list(rest) == order_of(SETTINGS).read(min(7 * step, 80), 80).tolist()
        next(iterator, None)
    one_by_one = {"next_index": 9}
    assert json.loads(examples.position(one_by_one, batch=1))["consumed"] == 9


def test_what_would_be_another_order_is_refused() -> None:
    needs_grain()
    examples = map_dataset(SOURCE, DATA, "train", SETTINGS)
    for wrong in (lambda: examples[80], lambda: examples[-81], lambda: examples.repeat(2)[100]):
        raises_in_one_line(wrong, UsageError, "80 examples", "epochs=N")
    with pytest.raises(DatasetError, match="source has 39 records"):
        map_dataset(SOURCE[:-1], DATA, "train", SETTINGS)


def test_classes_are_found_by_their_names_alone() -> None:
    needs_grain()
    module = sys.modules["shardctl.grain.loader"]
    assert type(map_dataset(SOURCE, DATA)) is module.OrderedMapDataset
    assert str(map_dataset(SOURCE, DATA)) == "OrderedMapDataset(toy train)"
    drop, keep = (pickle.loads(pickle.dumps(k())) for k in (module.DropPadding, module.KeepTexts))
    elements: list[Any] = [0, None, {}, Padding()]
    assert [drop.filter(one) for one in elements] == [True, True, True, False]
    assert keep.map({"text": b"bc\0"})["text"].tolist() == b"bc\0"
    with pytest.raises(AttributeError):
        module.Other  # noqa: B018


def test_padding_is_one_record_more_that_grain_does_not_see() -> None:
    needs_grain()
    from grain._src.python.data_loader import _source_repr

    sources: list[Any] = [[1, 2], (1, 2), np.arange(3), range(3)]
    for source in sources:
        padded = PaddedSource(source)
        assert (len(padded), padded[1]) == (len(source) + 1, source[1])
        assert isinstance(padded[len(source)], Padding)
        assert repr(padded) == _source_repr(source)


def test_batches_keep_texts_with_zero_bytes_at_their_ends() -> None:
    grain = needs_grain()
    texts = [b"a", b"bc\0", b"", b"\0\0"]
    examples = [{"text": text, "pair": (text, 1)} for text in texts]
    for size in (1, 4):
        lost = next(iter(grain.MapDataset.source(examples).batch(size)))["text"]
        assert lost.dtype.kind == "S"
        batches = list(grain.MapDataset.source(examples).map(keep_texts).batch(size))
        assert [text for batch in batches for text in batch["text"].tolist()] == texts
        assert [text for batch in batches for text in batch["pair"][0].tolist()] == texts
        assert {batch["text"].dtype for batch in batches} == {np.dtype(object)}
    array = np.arange(3)
    for one in (array, 7, "text", None, object()):
        assert keep_texts(one) is one
    assert keep_texts({"a": [array, (1, "x")]}) == {"a": [array, (1, "x")]}


@pytest.mark.fuzz
def test_workers_of_mp_prefetch_keep_the_order() -> None:
    grain = needs_grain()
    expected = cut(order_of(SETTINGS).read(0, 80).tolist(), 7)
    for workers in counted([2, 3]):
        batches = map_dataset(SOURCE, DATA, "train", SETTINGS).batch(7).to_iter_dataset()
        batches = batches.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers))
        iterator = iter(batches)
        head = as_lists((next(iterator) for _ in range(5)), 7)
        state = iterator.get_state()
        assert consumed(state, batch=7) == 35
        assert head + as_lists(iterator, 7) == expected
        again = iter(batches)
        again.set_state(state)
        assert as_lists(again, 7) == expected[5:]
        assert consumed(iterator.get_state(), batch=7) == 84  # the last of 3 is counted as 7
