"""Stages take what tf.data takes, and refuse the rest by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shardctl.errors import UsageError
from shardctl.stages.stages import (
    Batch,
    ChooseFromDatasets,
    Concatenate,
    Filter,
    Map,
    Opaque,
    Pipeline,
    Prefetch,
    Range,
    Read,
    Repeat,
    SampleFromDatasets,
    Shard,
    Shuffle,
    Skip,
    Take,
    Values,
    Zip,
)
from shardctl.stages.text import parse_stages
from tests.cases import counted

TWO = (Pipeline(), Pipeline())


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Shuffle(buffer=0), "shuffle: buffer=0: a number of elements from 1 to"),
        (lambda: Shuffle(buffer=-1), "shuffle: buffer=-1: "),
        (lambda: Shuffle(buffer=1.5), "shuffle: buffer=1.5: a whole number is needed"),  # type: ignore[arg-type]
        (lambda: Shuffle(buffer=3, seed=(1, 2, 3)), "a seed, or the two seeds of the kernel"),  # type: ignore[arg-type]
        (lambda: Shuffle(buffer=3, reshuffle=1), "shuffle: reshuffle=1: true or false is needed"),  # type: ignore[arg-type]
        (lambda: Repeat(count=0), "repeat: count=0: nothing would be left"),
        (lambda: Repeat(count=-2), "repeat: count=-2: 1 or more is needed, or -1 for ever"),
        (lambda: Batch(size=0), "batch: size=0: a number from 1 to"),
        (lambda: Shard(num_shards=0, index=0), "shard: num_shards=0: a number from 1 to"),
        (lambda: Shard(num_shards=2, index=-1), "shard: index=-1: a number from 0 to"),
        (lambda: Shard(num_shards=2, index=2), "shard: index=2 of num_shards=2: shards count"),
        (lambda: Take(count=-2), "take: count=-2: a number from 0 to"),
        (lambda: Skip(count=2**63), "skip: count=9223372036854775808: a number from 0 to"),
        (lambda: Map(calls=0), 'map: calls=0: a number from 1 is needed, or "auto"'),
        (lambda: Map(calls="many"), 'map: calls="many": a whole number is needed'),  # type: ignore[arg-type]
        (lambda: Prefetch(size=-2), 'prefetch: size=-2: a number from 0 is needed, or "auto"'),
        (lambda: Range(stop=-1), "range: stop=-1: a number from 0 to"),
        (lambda: Values(values=(1.5,)), "values: values=(1.5,): a whole number is needed"),  # type: ignore[arg-type]
        (lambda: Zip(inputs=()), "zip: an input, or several, is needed"),
        (lambda: Zip(inputs=(Range(stop=1),)), "a Pipeline is needed at index 0"),  # type: ignore[arg-type]
        (lambda: Concatenate(other=Range(stop=1)), "a Pipeline is needed"),  # type: ignore[arg-type]
        (lambda: Filter(kept=""), 'filter: kept="": a name is needed'),
        (lambda: Opaque(call=""), 'opaque: call="": a name is needed'),
        (lambda: Read(spec=3), "read: spec=3: a text is needed"),  # type: ignore[arg-type]
        (lambda: Read(settings=3), "read: settings=3: settings by their names are needed"),  # type: ignore[arg-type]
        (lambda: Read(settings=(("a", 1), ("a", 2))), "a is there twice"),
        (
            lambda: SampleFromDatasets(inputs=TWO, weights=(1.0,)),
            "sample_from_datasets: 1 weight of 2 inputs: one each is needed",
        ),
        (lambda: SampleFromDatasets(inputs=TWO, weights=(0.0, 0.0)), "one is more than 0"),
        (lambda: SampleFromDatasets(inputs=TWO, weights=(1.0, -1.0)), "one is more than 0"),
        (lambda: SampleFromDatasets(inputs=TWO, weights=(1.0, math.nan)), "one is more than 0"),
        (lambda: SampleFromDatasets(inputs=TWO, weights=(1e308, 1e308)), "one is more than 0"),
        (lambda: ChooseFromDatasets(inputs=(), choices=Pipeline()), "an input, or several"),
        (lambda: Pipeline(source=Repeat()), "Repeat: no source of a pipeline"),  # type: ignore[arg-type]
        (lambda: Pipeline(stages=(Range(stop=3),)), "Range: no stage of a pipeline"),  # type: ignore[arg-type]
    ],
)
def test_what_no_call_of_tf_data_takes_is_refused(made: Callable[[], object], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        made()
    assert said in str(caught.value)


def test_values_are_kept_as_pythons_own() -> None:
    numbers: Any = (np.int64(3), np.int32(-1), np.array([1, 2]))
    assert Shuffle(buffer=numbers[0], seed=numbers[0]) == Shuffle(buffer=3, seed=3)
    assert type(Shuffle(buffer=numbers[0]).buffer) is int
    assert Repeat(count=numbers[1]) == Repeat()
    assert Values(values=numbers[2]).values == (1, 2)
    assert SampleFromDatasets(inputs=[Pipeline()], weights=[1]).weights == (1.0,)  # type: ignore[arg-type]
    assert Shuffle(buffer=3, seed=[1, 2]) == Shuffle(buffer=3, seed=(1, 2))  # type: ignore[arg-type]
    assert Pipeline(stages=[Repeat()]).stages == (Repeat(),)  # type: ignore[arg-type]
    assert Prefetch(size=-1) == Prefetch()
    assert hash(Read(settings={"file_order": ["a"]}))  # type: ignore[arg-type]


def test_tensorflow_refuses_what_is_refused_here() -> None:
    """As far as it does: a count below -1 is -1 for it, and a repeat of 0 depends on what it
    follows."""
    import tensorflow as tf

    def build(name: str, *arguments: Any) -> list[Any]:
        found: list[Any] = []
        for element in getattr(tf.data.Dataset.range(6), name)(*arguments).take(9):
            found.append(element)
        return found

    classes: dict[str, Callable[..., object]] = {
        "shuffle": lambda n: Shuffle(buffer=n),
        "batch": lambda n: Batch(size=n),
        "shard": lambda n, i: Shard(num_shards=n, index=i),
        "take": lambda n: Take(count=n),
        "skip": lambda n: Skip(count=n),
        "repeat": lambda n: Repeat(count=n),
        "prefetch": lambda n: Prefetch(size=n),
    }
    ones = [-2, -1, 0, 1, 2, 9]
    calls: list[tuple[str, tuple[int, ...]]] = []
    calls += [(name, (n,)) for name in classes if name != "shard" for n in ones]
    calls += [("shard", (n, i)) for n in (0, 1, 2, 3) for i in (-1, 0, 1, 2, 3)]
    more = {("take", (-2,)), ("skip", (-2,)), ("repeat", (-2,)), ("repeat", (0,))}
    for name, arguments in counted(calls):
        try:
            build(name, *arguments)
            taken = True
        except (ValueError, tf.errors.OpError):
            taken = False
        try:
            classes[name](*arguments)
            taken_here = True
        except UsageError:
            taken_here = False
        assert taken_here is (taken and (name, arguments) not in more), (name, arguments)


@pytest.mark.parametrize(
    ("text", "endless"),
    [
        ("repeat", True),
        ("repeat(9)", False),
        ("repeat | take(3)", False),
        ("repeat | take(-1) | batch(3) | map", True),
        ("concatenate(repeat)", True),
        ("repeat | flat_map", False),  # nobody knows
        ("range(3) | repeat", True),
        ("zip(a | repeat, b)", False),
        ("zip(a | repeat, b | repeat)", True),
        ("sample_from_datasets([a | repeat, b])", True),
        ("sample_from_datasets([a | repeat, b], stop_on_empty=True)", False),
        ("sample_from_datasets([a | repeat, b | repeat], stop_on_empty=True)", True),
        ("choose_from_datasets([a | repeat, b | repeat], range(2))", False),
        ("choose_from_datasets([a | repeat, b | repeat], range(2) | repeat)", True),
        ("choose_from_datasets([a | repeat, b], range(2) | repeat)", False),
    ],
)
def test_what_never_ends(text: str, endless: bool) -> None:
    assert parse_stages(text).never_ends is endless
    if endless:
        with pytest.raises(UsageError, match="the buffer never fills"):
            parse_stages(f"{text} | shuffle(-2)")
        with pytest.raises(UsageError, match="nothing comes"):
            parse_stages(f"{text} | skip(-1)")
    else:
        assert parse_stages(f"{text} | shuffle(-2) | skip(-1)")
