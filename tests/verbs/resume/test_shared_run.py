"""Runs that go on with other hosts: every example as often as there are epochs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.order.plan_order import order_of
from shardctl.order.resolved_spec import resolved_spec
from shardctl.saved.resume_plan import RunSegment
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host, HostBy
from shardctl.verbs.resume.stopped_hosts import SharedRun, shared_run
from tests.cases import FUZZ, check_cases, in_this_run
from tests.order.order_cases import read_settings
from tests.strategies import shard_lengths
from tests.verbs.resume.resume_cases import TOY, dataset


def run_of(settings: ReadSettings, *stretches: RunSegment) -> SharedRun:
    return shared_run(resolved_spec(TOY, "train"), settings, stretches)


def host(index: int, count: int) -> Host:
    return Host(index=index, count=count)


def handed_out(run: SharedRun) -> list[int]:
    return [int(code) for chunk in run.chunks(0, run.num_examples) for code in chunk]


def test_two_hosts_become_three() -> None:
    # Of files of 3, 5 and 3, hosts 0 and 1 of an even split have ids 0-5 and 6-10; left of epoch 0
    # are 4, 5 and 8, 9, 10. Of epoch 1 the three hosts have 0-3, 4-7 and 8-10.
    stretch = RunSegment(consumed=(4, 2))
    settings = ReadSettings(cycle=1, epochs=2)
    runs = [run_of(replace(settings, host=host(i, 3)), stretch) for i in range(3)]
    assert [handed_out(run) for run in runs] == [
        [4, 5, 0, 1, 2, 3],
        [8, 9, 4, 5, 6, 7],
        [10, 8, 9, 10],
    ]


def test_an_epoch_that_nobody_has_begun_is_read_as_every_other() -> None:
    settings = ReadSettings(cycle=2, block=1, shuffle_seed=3, epochs=3, buffer=4, buffer_seed=1)
    run = run_of(settings, RunSegment(consumed=(6, 5)))
    assert (run.rest.size, run.rest.epoch, run.num_further_epochs) == (0, 0, 2)
    order = order_of(resolved_spec(TOY, "train"), settings).order
    assert handed_out(run) == order.read(11, 33).tolist()
    before = run_of(settings, RunSegment(consumed=(0, 0)))
    assert handed_out(before) == order.read(0, 33).tolist()
    assert before.plan(0).epoch == 0


@pytest.mark.parametrize(("batch", "num_examples"), [(4, 16), (5, 15), (6, 12), (17, 0)])
def test_batches_run_on_from_the_rest_into_the_epochs_behind_it(
    batch: int, num_examples: int
) -> None:
    settings = ReadSettings(cycle=1, epochs=2, batch=batch, drop_remainder=True)
    run = run_of(settings, RunSegment(consumed=(4, 2), batch=2))
    assert run.num_examples == num_examples  # the whole batches of 5 and 11 examples
    assert handed_out(run) == [4, 5, 8, 9, 10, *range(11)][:num_examples]
    for consumed in range(0, num_examples + 1, batch):
        assert run.plan(consumed).remaining_total == num_examples - consumed


def test_a_count_past_its_part_is_refused() -> None:
    with pytest.raises(UsageError, match="host 1 of 2: --consumed '6': its part has 5 examples"):
        run_of(ReadSettings(), RunSegment(consumed=(6, 6)))
    with pytest.raises(UsageError, match="host 0 of 2: --consumed '4': its part has 3 examples"):
        run_of(ReadSettings(), RunSegment(consumed=(4, 2)), RunSegment(consumed=(4, 2)))


@dataclass(frozen=True, kw_only=True)
class Case:
    """Stretches of a run, each of so many hosts that stop somewhere; 0 hosts is one alone."""

    dataset: Dataset
    spec: str
    settings: ReadSettings
    stops: tuple[tuple[int, ...], ...]
    batches: tuple[int, ...]
    last: int


@st.composite
def cases(draw: st.DrawFn, max_hosts: int = 9) -> Case:
    lengths = shard_lengths(max_shards=8, max_length=20)
    toy = dataset(train=draw(lengths.filter(any)), test=draw(lengths))
    specs = ("train", "train", "train[10%:70%]", "train+test", "train+train")
    # Small numbers: hosts that stop together, at the start of an epoch, or that have done nothing.
    stop = st.integers(0, 10**6) | st.sampled_from([0, 1, 2, 5, 10**9])
    hosts = st.lists(stop, min_size=1, max_size=max_hosts)
    return Case(
        dataset=toy,
        spec=draw(st.sampled_from(specs)),
        settings=replace(
            draw(read_settings(hosts=())),
            host_by=draw(st.sampled_from(["even", "files", "examples"])),
            repeat_files=False,
            pass_index=draw(st.sampled_from([0, 0, 1])),
            loop=draw(st.sampled_from(["python", "python", "keras-fit"])),
        ),
        stops=tuple(tuple(s) for s in draw(st.lists(hosts, min_size=1, max_size=4))),
        batches=tuple(draw(st.lists(st.integers(1, 9), min_size=5, max_size=5))),
        last=draw(st.integers(1, max_hosts)),
    )


def settings_of(case: Case, stretch: int, index: int, count: int) -> ReadSettings:
    """Return the settings of a host; one of one is a process alone in every other stretch."""
    settings = case.settings
    if settings.batch is not None:
        settings = replace(settings, batch=case.batches[stretch])
    modes: tuple[HostBy, ...] = ("even", "files", "examples")
    settings = replace(settings, host_by=modes[case.batches[-1 - stretch] % 3])
    alone = count == 1 and stretch % 2 == 0
    return replace(settings, host=None if alone else host(index, count))


def check(case: Case) -> None:
    """Add up what all hosts of all stretches hand out, by counts alone."""
    resolved = resolved_spec(case.dataset, case.spec)
    done: Counter[int] = Counter()
    stretches: list[RunSegment] = []
    for number, stops in enumerate((*case.stops, (None,) * case.last)):
        consumed, batch = [], None
        host_by = case.settings.host_by
        before = stretches
        for index, given in enumerate(stops):
            settings = settings_of(case, number, index, len(stops))
            batch, host_by = settings.batch, settings.host_by
            try:
                order = order_of(resolved, settings).order
            except (UsageError, UnpredictableOrderError):  # fewer files than hosts, or a race
                return
            if not stretches:
                total = order.num_examples
                stop = total if given is None else given % (total + 1)
                done.update(order.read(0, stop).tolist())
            else:
                run = shared_run(resolved, settings, stretches)
                before = [*run.stretches]
                stop = run.num_examples if given is None else given % (run.num_examples + 1)
                codes = [code for chunk in run.chunks(0, stop) for code in chunk.tolist()]
                assert len(codes) == stop
                done.update(codes)
                check_plan(run, stop)
            consumed.append(stop)
        alone = settings.host is None
        stretch = RunSegment(consumed=tuple(consumed), batch=batch, host_by=host_by, alone=alone)
        stretches = [*before, stretch]
    whole = replace(case.settings, batch=None, drop_remainder=False, loop="python")
    order = order_of(resolved, whole).order
    expected = Counter(order.read(0, order.num_examples).tolist())
    if case.settings.drop_remainder:
        assert done <= expected
    else:
        assert done == expected


def check_plan(run: SharedRun, consumed: int) -> None:
    """Compare a plan with what the run hands out next: the rows, and what the buffer holds."""
    plan = run.plan(consumed)
    assert plan.consumed == consumed
    assert plan.remaining_total == run.num_examples - consumed
    assert (plan.shared is None) or plan.remaining == run.rest.size - consumed
    if plan.shared is not None:
        order = run.planned.order
        left = Counter(str(name) for name in plan.pending or ())
        firsts = order.codes.first_codes(plan.instructions).tolist()
        for first, take in zip(firsts, plan.instructions.take.tolist(), strict=True):
            left.update(order.codes.names(np.arange(first, first + take)))
        next_ones: Counter[str] = Counter()
        for chunk in run.rest.chunks(consumed, run.rest.size, order.codes):
            next_ones.update(order.codes.names(chunk))
        assert left == next_ones


@pytest.mark.long
def test_no_example_is_lost_or_repeated_however_often_the_hosts_change() -> None:
    assert check_cases(cases(max_hosts=5), check, 20) >= in_this_run(20)


@pytest.mark.fuzz
def test_no_example_is_lost_or_repeated_fuzzed() -> None:
    check_cases(cases(), check, FUZZ)
