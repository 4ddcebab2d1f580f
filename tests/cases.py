"""Generated cases: how many there are, how a law is checked over them, where they are counted."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Case = TypeVar("Case")

FUZZ = int(os.environ.get("SHARDCTL_FUZZ", "2000"))  # cases of a fuzz test, or of that order

_num_checked: list[int] = []


def add_cases(number: int = 1) -> None:
    """Add cases that were checked to those of the running test; conftest.py sums them up."""
    _num_checked.append(number)


def taken_count() -> int:
    """Return how many cases were counted since the last call."""
    number = sum(_num_checked)
    _num_checked.clear()
    return number


def counted(cases: Iterable[Case]) -> Iterator[Case]:
    """Yield cases, each counted once the next one is asked for."""
    for case in cases:
        yield case
        add_cases()


def check_cases(
    strategy: st.SearchStrategy[Case],
    check: Callable[[Case], int | None],
    num_cases: int,
    *,
    fuzz: bool = False,
) -> int:
    """Check a law over generated cases, count them, and return how many there were.

    A check that returns a number has checked so many cases, one after the other. Ordinary runs take
    the same cases each time; a fuzz run takes others each time. A failure prints its case.
    """
    num_done = 0

    @settings(
        max_examples=max(num_cases, 1),
        deadline=None,
        database=None,
        derandomize=not fuzz,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def law(case: Case) -> None:
        nonlocal num_done
        number = check(case)
        num_done += 1 if number is None else number

    law()
    add_cases(num_done)
    return num_done


def random_of_a_fuzz_run() -> random.Random:
    """Return random numbers that are others each time; a failure prints their seed."""
    seed = random.SystemRandom().getrandbits(32)
    print(f"random.Random({seed})")
    return random.Random(seed)
