"""What a plan of a loader says, done with the real library: it hands out what is left."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UsageError
from shardctl.live.verify import verify_loader_plan
from shardctl.loaders.loader import LoaderCall
from shardctl.saved.resume_plan import ResumePlan
from shardctl.verbs.resume.answer import resume, resume_unseen
from shardctl.verbs.resume.proof import prove
from tests.cases import counted

NUM = 23
DATA = Dataset(name="d", splits=(Split(name="train", shard_lengths=(9, 14)),))
EPOCHS = 3
Told = dict[str, int]


def batches_of_grain(told: Told) -> Iterator[Any]:
    grain = importlib.import_module("grain")
    sampler = grain.samplers.IndexSampler(
        NUM, grain.sharding.NoSharding(), shuffle=True, num_epochs=EPOCHS, seed=3
    )
    batch = [grain.transforms.Batch(4)]
    return iter(grain.DataLoader(data_source=range(NUM), sampler=sampler, operations=batch))


def batches_of_sampler(told: Told, kind: Any, sampler_kind: Any) -> Iterator[Any]:
    sampler = sampler_kind(range(NUM), num_replicas=2, rank=1, seed=3)
    loader = kind(range(NUM), batch_size=4, sampler=sampler)
    for epoch in range(told["set_epoch"], EPOCHS):
        sampler.set_epoch(epoch)
        yield from loader


def batches_of_torch(told: Told) -> Iterator[Any]:
    data = importlib.import_module("torch.utils.data")
    distributed = importlib.import_module("torch.utils.data.distributed")
    return batches_of_sampler(told, data.DataLoader, distributed.DistributedSampler)


def batches_of_stateful(told: Told) -> Iterator[Any]:
    there = importlib.import_module("torchdata.stateful_dataloader")
    sampler = importlib.import_module("torchdata.stateful_dataloader.sampler")
    return batches_of_sampler(told, there.StatefulDataLoader, sampler.StatefulDistributedSampler)


def batches_of_iterations(told: Told) -> Iterator[Any]:
    torch = importlib.import_module("torch")
    torch.manual_seed(told["manual_seed"])
    loader = torch.utils.data.DataLoader(range(NUM), batch_size=4, shuffle=True)
    for _ in range(told.get("iterations", 0)):
        list(loader)
    for _ in range(told["left"]):
        yield from loader


def batches_of_accelerate(told: Told) -> Iterator[Any]:
    torch = importlib.import_module("torch")
    accelerate = importlib.import_module("accelerate.data_loader")
    loader = torch.utils.data.DataLoader(range(NUM), batch_size=4, shuffle=True)
    loader = accelerate.prepare_data_loader(
        loader, num_processes=1, process_index=0, use_seedable_sampler=True, data_seed=3
    )
    first = accelerate.skip_first_batches(loader, told["skip_first_batches"])
    first.set_epoch(told["set_epoch"])
    yield from first
    for epoch in range(told["set_epoch"] + 1, EPOCHS):
        loader.set_epoch(epoch)
        yield from loader


def batches_of_rows(told: Told) -> Iterator[Any]:
    datasets = importlib.import_module("datasets")
    dataset = datasets.Dataset.from_dict({"index": list(range(NUM))}).shuffle(seed=3)
    return (batch["index"] for _ in range(told["left"]) for batch in dataset.iter(4))


def batches_of_stream(told: Told) -> Iterator[Any]:
    datasets = importlib.import_module("datasets")

    def rows(shards: list[tuple[int, int]]) -> Iterator[dict[str, int]]:
        for start, stop in shards:
            yield from ({"index": i} for i in range(start, stop))

    shards = {"shards": [(0, 9), (9, NUM)]}
    dataset = datasets.IterableDataset.from_generator(rows, gen_kwargs=shards)
    dataset = dataset.shuffle(seed=3, buffer_size=5)
    for epoch in range(told["set_epoch"], EPOCHS):
        dataset.set_epoch(epoch)
        yield from (batch["index"] for batch in dataset.iter(4))


WAYS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "grain": ("grain", batches_of_grain, {"loader": "grain", "shuffle_seed": 3}),
    "torch": ("torch", batches_of_torch, {"loader": "torch", "shuffle_seed": 3, "host": "1/2"}),
    "iterations of torch": (
        "torch",
        batches_of_iterations,
        {"loader": "torch", "shuffle": True, "global_seed": 7},
    ),
    "iterations of torch in a later pass": (
        "torch",
        batches_of_iterations,
        {"loader": "torch", "shuffle": True, "global_seed": 7, "pass": 1},
    ),
    "stateful": (
        "torchdata",
        batches_of_stateful,
        {"loader": "stateful", "shuffle_seed": 3, "host": "1/2"},
    ),
    "accelerate": (
        "accelerate",
        batches_of_accelerate,
        {"loader": "accelerate", "shuffle_seed": 3},
    ),
    "hf by index": ("datasets", batches_of_rows, {"loader": "hf", "shuffle_seed": 3}),
    "hf streams": (
        "datasets",
        batches_of_stream,
        {"loader": "hf", "shuffle_seed": 3, "buffer": 5, "arrow": False},
    ),
}


def as_called(plan: ResumePlan, batches: Any) -> list[int]:
    """Return what a real loader hands out behind the calls of a plan."""
    told: Told = {"left": 1 + plan.num_further_epochs}
    for call in plan.after_read:
        assert isinstance(call, LoaderCall)
        told[call.call] = next(iter(call.arguments.values()))
    rest = islice(batches(told), told.get("skip", 0), None)
    numbers = [int(one) for batch in rest for one in np.ravel(batch)]
    return numbers[told.get("skip_in_batch", 0) :]


def listed(plan: ResumePlan) -> list[int]:
    pairs = zip(plan.instructions.first, plan.instructions.take, strict=True)
    return [int(first) + i for first, take in pairs for i in range(take)]


@pytest.mark.parametrize("way", WAYS)
def test_the_library_hands_out_what_the_plan_and_its_proof_say(way: str) -> None:
    library, batches, settings = WAYS[way]
    pytest.importorskip(library, reason=f"needs {library}")
    settings = {**settings, "batch": 4, "epochs": EPOCHS}
    whole = as_called(resume(DATA, "train", settings, consumed=0), batches)
    for consumed in counted([0, 1, 4, 6, 11, 12, 20, len(whole) // EPOCHS, len(whole) - 3]):
        plan = resume(DATA, "train", settings, consumed=consumed)
        rest = as_called(plan, batches)
        assert rest == whole[consumed:]
        assert listed(plan) == rest[: plan.remaining]
        proof = prove(DATA, plan)
        assert (proof.holds, proof.compared) == (True, len(rest))


def test_a_plan_is_verified_by_the_library_and_its_proof() -> None:
    pytest.importorskip("torch", reason="needs PyTorch")
    settings = {"loader": "torch", "shuffle_seed": 3, "batch": 4, "epochs": 2}
    plan = resume(DATA, "train", settings, consumed=9)
    assert verify_loader_plan(DATA, plan).equal
    fewer = replace(plan, instructions=plan.instructions.select(slice(1, None)))
    found = verify_loader_plan(DATA, fewer)
    lost = int(plan.instructions.take[0])
    assert not found.equal
    assert found.unequal[0].startswith(f"the plan does not read the rest: lost {lost}, repeated 0")
    log = resume_unseen(DATA, "train", settings, seen=[1])
    with pytest.raises(UsageError, match="verify reads no plan of a loader from a log"):
        verify_loader_plan(DATA, log)
