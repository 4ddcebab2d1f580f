"""Generators over datasets resumed, beside what the uninterrupted code yields."""

from __future__ import annotations

import collections
import itertools
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import shardctl.tfds
from shardctl.errors import ShardctlError, UsageError
from tests.cases import FUZZ, add_cases, check_cases

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
    lambda ds, _, cut, epochs: (e for _ in range(epochs) for _, e in zip(range(cut), ds)),
    lambda ds, _, cut, epochs: (e for _ in range(epochs) for e, _ in zip(ds, range(cut))),
    lambda ds, other, cut, epochs: zip(ds, other, strict=False),
]


def pairs(found: Any, cut: int) -> Iterator[Any]:
    found = iter(found)
    return zip(found, found, strict=False)


def ahead(found: Any, cut: int) -> Iterator[Any]:
    found, ready = iter(found), collections.deque[Any]()
    while ready.extend(itertools.islice(found, cut - len(ready))) or ready:
        yield ready.popleft()


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


WRAPS: dict[str, Callable[[Any, int], Any]] = {
    "ahead": ahead,
    "buffered": buffered,
    "every second": lambda found, cut: itertools.islice(found, 0, None, 2),
    "by value": lambda found, cut: (e for e in found if numbers(e)[-1] % 3),
    "by a rare value": lambda found, cut: (e for e in found if cut not in numbers(e)),
    "from one on": lambda found, cut: itertools.islice(found, cut, None),
    "halves": lambda found, cut: (half for e in found for half in ((0, e), (1, e))),
    "map": lambda found, cut: map(lambda e: [n + 1 for n in numbers(e)], found),
    "numbered": lambda found, cut: enumerate(found),
    "pairs": pairs,
    "singly": lambda found, cut: (n for e in found for n in numbers(e)),
    "total": total,
}


def check(rng: random.Random) -> int:
    code, refused = codes(rng), 0
    whole = list(map(numbers, code()))
    for steps in {0, len(whole), *(rng.randint(0, len(whole)) for _ in range(3))}:
        try:
            rest = list(map(numbers, shardctl.tfds.resume_like(code, steps=steps)))
        except ShardctlError:
            refused += 1
            continue
        assert rest == whole[steps:], steps
    print(refused)
    return 5
