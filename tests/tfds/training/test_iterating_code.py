"""Generators over datasets resumed, beside what the uninterrupted code yields."""

from __future__ import annotations

import collections
import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import shardctl.tfds
from shardctl.errors import ShardctlError, UsageError
from tests.cases import FUZZ, check_cases
from tests.golden import values

pytestmark = pytest.mark.filterwarnings("ignore:.* iterates the dataset in Python")

Code = Callable[[], Iterator[Any]]


def datasets(rng: random.Random) -> Callable[[], Any]:
    """Return a function that makes a random dataset of numbers."""
    import tensorflow as tf

    size, buffer, batch = rng.randint(3, 12), rng.randint(1, 6), rng.choice([0, 1, 2, 4])
    epochs, first = rng.choice([0, 0, 2]), rng.random() < 0.5
    reshuffle = rng.choice([True, False])

    def make() -> Any:
        made = tf.data.Dataset.range(size).shuffle(
            buffer, seed=3, reshuffle_each_iteration=reshuffle
        )
        if epochs and first:
            made = made.repeat(epochs)
        if batch:
            made = made.batch(batch)
        return made.repeat(epochs) if epochs and not first else made

    return make


def codes(rng: random.Random) -> Code:
    """Return random Python code over a random dataset."""
    make, cut, epochs = datasets(rng), rng.randint(1, 7), rng.randint(1, 3)
    other, shape = datasets(rng), rng.randrange(len(PASSES))
    wraps = [WRAPS[name] for name in rng.sample(sorted(WRAPS), rng.choice([0, 1, 1, 2]))]

    def code() -> Iterator[Any]:
        ds = make()
        one = other() if shape == len(PASSES) - 1 else ds
        found = PASSES[shape](ds, one, cut, epochs)
        for wrap in wraps:
            found = wrap(found, cut)
        return iter(found)

    return code


def cuts(ds: Any, _: Any, cut: int, epochs: int) -> Iterator[Any]:
    for epoch in range(epochs):
        for number, element in enumerate(ds):
            if number == cut:
                break
            yield epoch, element


def peeks(ds: Any, _: Any, cut: int, epochs: int) -> Iterator[Any]:
    first = next(iter(ds))
    for element in ds:
        yield np.shape(first), element


PASSES: list[Callable[..., Any]] = [
    lambda ds, _, cut, epochs: (e for _ in range(epochs) for e in ds),
    cuts,
    peeks,
    lambda ds, _, cut, epochs: (e for _ in range(epochs) for e in itertools.islice(ds, cut)),
    lambda ds, _, cut, epochs: (
        e for _ in range(epochs) for _, e in zip(range(cut), ds, strict=False)
    ),
    lambda ds, _, cut, epochs: (
        e for _ in range(epochs) for e, _ in zip(ds, range(cut), strict=False)
    ),
    lambda ds, other, cut, epochs: zip(ds, other, strict=False),
]


def pairs(found: Any, cut: int) -> Iterator[Any]:
    found = iter(found)
    return zip(found, found, strict=False)


def ahead(found: Any, cut: int) -> Iterator[Any]:
    found = iter(found)
    ready = collections.deque(itertools.islice(found, cut))
    while ready:
        yield ready.popleft()
        ready.extend(itertools.islice(found, 1))


def buffered(found: Any, cut: int) -> Iterator[Any]:
    kept, rng = list[Any](), random.Random(1)
    for element in found:
        kept.append(element)
        if len(kept) > cut:
            yield kept.pop(rng.randrange(len(kept)))
    yield from kept


def total(found: Any, cut: int) -> Iterator[Any]:
    value = 0
    for element in found:
        value += int(numbers(element)[0])
        yield value


def numbers(element: Any) -> list[int]:
    """Return the numbers that an element holds."""
    if isinstance(element, tuple | list):
        return [number for part in element for number in numbers(part)]
    return [int(number) for number in np.ravel(np.asarray(element))]


WRAPS: dict[str, Callable[[Any, int], Any]] = values(
    Path(__file__).with_name("wraps.txt"), globals()
)


def check(seed: int) -> int:
    code, done = codes(random.Random(seed)), 0
    whole = list(map(numbers, code()))
    for steps in sorted({0, len(whole) // 2, len(whole)}):
        try:
            rest = list(map(numbers, shardctl.tfds.resume_like(code, steps=steps)))
        except ShardctlError:  # refused
            continue
        assert rest == whole[steps:], (seed, steps)
        done += 1
    return done


@pytest.mark.slow
def test_random_code_resumes_or_is_refused() -> None:
    check_cases(st.integers(0, 1 << 30), check, 2)


@pytest.mark.fuzz
def test_random_code_resumes_or_is_refused_fuzzed() -> None:
    check_cases(st.integers(0, 1 << 30), check, FUZZ // 40)


@pytest.mark.parametrize(
    ("code", "how", "count"),
    [
        (lambda ds: cuts(ds, None, 2, 2), {"consumed": 12}, 3),
        (lambda ds: ahead(ds, 2), {"consumed": 12}, 3),
        (lambda ds: pairs(ds, 1), {"consumed": 8}, "give steps=N"),
        (lambda ds: WRAPS["halves"](ds, 1), {"consumed": 8}, "give steps=N"),
        (lambda ds: WRAPS["halves"](ds, 1), {"steps": 3}, 3),
        (lambda ds: WRAPS["singly"](ds, 1), {"steps": 3}, "by what they hold"),
        (lambda ds: WRAPS["by value"](ds, 1), {"steps": 1}, "call ds = resume_like|more than"),
        (lambda ds: total(ds, 1), {"steps": 2}, "keeps elements"),
    ],
)
def test_only_what_is_certain_resumes(
    code: Callable[[Any], Any], how: dict[str, Any], count: int | str
) -> None:
    def make() -> Any:
        return code(tf.data.Dataset.range(22).shuffle(9, seed=2).batch(4))

    import tensorflow as tf

    if isinstance(count, str):
        with pytest.raises(UsageError, match=count):
            shardctl.tfds.resume_like(make, **how)
    else:
        rest = map(numbers, shardctl.tfds.resume_like(make, **how))
        assert list(rest) == list(map(numbers, make()))[count:]
