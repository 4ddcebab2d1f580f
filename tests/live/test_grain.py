"""Grain's orders, beside the real Grain, which is run here where it is installed."""

from __future__ import annotations

import random
from importlib import metadata, util

import numpy as np
import pytest

from shardctl.errors import UsageError
from shardctl.loaders.grain import grain_sequence
from shardctl.loaders.loader import LOADERS, library_of
from shardctl.loaders.loader_sequence import LoaderConfig
from tests.cases import FUZZ, counted, random_of_a_fuzz_run
from tests.loaders.grain.asked_cases import asked, random_settings

pytestmark = [
    pytest.mark.fuzz,
    pytest.mark.skipif(
        util.find_spec("grain") is None, reason="Grain is missing: pip install 'shardctl[grain]'"
    ),
]
# 300 of 2,000, which is the default; worker processes are started for one in ten.
NUM_ORDERS = max(FUZZ * 300 // 2000, 1)
NUM_WITH_WORKERS = max(NUM_ORDERS // 10, 1)


def predicted(wanted: LoaderConfig) -> list[list[int]] | None:
    try:
        handed = grain_sequence(wanted)
    except UsageError:
        return None
    indices = handed.indices_at(np.arange(handed.num_examples)).tolist()
    if handed.batches is None:
        return [indices]
    bounds = [handed.batches.bounds(step) for step in range(handed.batches.num_batches)]
    return [indices[slice(*bound)] for bound in bounds]


def real(wanted: LoaderConfig) -> list[list[int]] | None:
    try:
        pieces = list(library_of(LOADERS["grain"]).batches(wanted, range(wanted.num_examples)))
    except UsageError:
        return None
    if wanted.batch is None:
        pieces = [np.concatenate([np.empty(0, np.int64), *pieces])]
    return [piece.tolist() for piece in pieces]


def compare(chance: random.Random, workers: list[int], num_cases: int) -> None:
    version = metadata.version("grain")
    for settings in counted(random_settings(chance, workers) for _ in range(num_cases)):
        wanted = asked(version=version, **settings)
        assert predicted(wanted) == real(wanted), settings


def test_batches_are_those_of_the_real_grain() -> None:
    compare(random_of_a_fuzz_run(), [0], NUM_ORDERS)


def test_batches_of_worker_processes_are_those_of_the_real_grain() -> None:
    compare(random_of_a_fuzz_run(), [1, 2, 3], NUM_WITH_WORKERS)


def test_a_reader_that_stops_early_leaves_no_worker_processes() -> None:
    import multiprocessing

    wanted = asked(500, seed=1, workers=2, batch=4)
    batches = library_of(LOADERS["grain"]).batches(wanted, range(500))
    first = next(batches)
    assert first.tolist() == (predicted(wanted) or [])[0]
    batches.close()
    assert not multiprocessing.active_children()
