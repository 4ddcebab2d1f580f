"""Answers at random to draw: stretches of orders of small datasets, and evaluations."""

from __future__ import annotations

from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import ShardctlError
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.eval.answer import Evaluation, evaluate
from shardctl.verbs.simulate.answer import Simulation, simulate

_NAMES = ("train", "a_split_with_a_very_long_name", "12", "数据集")
_LENGTHS = st.lists(st.integers(0, 9) | st.integers(0, 3000), min_size=1, max_size=8)
_STAGES = (
    "shuffle(7, seed=3) | batch(4)",
    "batch(3) | batch(2)",
    "take(5) | repeat(3)",
    "shard(2, 1) | shuffle(3, seed=1) | repeat",
    "skip(2) | batch(2) | unbatch | batch(3)",
    "sample_from_datasets([train | repeat, train[2:] | repeat], weights=[0.7, 0.3], seed=4)",
    "zip(train, train[1:]) | batch(3)",
)
_OF_LOADERS: tuple[dict[str, Any], ...] = (
    {"loader": "torch"},
    {"loader": "torch", "shuffle": True, "global_seed": 3},
    {"loader": "hf", "streaming": True, "batch": 3},
    {"loader": "grain", "shuffle_seed": 3, "epochs": 2, "batch": 2},
)


def dataset(*lengths: int, name: str = "train") -> Dataset:
    """Return a dataset of one split."""
    return Dataset(name="d", splits=(Split(name=name, shard_lengths=lengths),))


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    """Return a dataset of a split or two, with empty shards too."""
    names = draw(st.lists(st.sampled_from(_NAMES), min_size=1, max_size=2, unique=True))
    splits = tuple(Split(name=name, shard_lengths=tuple(draw(_LENGTHS))) for name in names)
    return Dataset(name="d", splits=splits)


def _optional(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


_READ = st.fixed_dictionaries(
    {
        "cycle": st.sampled_from([1, 2, 3, 16, 40, 4096]),
        "block": st.sampled_from([1, 2, 3, 16, 1000]),
        "epochs": st.integers(1, 3),
    },
    optional={
        "batch": st.sampled_from([1, 2, 5, 32]),
        "shuffle_seed": st.integers(0, 5),
        "host": st.sampled_from(["0/2", "1/3"]),
        "drop_remainder": st.booleans(),
    },
)
_BUFFERED = st.builds(
    lambda read, size: {**read, "buffer": size, "buffer_seed": 1}, _READ, st.integers(1, 50)
)
_SETTINGS = st.one_of(
    _READ,
    _BUFFERED,
    st.sampled_from(_OF_LOADERS),
    st.builds(lambda text: {"stages": text}, st.sampled_from(_STAGES)),
)


@st.composite
def simulations(draw: st.DrawFn) -> Simulation:
    """Return a stretch of the order of a dataset, empty ones and all of it among them."""
    files = draw(datasets())
    settings = draw(_SETTINGS)
    spec: str | None = "+".join(split.name for split in files.splits)
    if "train" in settings.get("stages", ""):  # whose readers have specs of their own
        spec = None
    try:
        simulation = simulate(files, spec, settings, take=draw(st.sampled_from([0, 1, 20, 500])))
        total = simulation.order.num_examples
        skip = draw(st.integers(0, min(total, 10**6)))
        return simulate(files, spec, settings, skip=skip, take=simulation.take)
    except ShardctlError:
        reject()
        raise


@st.composite
def evaluations(draw: st.DrawFn) -> Evaluation:
    """Return an evaluation of few hosts or many, of which some may have nothing to read."""
    lengths = draw(_LENGTHS | st.lists(st.integers(0, 10**7), min_size=1, max_size=40))
    try:
        return evaluate(
            dataset(*lengths, name="test"),
            None,
            ReadSettings(host_by=draw(st.sampled_from(["even", "files", "examples"]))),
            batch=draw(st.sampled_from([1, 2, 7, 64, 4096])),
            devices=draw(st.sampled_from([1, 8])),
            hosts=draw(st.integers(1, 40) | st.sampled_from([1000, 100_000])),
            remainder=draw(st.sampled_from(["ragged", "drop", "pad"])),
        )
    except ShardctlError:
        reject()
        raise
