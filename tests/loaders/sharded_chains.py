"""Random chains of Streaming, litdata and WebDataset: run by the real libraries, and recorded.

    python -m tests.loaders.sharded_chains streaming 12

records so many orders of the installed version, in `sharded/recorded.json`.
"""

from __future__ import annotations

import json
import sys
from importlib import metadata
from itertools import chain, islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.loaders.loader import LOADERS, library_of
from shardctl.order.loader_order import LoaderOrder
from shardctl.order.plan_order import plan_order

FILE = Path(__file__).with_name("sharded_recorded.json")
MOST = 300  # examples of what has no end
Rows = list[list[int]]


def _some(random: Random, **choices: tuple[Any, ...]) -> str:
    said = {name: random.choice(of) for name, of in choices.items() if random.random() < 0.5}
    return ", ".join(f"{name}={value}" for name, value in said.items())


def _streaming(random: Random, world: int) -> str:
    batch = random.choice((1, 2, 3, 4, 8))
    said = _some(
        random,
        shuffle_algo=("py1e", "py1s", "py1br", "py2s", "naive"),
        shuffle_seed=(0, 1, random.randrange(10**6)),
        shuffle_block_size=(8, 20, 300),
        num_canonical_nodes=(1, 2, 4),
        sampling_method=("balanced", "fixed"),
        sampling_granularity=(1, 3),
        partition_algo=("relaxed", "orig"),
        batching_method=("random", "stratified", "per_stream"),
        **({"local_world_size": (1, 2, world), "replication": (1, 2)} if world > 1 else {}),
    )
    weight = random.choice(("", "proportion", "repeat"))
    weights = [f"Stream({weight}={random.choice((0.5, 1, 1.7))})" for _ in range(2)]
    one, two = (
        f"{n} | {w}" if weight else n for n, w in zip(("train", "test"), weights, strict=True)
    )
    source = random.choice(("train", f"streams({one}, {two})"))
    text = (
        f"{source} | StreamingDataset(shuffle={random.random() < 0.8}, batch_size={batch}, {said}"
    )
    if random.random() < 0.3:
        state = f"epoch=1, sample_in_epoch={random.choice((0, 8, 16))}, num_canonical_nodes=2"
        text += f") | load_state_dict({state}, initial_physical_nodes={random.choice((1, 2))}"
    return f"{text})"


def _litdata(random: Random, world: int) -> str:
    said = [
        _some(
            random,
            shuffle=("True", "True", "False"),
            drop_last=("True", "False"),
            seed=(0, random.randrange(10**6)),
            subsample=(0.5, 1.5),
        )
        for _ in range(2)
    ]
    one, two = (
        f"{n} | StreamingDataset({s})" for n, s in zip(("train", "test"), said, strict=True)
    )
    mixed = random.choice(("", ", weights=[0.3, 0.7], iterate_over_all=False"))
    return random.choice((one, one, f"CombinedStreamingDataset({one}, {two}{mixed})"))


def _webdataset(random: Random, world: int) -> str:
    seed, size = random.randrange(99), random.choice((2, 5, 100))
    stages = [f"shuffle({size}, initial=3, seed={seed})", f"shuffle({size}, rng={seed})"]
    stages += [f"slice({size})", "batched(3, partial=False) | unbatched", "map"]
    many = [random.choice(stages) for _ in range(random.randrange(3))]
    shuffled = f"shardshuffle={size}, seed={seed}, detshuffle={random.random() < 0.5}"
    whole = f"WebDataset({shuffled}, nodesplitter=split_by_node, empty_check=False)"
    drawn = f"ResampledShards(deterministic=True, seed={seed}, nshards={size})"
    pipeline = f"{drawn} | split_by_node | split_by_worker | tarfile_to_samples"
    first = random.choice((whole, whole, f"{pipeline} | detshuffle({size})"))
    text = " | ".join(["train", first, *many])
    if random.random() < 0.3:
        text = f"RoundRobin({text}, test | {whole}, longest={random.random() < 0.5})"
    end = ("", "", "", " | with_epoch(17)", " | repeat(2)", " | batched(4) | WebLoader(None)")
    return text + random.choice(end)


_MADE = {"streaming": _streaming, "litdata": _litdata, "webdataset": _webdataset}


def chain_of(loader: str, random: Random, *, workers: tuple[int | None, ...]) -> dict[str, Any]:
    """Return settings with a random chain of a loader, on a random rank."""
    world = random.choice((1, 1, 2, 4))
    found: dict[str, Any] = {"stages": _MADE[loader](random, world)}
    found["workers"] = random.choice(workers)
    found |= {"host": f"{random.randrange(world)}/{world}"} if world > 1 else {}
    found |= {"epochs": random.choice((1, 2)), "loader": loader}
    if "load_state_dict" not in found["stages"]:
        found["pass"] = random.choice((0, 0, 1))
    if "WebLoader" not in found["stages"] and loader != "streaming":
        found |= {"batch": random.choice((1, 3, 8))}
    return {name: value for name, value in found.items() if value is not None}


def lengths_of(random: Random) -> list[list[int]]:
    """Return the lengths of the shards of two splits."""
    return [[random.randint(1, random.choice((5, 30))) for _ in range(6)] for _ in range(2)]


def order_of(lengths: list[list[int]], settings: dict[str, Any], version: str) -> LoaderOrder:
    """Return the order of a chain over shards of given lengths."""
    pairs = zip(("train", "test"), lengths, strict=True)
    splits = tuple(Split(name=name, shard_lengths=of) for name, of in pairs)
    order = plan_order(
        Dataset(name="toy", splits=splits), None, {**settings, "loader_version": version}
    ).order
    assert isinstance(order, LoaderOrder)
    return order


def predicted(order: LoaderOrder) -> Rows:
    """Return what a rule predicts, batch by batch."""
    found, batches = order.sequence, order.sequence.batches
    if batches is None:
        return [[index] for index in found.indices_at(np.arange(found.num_examples)).tolist()]
    bounds = (batches.bounds(step) for step in range(batches.num_batches))
    return [found.indices_at(np.arange(*each)).tolist() for each in bounds]


def real(order: LoaderOrder) -> Rows:
    """Return what the library yields."""
    rows = library_of(order.loader).batches(order.config)
    return [np.atleast_1d(row).tolist() for row in islice(rows, MOST)]


def cases(loader: str, random: Random, version: str, **more: Any) -> Any:
    """Yield lengths, settings and orders, of chains that are not refused."""
    while True:
        lengths, settings = lengths_of(random), chain_of(loader, random, **more)
        try:
            yield lengths, settings, order_of(lengths, settings, version)
        except (UsageError, UnpredictableOrderError):
            continue


def record(loader: str, count: int) -> None:
    """Record orders of the installed version of a library."""
    found = json.loads(FILE.read_text("utf-8")) if FILE.exists() else []
    version = metadata.version(LOADERS[loader].library)
    found = [
        case for case in found if (case["settings"]["loader"], case["version"]) != (loader, version)
    ]
    rows = cases(loader, Random(1), version, workers=(None, None, 2))
    for lengths, settings, order in islice((r for r in rows if r[2].num_examples < 90), count):
        case = {"version": version, "lengths": lengths, "settings": settings}
        found.append({**case, "sizes": [*map(len, real(order))], "ids": [*chain(*real(order))]})
    text = json.dumps(found, separators=(",", ":")).replace('},{"version', '},\n{"version')
    FILE.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    record(sys.argv[1], int(sys.argv[2]))
