"""Generated cases: how many there are, which, how a law is checked over them and they are counted.

An ordinary run takes the same cases everywhere; a quick one, `-m "not tensorflow"`, takes fewer.
Those of a fuzz test follow from SHARDCTL_SEED, any text, and from the name of the test; without it,
each fuzz run draws one and prints it.
"""

from __future__ import annotations

import hashlib
import os
import random
import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

Case = TypeVar("Case")

FUZZ = int(os.environ.get("SHARDCTL_FUZZ", "2000"))  # cases of a fuzz test, or of that order
PIPELINES = int(os.environ.get("SHARDCTL_PIPELINES", FUZZ))  # whole ones, beside TFDS

_ORDINARY = "0"  # the seed of tests that are no fuzz tests

# The share of the cases of a law that a quick run takes, an ordinary one, and one with slow tests.
SHARES = {"quick": 1 / 3, "ordinary": 1 / 2, "whole": 1.0}
_FEW = 8  # cases that every run takes

_share = [1.0]
_num_checked: list[int] = []
_num_pipelines: list[int] = []
_running = [_ORDINARY, ""]  # a seed and the test's name, which the test's own seed follows from
_fuzz = [False]  # whether it is a fuzz test


def seed_of_run() -> str:
    """Return the text that the cases of fuzz tests follow from."""
    return os.environ.get("SHARDCTL_SEED") or _ORDINARY


def variable_of_seed() -> str:
    """Return what a shell sets for a run with the same cases."""
    return f"SHARDCTL_SEED={shlex.quote(seed_of_run())}"


def begin_test(name: str, *, fuzz: bool) -> None:
    """Note which test runs from now on, as pytest names it; conftest.py calls this."""
    _running[:] = seed_of_run() if fuzz else _ORDINARY, name
    _fuzz[:] = [fuzz]


def seed_of_test() -> int:
    """Return the seed of the running test.

    It is another for each test; that of a fuzz test is another for each seed of a run.
    """
    return int.from_bytes(hashlib.sha256("\0".join(_running).encode()).digest()[:6])


def command_for(name: str) -> str:
    """Return the command that runs a fuzz test with the cases of this run."""
    sizes = f"SHARDCTL_FUZZ={FUZZ}"
    if PIPELINES != FUZZ:
        sizes += f" SHARDCTL_PIPELINES={PIPELINES}"
    return f"{variable_of_seed()} {sizes} python -m pytest {shlex.quote(name)}"


def begin_run(kind: str) -> None:
    """Note whether this run is quick, ordinary or whole; conftest.py calls this."""
    _share[:] = [SHARES[kind]]


def in_this_run(num_cases: int) -> int:
    """Return how many of so many generated cases this run takes; of a few it takes them all."""
    return max(int(num_cases * _share[0]), min(num_cases, _FEW))


def add_cases(number: int = 1) -> None:
    """Add cases that were checked to those of the running test; conftest.py sums them up."""
    _num_checked.append(number)


def add_pipelines(number: int) -> None:
    """Add cases that each are a whole pipeline, run by TensorFlow over what TFDS reads."""
    add_cases(number)
    _num_pipelines.append(number)


def taken_counts() -> tuple[int, int]:
    """Return how many cases were counted since the last call, and how many whole pipelines."""
    numbers = sum(_num_checked), sum(_num_pipelines)
    _num_checked.clear()
    _num_pipelines.clear()
    return numbers


def counted(cases: Iterable[Case]) -> Iterator[Case]:
    """Yield cases, each counted once the next one is asked for."""
    for case in cases:
        yield case
        add_cases()


def some_of(cases: Iterable[Case]) -> Iterator[Case]:
    """Yield those cases that this run takes: all, or the first few and a share of the others."""
    for number, case in enumerate(cases):
        if number < _FEW or in_this_run(number) < in_this_run(number + 1):
            yield case


def check_cases(
    strategy: st.SearchStrategy[Case], check: Callable[[Case], int | None], num_cases: int
) -> int:
    """Check a law over generated cases, count them, and return how many there were.

    A run that is not whole takes fewer, but for those of a fuzz test.

    A check that returns a number has checked so many cases, one after the other. A fuzz test takes
    those of its seed, any other test the same ones each time. A failure prints its case.
    """
    num_done = 0
    fuzz = _fuzz[0]

    @settings(
        max_examples=max(num_cases if fuzz else in_this_run(num_cases), 1),
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def law(case: Case) -> None:
        nonlocal num_done
        number = check(case)
        num_done += 1 if number is None else number

    (seed(seed_of_test())(law) if fuzz else law)()
    add_cases(num_done)
    return num_done


def fuzzed(few: int, many: int = FUZZ) -> pytest.MarkDecorator:
    """Let a test have a few cases, `num_cases`, and as many as are asked for in a fuzz run."""
    return pytest.mark.parametrize("num_cases", [few, pytest.param(many, marks=pytest.mark.fuzz)])


def few_or_many(few: int, many: int) -> pytest.MarkDecorator:
    """Let a test have a few cases, `num_cases`, and many where slow tests are run."""
    return pytest.mark.parametrize("num_cases", [few, pytest.param(many, marks=pytest.mark.slow)])


def first(number: int, values: Iterable[Any]) -> list[Any]:
    """Return values of `parametrize`, of which ordinary runs take the first; the rest is slow."""
    return [
        value if index < number else pytest.param(value, marks=pytest.mark.slow)
        for index, value in enumerate(values)
    ]


def random_of_a_fuzz_run() -> random.Random:
    """Return the random numbers of the running test; each call begins anew."""
    return random.Random(seed_of_test())


def some(value: Case | None) -> Case:
    """Return a value that is there, or fail."""
    assert value is not None
    return value
