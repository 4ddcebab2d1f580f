"""Chains of Grain: as five versions yielded them, without end, of a billion, and refused."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.base.arrays import Int64s
from shardctl.errors import UsageError
from shardctl.loaders.grain import GrainSequence, grain_sequence
from shardctl.loaders.grain_states import elements_of, state_of
from shardctl.loaders.loader import calls_of
from shardctl.loaders.loader_sequence import LoaderConfig, LoaderSource
from shardctl.stages.pipelines import readers_of, with_sources_read
from shardctl.stages.stages import counted_source
from shardctl.stages.text import parse_stages
from tests.cases import counted
from tests.loaders.agreement import check_agreement

RECORDED = json.loads((Path(__file__).parent / "grain" / "chains.json").read_text("utf-8"))


def passes(stage: Any) -> Callable[[Int64s], Int64s]:
    divisor = int(stage.kept)
    return lambda indices: (np.asarray(indices) % divisor != 0).astype(np.int64)


def chain(text: str, host: int = 0, **more: Any) -> LoaderConfig:
    """Return the configuration of a chain of range(N), as host `host` of 2."""
    stages = with_sources_read(parse_stages(text, calls_of("grain")))
    sources, first = {}, 0
    for read in readers_of(stages):
        source = counted_source(read)
        size = getattr(source, "stop", 0) or int((read.data or "").split("(")[1].split(")")[0])
        sources[read] = LoaderSource(first=first, lengths=np.array([size]))
        first += size
    given: dict[str, Any] = {"version": "0.2.18", "kept": passes, "shares": True, "num_hosts": 2}
    given.update(more, lengths=np.array([first]), stages=stages, sources=sources)
    return LoaderConfig(host=host, **given)


def sequence(text: str) -> GrainSequence:
    found = grain_sequence(chain(text))
    assert isinstance(found, GrainSequence)
    return found


def test_recorded_chains_are_predicted_both_ways() -> None:
    for case in counted(RECORDED["cases"]):
        config = chain(case["stages"], case["host"])
        found = grain_sequence(config)
        batched = found.batches is not None
        check_agreement(found, case["elements"], config.num_examples, batched=batched)


def test_a_chain_without_end_has_positions() -> None:
    found = sequence("range(10) | shuffle(seed=1) | repeat | to_iter_dataset | batch(4)")
    assert found.is_endless
    assert found.indices_at(np.arange(10**12, 10**12 + 10**3)).max() == 9
    first = sequence("range(10) | shuffle(seed=1) | repeat(3) | to_iter_dataset | batch(4)")
    assert found.indices_at(np.arange(30)).tolist() == first.indices_at(np.arange(30)).tolist()
    # Every epoch the same, where they are not seeded anew.
    alike = sequence("range(10) | shuffle(seed=1) | repeat(3, reseed_each_epoch=False)")
    assert alike.indices_at(np.arange(30)).tolist() == first.indices_at(np.arange(10)).tolist() * 3


@pytest.mark.parametrize(
    "text",
    [
        "range(1000000000) | seed(1) | shuffle | slice(rank, None, world_size) | repeat(2) | "
        "to_iter_dataset | batch(256) | mp_prefetch(4)",
        "mix(range(1000000000) | shuffle(1), range(500000000) | shuffle(2), weights=[0.7, 0.3]) | "
        "to_iter_dataset | WindowShuffleIterDataset(1000, seed=3) | batch(64)",
    ],
)
def test_a_billion_examples_are_looked_up_both_ways(text: str) -> None:
    found = sequence(text)
    start = time.perf_counter()
    positions = np.array([3, 10**8 + 7, found.num_examples - 1])
    indices = found.indices_at(positions)
    which, places = found.positions_of(indices)
    assert all(place in places[which == n] for n, place in enumerate(positions.tolist()))
    assert time.perf_counter() - start < 2  # a tenth of that where nothing else runs


REFUSED = {
    "range(9) | shuffle": "refuses it without a seed",
    "range(9) | shuffle(seed=4294967296)": "seeds from 0 to 4294967295",
    "range(9) | to_iter_dataset | shuffle(1)": "Grain has it of a MapDataset",
    "range(9) | LimitIterDataset(2)": "Grain has it of an IterDataset",
    "range(9) | repeat | repeat(2)": "refuses to repeat what has no end",
    "range(9) | repeat | shuffle(1)": "shuffle before repeat",
    "concatenate(range(9) | repeat, range(2))": "refuses what has no end",
    "range(9) | filter(kept='2') | batch(2)": "put to_iter_dataset() before it",
    "range(9) | to_iter_dataset | batch(2) | filter(kept='2')": "put it before batch",
    "zip(range(9), range(8))": "several lengths",
    "mix(range(9), range(8) | to_iter_dataset)": "of MapDatasets or of IterDatasets alone",
    "mix(range(9), weights=[0.5, 0.5])": "a weight above 0 for each dataset",
    "range(9) | to_iter_dataset | mp_prefetch(2) | mp_prefetch(2)": "workers within workers",
    "InterleaveIterDataset(range(9), range(8), cycle_length=1) | RepeatIterDataset": "other turns",
    "range(9) | slice(0, 9, 0)": "step=0",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_has_no_order_here_is_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        grain_sequence(chain(text))
    assert REFUSED[text] in str(refused.value)


def test_states_of_older_versions_and_of_other_chains() -> None:
    windows = "range(9) | to_iter_dataset | WindowShuffleIterDataset(4, seed=1)"
    with pytest.raises(UsageError, match=r"known of Grain 0\.2\.16 and newer, not 0\.2\.13"):
        state_of(chain(windows, version="0.2.13"), 2)
    with pytest.raises(UsageError, match="of another chain than this one: next_index"):
        elements_of(chain(windows), {"next_index": 3})
    batches = chain("range(9) | to_iter_dataset | batch(4)")
    assert [elements_of(batches, {"next_index": n}) for n in (0, 4, 8, 9)] == [0, 1, 2, 3]
    with pytest.raises(UsageError, match="in the midst of a batch of 4: 5"):
        elements_of(batches, {"next_index": 5})
    inputs = ", ".join(f"range({size}) | to_iter_dataset" for size in (5, 4, 6))
    dealt = chain(f"InterleaveIterDataset({inputs}, cycle_length=3) | mp_prefetch(2)")
    assert [elements_of(dealt, state_of(dealt, n)) for n in range(16)] == [*range(16)]
    of_each = state_of(dealt, 5)["iterators_in_use_states"]  # as Grain 0.2.18 writes it
    own = [[one["next_index"] for one in each["iterators_in_use_states"]] for each in of_each]
    assert own == [[2, 1], [2]]
    with pytest.raises(UsageError, match="give state=STATE"):
        state_of(chain("range(9) | IndexSampler(num_epochs=1) | DataLoader"), 2)
