"""Plans of other loaders: what is left, which calls go on, what a proof and a log find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardctl
from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UsageError
from shardctl.files.documents import Document, to_json, to_yaml
from shardctl.loaders.loader import LOADERS, LoaderCall
from shardctl.order.plan_order import plan_order
from shardctl.saved.plan_file import parse_plan, plan_document
from shardctl.verbs.resume.answer import MOST_INSTRUCTIONS, resume, resume_loader
from shardctl.verbs.resume.apply_plan import applied
from shardctl.verbs.resume.proof import prove

FILES = (ShardFiles(pattern="toy-train-\0", num_shards=4),)
TOY = Dataset(name="toy", splits=(Split(name="train", shard_lengths=(3, 4, 0, 6), files=FILES),))
WAYS: dict[str, dict[str, Any]] = {
    "grain": {"loader": "grain", "shuffle_seed": 3, "epochs": 3, "batch": 4},
    "grain's workers": {"loader": "grain", "epochs": 2, "batch": 2, "workers": 3},
    "torch": {"loader": "torch", "shuffle_seed": 3, "epochs": 3, "host": "1/2", "batch": 2},
    "iterations of torch": {"loader": "torch", "shuffle": True, "global_seed": 5, "epochs": 3},
    "stateful": {"loader": "stateful", "shuffle_seed": 3, "epochs": 2, "batch": 5, "pass": 4},
    "accelerate": {"loader": "accelerate", "shuffle_seed": 3, "epochs": 2, "batch": 3},
    "hf by index": {"loader": "hf", "shuffle_seed": 3, "epochs": 2, "batch": 3},
    "hf streams": {"loader": "hf", "buffer": 4, "shuffle_seed": 3, "arrow": False, "epochs": 3},
}
of_ways = pytest.mark.parametrize("way", WAYS)


@of_ways
def test_a_call_that_leads_elsewhere_is_a_broken_promise(way: str) -> None:
    plan = resume(TOY, "train", WAYS[way], consumed=3)
    *calls, last = plan.after_read
    assert isinstance(last, LoaderCall)
    more = {name: number + 1 for name, number in last.arguments.items()}
    proof = prove(TOY, replace(plan, after_read=(*calls, replace(last, arguments=more))))
    assert not proof.holds
    assert [one.name.partition("[")[0] for one in proof.broken] == ["after_read"]


@of_ways
@pytest.mark.parametrize("write", [to_json, to_yaml])
def test_a_file_holds_all_of_it(way: str, write: Callable[[Document], Any]) -> None:
    for consumed in (0, 5, 13):
        plan = resume(TOY, "train", {**WAYS[way], "epochs": 1}, consumed=min(consumed, 6))
        read = parse_plan("".join(write(plan_document(plan))).encode(), source="plan")
        assert (read.stop, read.after_read, read.advice) == (
            plan.stop,
            plan.after_read,
            tuple(map(str, plan.advice)),
        )
        found = applied(read, TOY)
        assert found == plan
        assert prove(TOY, found).holds


@pytest.mark.long
def test_a_list_that_is_too_long_is_none_in_the_file_too(tmp_path: Path) -> None:
    settings = {"loader": "torch", "shuffle_seed": 1}
    plan = resume("imagenet2012", "train[:200_000]", settings, consumed=9)
    assert plan.advice[-1] == (
        f"more than {MOST_INSTRUCTIONS:,} runs of adjacent examples are left, too many for a "
        "plan; simulate --skip 9 --take 199991 lists the examples"
    )
    read = parse_plan("".join(to_json(plan_document(plan))).encode(), source="plan")
    assert (read.lists_rest, read.num_instructions) == (False, 0)
    proof = prove("imagenet2012", read)
    assert (proof.holds, proof.compared, proof.moved) == (True, 199_991, 0)


def test_which_examples_are_a_process_own_no_log_says() -> None:
    with pytest.raises(UsageError, match=r"^--seen with --host: which examples .* --to-hosts N$"):
        shardctl.resume_unseen(TOY, "train", {"loader": "torch", "host": "0/2"}, seen=[1])


MORE_WAYS: list[dict[str, Any]] = [
    *({"loader": name, "batch": 4, "epochs": 2} for name in LOADERS),
    *({"loader": n, "batch": 4, "epochs": 2, "host": "1/2", "shuffle_seed": 3} for n in LOADERS),
    {"loader": "grain", "batch": 2, "epochs": 2, "workers": 2, "shuffle_seed": 3},
    {"loader": "torch", "shuffle_seed": 3, "epochs": 3, "pass": 2},
    {"loader": "stateful", "shuffle": True, "global_seed": 3, "workers": 2, "batch": 3},
    {"loader": "hf", "buffer": 5, "shuffle_seed": 3, "epochs": 2},
]


@pytest.mark.long
@pytest.mark.parametrize("settings", MORE_WAYS, ids=str)
def test_the_instructions_are_what_is_left_of_the_epoch(settings: dict[str, Any]) -> None:
    order = plan_order(TOY, "train", settings).order
    everything = order.read(0, order.num_examples).tolist()
    epochs = order.epoch_of(np.arange(order.num_examples)).tolist()
    for consumed in range(order.num_examples + 1):
        plan = resume_loader(TOY, "train", settings, consumed=consumed)
        epoch = epochs[min(consumed, len(epochs) - 1)]
        left = [
            i for i, e in zip(everything[consumed:], epochs[consumed:], strict=True) if e == epoch
        ]
        assert (plan.consumed, plan.epoch, plan.remaining) == (consumed, epoch, len(left))
        assert plan.remaining_total == order.num_examples - consumed
        pairs = zip(plan.instructions.first, plan.instructions.take, strict=True)
        read = [int(first) + i for first, take in pairs for i in range(take)]
        assert read == left
        proof = prove(TOY, plan)
        assert (proof.holds, proof.moved, proof.compared) == (True, 0, plan.remaining_total)


@pytest.mark.parametrize("settings", [way for way in MORE_WAYS if "batch" in way], ids=str)
def test_steps_are_batches_of_whatever_size(settings: dict[str, Any]) -> None:
    order = plan_order(TOY, "train", settings).order
    starts = [order.positions_in_step(step).start for step in range(order.num_steps or 0)]
    for steps, consumed in enumerate([*starts, order.num_examples]):
        plan = resume_loader(TOY, "train", settings, steps=steps)
        assert plan.stop is not None
        assert (plan.consumed, plan.stop.steps, plan.stop.in_batch) == (consumed, steps, 0)
        assert plan.warnings == ()
    with pytest.raises(
        UsageError, match=f"^--steps '{len(starts) + 1}': the order has {len(starts)} "
    ):
        resume_loader(TOY, "train", settings, steps=len(starts) + 1)


def test_epochs_that_mix_are_said() -> None:
    """Grain deals 10 records of an epoch to 3 workers, one of which ends it before the others."""
    settings = {"loader": "grain", "epochs": 2, "batch": 2, "workers": 3}
    plan = resume_loader("mnist", "train[:10]", settings, consumed=4)
    order = plan_order("mnist", "train[:10]", settings).order
    epochs = order.epoch_of(range(4, 20)).tolist()
    assert epochs != sorted(epochs)
    assert "come between the listed ones" in plan.advice[-1]
    alone = resume_loader("mnist", "train[:10]", settings | {"epochs": 1}, consumed=4)
    assert not [line for line in alone.advice if "come between" in line]
