"""Plans of loaders: proved, written, read back, found in a dataset, compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardctl
from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError, UsageError
from shardctl.loaders.loader import LoaderCall
from shardctl.order.plan_order import plan_order
from shardctl.saved.plan_file import parse_plan, plan_json, plan_yaml
from shardctl.saved.resume_plan import ResumePlan
from shardctl.verbs.resume.answer import resume
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
def test_from_wherever_it_stopped_the_rest_is_the_rest(way: str) -> None:
    """What came before and what the plan lists of its epoch are each example of that as it was."""
    order = plan_order(TOY, "train", WAYS[way]).order
    everything = order.read(0, order.num_examples)
    epochs = order.epoch_of(np.arange(order.num_examples))
    for consumed in range(order.num_examples + 1):
        plan = resume(TOY, "train", WAYS[way], consumed=consumed)
        proof = prove(TOY, plan)
        assert proof.holds
        assert (proof.lost, proof.repeated, proof.moved) == (0, 0, 0)
        assert proof.compared == order.num_examples - consumed == plan.remaining_total
        rows = zip(plan.instructions.first, plan.instructions.take, strict=True)
        left = Counter(int(first) + i for first, take in rows for i in range(take))
        before = Counter(everything[:consumed][epochs[:consumed] == plan.epoch].tolist())
        assert before + left == Counter(everything[epochs == plan.epoch].tolist())


def _swapped(plan: ResumePlan) -> ResumePlan:
    rows = np.array([1, 0, *range(2, len(plan.instructions))])
    return replace(plan, instructions=plan.instructions.select(rows))


def _shortened(plan: ResumePlan) -> ResumePlan:
    return replace(plan, instructions=plan.instructions.select(slice(1, None)))


def _doubled(plan: ResumePlan) -> ResumePlan:
    rows = np.array([0, *range(len(plan.instructions))])
    return replace(plan, instructions=plan.instructions.select(rows))


@of_ways
@pytest.mark.parametrize(
    ("damage", "lost", "repeated"), [(_swapped, 0, 0), (_shortened, 1, 0), (_doubled, 0, 1)]
)
def test_what_is_wrong_with_a_list_is_counted(
    way: str, damage: Callable[[ResumePlan], ResumePlan], lost: int, repeated: int
) -> None:
    plan = resume(TOY, "train", {**WAYS[way], "epochs": 1}, consumed=1)
    take = int(plan.instructions.take[0])
    proof = prove(TOY, damage(plan))
    assert not proof.holds
    assert proof.moved
    assert (proof.lost, proof.repeated) == (lost * take, repeated * take)


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
@pytest.mark.parametrize("write", [plan_json, plan_yaml])
def test_a_file_holds_all_of_it(way: str, write: Callable[[ResumePlan], Any]) -> None:
    for consumed in (0, 5, 13):
        plan = resume(TOY, "train", {**WAYS[way], "epochs": 1}, consumed=min(consumed, 6))
        read = parse_plan("".join(write(plan)).encode(), source="plan")
        assert (read.stop, read.after_read, read.advice) == (
            plan.stop,
            plan.after_read,
            tuple(map(str, plan.advice)),
        )
        found = applied(read, TOY)
        assert found == plan
        assert prove(TOY, found).holds


def test_a_list_that_is_too_long_is_none_in_the_file_too(tmp_path: Path) -> None:
    settings = {"loader": "torch", "shuffle_seed": 1}
    plan = resume("imagenet2012", "train[:200_000]", settings, consumed=9)
    read = parse_plan("".join(plan_json(plan)).encode(), source="plan")
    assert (read.lists_rest, read.num_instructions) == (False, 0)
    proof = prove("imagenet2012", read)
    assert (proof.holds, proof.compared, proof.moved) == (True, 199_991, 0)


def test_another_dataset_is_refused_as_for_any_plan() -> None:
    plan = parse_plan(
        "".join(plan_json(resume(TOY, "train", WAYS["torch"], consumed=1))).encode(), source="plan"
    )
    grown = replace(TOY.splits[0], shard_lengths=(3, 4, 1, 6))
    with pytest.raises(DatasetError, match="train had 13 examples in 4 shards, now 14 in 4"):
        applied(plan, replace(TOY, splits=(grown,)))


def test_two_plans_are_compared() -> None:
    one, other = (
        shardctl.resume(TOY, "train", {"loader": "torch", "batch": 2}, steps=steps)
        for steps in (2, 3)
    )
    assert shardctl.diff(one, one).equal
    found = shardctl.diff(one, other)
    assert not found.equal
    assert {"consumed", "stop, steps"} <= {change.name for change in found.changes}


@pytest.mark.parametrize("mode", ["at-most-once", "at-least-once"])
def test_no_seed_of_a_stream_is_unknown(mode: Any) -> None:
    with pytest.raises(
        UsageError, match=f"^--mode '{mode}' is for a buffer whose seed is not known"
    ):
        resume(TOY, "train", WAYS["hf streams"], consumed=3, mode=mode)


@pytest.mark.parametrize("loader", ["grain", "torch", "stateful", "accelerate", "hf"])
def test_what_a_log_leaves_over_is_each_example_once(loader: str) -> None:
    settings = {"loader": loader, "shuffle_seed": 3, "batch": 2}
    plan = shardctl.resume_unseen(TOY, "train", settings, seen=[0, 4, 5, 12, 4])
    pairs = zip(plan.instructions.first, plan.instructions.take, strict=True)
    read = [int(first) + i for first, take in pairs for i in range(take)]
    assert read == [1, 2, 3, 6, 7, 8, 9, 10, 11]
    assert (plan.mode, plan.read_config, plan.after_read) == ("exactly-once", None, ())
    assert "in another order" in plan.advice[0]
    assert prove(TOY, plan, seen=[0, 4, 5, 12]).holds
    missed = prove(TOY, plan, seen=[0, 4, 5])
    assert (missed.holds, missed.lost) == (False, 1)


def test_which_examples_are_a_process_own_no_log_says() -> None:
    with pytest.raises(UsageError, match=r"^--seen with --host: which examples .* --to-hosts N$"):
        shardctl.resume_unseen(TOY, "train", {"loader": "torch", "host": "0/2"}, seen=[1])
