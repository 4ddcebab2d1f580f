from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset
from shardctl.errors import UsageError
from shardctl.order.plan_order import plan_order
from shardctl.order.resolved_spec import resolved_spec
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.stages.text import parse_stages
from shardctl.verbs.resume.answer import codes_of, resume_unseen
from shardctl.verbs.resume.proof import prove
from tests.cases import check_cases
from tests.golden import assert_evaluated
from tests.strategies import shard_lengths
from tests.verbs.resume.resume_cases import TOY, dataset, entries


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param([], [(0, 0, 3), (1, 0, 5), (2, 0, 3)], id="nothing seen"),
        pytest.param([0, 0, 5, 4, 10], [(0, 1, 2), (1, 0, 1), (1, 3, 2), (2, 0, 2)], id="some"),
        pytest.param(range(11), [], id="everything"),
        pytest.param([0, 1, 2, 3], [(1, 1, 4), (2, 0, 3)], id="a whole file and more"),
    ],
)
def test_the_unseen_are_read_in_the_order_of_the_files(seen: Any, expected: Any) -> None:
    plan = resume_unseen(TOY, "train", seen=seen)
    assert entries(plan) == expected
    assert (plan.remaining, plan.consumed) == (11 - len(set(seen)), len(set(seen)))
    assert (plan.mode, plan.from_seen) == ("exactly-once", True)


def test_examples_that_are_not_read_here_are_a_warning() -> None:
    plan = resume_unseen(TOY, "train[:4]", seen=[1, 4, 6])
    assert entries(plan) == [(0, 0, 1), (0, 2, 1), (1, 0, 1)]
    assert "2 of the seen examples are not in" in plan.warnings[0]


def test_a_host_continues_with_its_own_share() -> None:
    even = ReadSettings(host=Host(index=1, count=2))
    assert entries(resume_unseen(TOY, "train", even, seen=[7])) == [(1, 3, 1), (2, 0, 3)]
    files = ReadSettings(host=Host(index=1, count=2), host_by="files")
    assert entries(resume_unseen(TOY, "train", files, seen=[4])) == [(1, 0, 1), (1, 2, 3)]
    examples = ReadSettings(host=Host(index=1, count=2), host_by="examples")
    with pytest.raises(UsageError, match="depends on the order"):
        resume_unseen(TOY, "train", examples, seen=[4])


@dataclass(frozen=True, kw_only=True)
class Case:
    """A spec, and which of its examples were seen (places in a list, any number of times)."""

    dataset: Dataset
    spec: str
    picks: tuple[int, ...]
    host: Host | None
    host_by: Any


@st.composite
def cases(draw: st.DrawFn) -> Case:
    lengths = shard_lengths(max_shards=8, max_length=20)
    count = draw(st.integers(1, 3))
    host = Host(index=draw(st.integers(0, count - 1)), count=count)
    specs = ("train", "train[10%:70%]", "train+test", "test[:3]+train[2:]+train[:5]")
    return Case(
        dataset=dataset(train=draw(lengths.filter(lambda x: sum(x) > 5)), test=(2, 3)),
        spec=draw(st.sampled_from(specs)),
        picks=tuple(draw(st.lists(st.integers(0, 10**6), max_size=60))),
        host=draw(st.none() | st.just(host)),
        host_by=draw(st.sampled_from(["even", "files"])),
    )


def check(case: Case) -> None:
    settings = ReadSettings(host=case.host, host_by=case.host_by)
    try:
        order = plan_order(case.dataset, case.spec, settings).order
    except UsageError:  # fewer files than hosts
        return
    codes = codes_of(resolved_spec(case.dataset, case.spec))
    everything = plan_order(case.dataset, case.spec, ReadSettings()).order
    pool = everything.read(0, everything.num_examples)
    seen = [int(pool[pick % len(pool)]) for pick in case.picks]
    own = set(order.codes.tfds_ids(order.read(0, order.num_examples)))
    plan = resume_unseen(case.dataset, case.spec, settings, seen=seen)
    read = Counter(
        f"{i.filename}__{i.skip + k}" for i in plan.file_instructions for k in range(i.take)
    )
    assert read == Counter(own - set(codes.tfds_ids(seen)))
    assert all(i.take > 0 for i in plan.file_instructions)


@pytest.mark.long
def test_every_unseen_example_is_read_exactly_once() -> None:
    check_cases(cases(), check, 50)


def test_stages_of_any_kind_leave_what_the_log_does_not_have() -> None:
    def left(stages: str, seen: list[int]) -> int:
        settings = ReadSettings(stages=parse_stages(stages))
        plan = resume_unseen(TOY, None, settings, seen=seen)
        assert (plan.consumed, plan.continued_by) == (len(set(seen)), "file_instructions")
        assert sum(i.take for i in plan.file_instructions) == plan.remaining
        assert prove(TOY, plan, seen=np.array(seen, np.int64)).holds
        cut = any(word in stages for word in ("filter", "flat_map", "take", "skip"))
        assert any("count as unseen" in text for text in plan.warnings) is cut
        return plan.remaining

    assert_evaluated(globals(), "seen", left)


def test_a_shard_among_stages_is_known_by_the_order_alone() -> None:
    for stages in ("shard(2, 1) | filter", "zip(train | shard(2, 0), test)"):
        with pytest.raises(UsageError, match="shard among the --stages"):
            resume_unseen(TOY, None, ReadSettings(stages=parse_stages(stages)), seen=[])
