from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.files.documents import to_json, to_yaml
from shardctl.order.plan_order import plan_order
from shardctl.saved.plan_file import parse_plan, plan_document
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.spec.reads import reads_of
from shardctl.spec.subsplit import SplitRange
from shardctl.verbs.resume.answer import resume
from shardctl.verbs.resume.apply_plan import applied
from shardctl.verbs.resume.hosts import HostsMode, resume_on_hosts
from shardctl.verbs.resume.proof import prove
from shardctl.verbs.resume.rest_of_epoch import even_shares
from tests.cases import FUZZ, check_cases
from tests.golden import assert_evaluated
from tests.order.order_cases import changed, read_settings
from tests.strategies import shard_lengths
from tests.verbs.resume.plan_cases import TOY as BIG
from tests.verbs.resume.resume_cases import TOY, dataset


def test_hosts_in_different_epochs_leave_something_of_each() -> None:
    settings = ReadSettings(cycle=1, epochs=3)
    plan = resume_on_hosts(TOY, "train", settings, hosts=2, to_hosts=1, consumed=[5, 6])
    # Host 0 has id 5 of epoch 0 left and all 6 of epoch 1; host 1 has read 1 of 5 of epoch 1.
    assert (plan.epoch, plan.remaining, plan.num_further_epochs) == (1, 1 + 6 + 4, 1)
    assert "epochs 0 to 1" in plan.warnings[0]


def test_a_host_without_examples_is_in_no_epoch() -> None:
    toy = dataset(train=(1,))
    settings = ReadSettings(epochs=3)
    plan = resume_on_hosts(toy, "train", settings, hosts=2, to_hosts=1, consumed=[0])
    assert (plan.epoch, plan.remaining, plan.num_further_epochs) == (0, 1, 2)


def test_what_cannot_be_shared_is_refused() -> None:
    assert_evaluated(globals(), "not_shared")


@dataclass(frozen=True, kw_only=True)
class Case:
    """Hosts of one number that stop, each somewhere, and the number that resumes."""

    dataset: Dataset
    spec: str
    settings: ReadSettings
    stops: tuple[int, ...]
    to_hosts: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    lengths = shard_lengths(max_shards=8, max_length=20)
    toy = dataset(train=draw(lengths.filter(any)), test=draw(lengths))
    settings = draw(read_settings(hosts=()))
    return Case(
        dataset=toy,
        spec=draw(st.sampled_from(("train", "train[10%:70%]", "train+test", "train+train"))),
        settings=replace(
            settings,
            host_by=draw(st.sampled_from(["even", "files", "examples"])),
            repeat_files=False,
        ),
        stops=tuple(draw(st.lists(st.integers(0, 10**6), min_size=1, max_size=5))),
        to_hosts=draw(st.integers(1, 6)),
    )


def new_hosts(case: Case) -> list[ReadSettings]:
    hosts = [Host(index=i, count=case.to_hosts) for i in range(case.to_hosts)]
    one = replace(case.settings, epochs=1, batch=None, drop_remainder=False)
    return [replace(one, host=host) for host in hosts]


def handed_out_in_all(case: Case, plan: ResumePlan) -> int:
    """Count what each new host has: its share and its own epochs, in whole batches if it drops."""
    total = 0
    for share, settings in zip(plan.hosts, new_hosts(case), strict=True):
        each = share.num_examples
        if plan.num_further_epochs:
            order = plan_order(case.dataset, case.spec, settings).order
            each += plan.num_further_epochs * order.num_examples
        if case.settings.drop_remainder:
            each -= each % (case.settings.batch or 1)
        total += each
    return total


def read_by(plan: ResumePlan) -> Counter[str]:
    """Return the tfds_ids that the new hosts of a plan read."""
    return Counter(
        f"{i.filename}__{i.skip + k}"
        for host in plan.hosts
        for i in host.instructions
        for k in range(i.take)
    )


def check(case: Case) -> None:
    """Add up what the old hosts have handed out and what the new ones are to read."""
    count = len(case.stops)
    hosts = [replace(case.settings, host=Host(index=i, count=count)) for i in range(count)]
    try:
        orders = [plan_order(case.dataset, case.spec, host).order for host in hosts]
    except UsageError:  # fewer files than hosts
        return
    consumed = [
        stop % (order.num_examples + 1) for stop, order in zip(case.stops, orders, strict=True)
    ]
    try:
        made = resume_on_hosts(
            case.dataset,
            case.spec,
            case.settings,
            hosts=count,
            to_hosts=case.to_hosts,
            consumed=consumed,
        )
    except UsageError as error:
        assert "so no host could read the epochs that follow" in str(error)  # noqa: PT017
        with pytest.raises(UsageError, match="TFDS needs one a host at least"):
            plan_order(case.dataset, case.spec, new_hosts(case)[0])
        return
    assert made.remaining_total == handed_out_in_all(case, made)
    plan = parse_plan(
        "".join((to_json, to_yaml)[count % 2](plan_document(made))).encode(), source="plan"
    )
    assert plan == made
    plan = applied(plan, case.dataset)
    expected: Counter[str] = Counter()
    for order, emitted, host in zip(orders, consumed, hosts, strict=True):
        whole = replace(host, batch=None, drop_remainder=False)
        unbatched = plan_order(case.dataset, case.spec, whole).order
        stop = (plan.epoch + 1) * order.epoch_size
        if emitted == order.num_examples:
            stop = emitted
        codes = unbatched.read(emitted, stop)
        expected += Counter(order.codes.tfds_ids(codes))
    assert all(i.take > 0 for share in plan.hosts for i in share.instructions)
    assert read_by(plan) == expected
    sizes = [share.num_examples for share in plan.hosts]
    assert len(sizes) == case.to_hosts
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) - min(sizes) <= 1
    assert plan.remaining == sum(sizes)


@pytest.mark.long
def test_no_example_is_lost_or_repeated() -> None:
    check_cases(cases(), check, 24)


@pytest.mark.fuzz
def test_no_example_is_lost_or_repeated_fuzzed() -> None:
    check_cases(cases(), check, FUZZ * 2)


def check_unseeded(case: Case, mode: HostsMode, number: int) -> None:
    """Stop hosts whose buffers have some seeds, and go on with other hosts without the seeds."""
    settings = changed(case.settings, batch=None, drop_remainder=False, global_seed=None)
    settings = changed(settings, buffer=number % 12 + 1, buffer_seed=None)
    if settings.shuffles_files:
        settings = changed(settings, shuffle_seed=number)
    num_hosts, consumed, orders = len(case.stops), [], []
    try:
        for index, stop in enumerate(case.stops):
            host = Host(index=index, count=num_hosts)
            own = changed(settings, host=host, buffer_seed=number + index)
            orders.append(plan_order(case.dataset, case.spec, own).order)
            consumed.append(stop % (orders[-1].num_examples + 1))
        plan = resume_on_hosts(
            *(case.dataset, case.spec, settings),
            hosts=num_hosts,
            to_hosts=case.to_hosts,
            consumed=consumed,
            mode=mode,
            risk=0.5 if mode == "at-least-once" else None,
        )
    except UsageError:  # fewer files than hosts
        return
    assert prove(case.dataset, plan).holds
    every, handed, sure = Counter[str](), Counter[str](), plan.unseeded
    for order, count in zip(orders, consumed, strict=True):
        ids = order.codes.tfds_ids(order.read(0, order.num_examples))
        handed.update(ids[:count])
        # A host that is through is in no epoch of the others.
        every.update(ids[: count if count == len(ids) else (plan.epoch + 1) * order.epoch_size])
    again = read_by(plan)
    lost, repeated = (every - handed - again).total(), (handed + again - every).total()
    assert sure is not None
    assert lost <= sure.most_lost <= num_hosts * (sure.buffer_size - 1)
    assert sure.least_repeated <= repeated <= sure.most_repeated
    if mode == "at-most-once":
        assert (lost, repeated) == (sure.most_lost, 0)


@pytest.mark.parametrize("mode", ["at-most-once", "at-least-once"])
def test_other_hosts_lose_and_repeat_what_the_plan_says(mode: HostsMode) -> None:
    drawn = st.tuples(cases(), st.integers(1, 10**6))
    check_cases(drawn, lambda one: check_unseeded(one[0], mode, one[1]), 30)


@given(shard_lengths(), st.integers(1, 9))
def test_shares_are_stretches_of_the_list_as_even_as_can_be(
    lengths: tuple[int, ...], num_hosts: int
) -> None:
    files = ShardFiles(pattern="d-\0", num_shards=len(lengths))
    split = Split(name="train", shard_lengths=lengths, files=(files,))
    whole = SplitRange(split=split, start=0, stop=split.num_examples)
    shares = even_shares(reads_of(Dataset(name="d", splits=(split,)), [whole]), num_hosts)
    assert [(share.index, share.count) for share in shares] == [
        (index, num_hosts) for index in range(num_hosts)
    ]
    ids = [[i.first_id + k for i in s.instructions for k in range(i.take)] for s in shares]
    assert [example for share in ids for example in share] == list(range(split.num_examples))
    sizes = [len(share) for share in ids]
    assert sizes == [share.num_examples for share in shares]
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(("to_hosts", "epochs", "total"), [(4, 1, 2), (3, 1, 4), (9, 3, 14)])
def test_what_new_hosts_drop_is_not_left(to_hosts: int, epochs: int, total: int) -> None:
    """Of 7 examples 5 are left, in batches of 2.

    4 hosts have 2, 1, 1 and 1; 3 have 2, 2 and 1; of 9, with two more epochs, five have 1 + 2, two
    have 2, and two have none.
    """
    settings = ReadSettings(batch=2, drop_remainder=True, epochs=epochs)
    toy = dataset(train=(3, 4))
    plan = resume_on_hosts(toy, "train", settings, hosts=1, to_hosts=to_hosts, consumed=2)
    assert plan.remaining_total == total
    assert "each new host drops its partial last batch" in plan.warnings[-1]


def test_the_risk_is_that_of_all_hosts_together() -> None:
    settings = ReadSettings(buffer=4)

    def planned(**arguments: Any) -> Any:
        return resume_on_hosts(
            BIG, "train", settings, **{"hosts": 2, "to_hosts": 1, "consumed": [9], **arguments}
        )

    plan = planned(mode="at-least-once", risk=1.0)
    alone = [
        resume(
            BIG,
            "train",
            replace(settings, host=Host(index=index, count=2)),
            consumed=9,
            mode="at-least-once",
            risk=0.5,
        ).unseeded
        for index in range(2)
    ]
    assert plan.unseeded.expected_lost == sum(one.expected_lost for one in alone if one)
    assert plan.unseeded.first_read == sum(one.first_read for one in alone if one)
    assert plan.unseeded.risk == 1.0
    # A host that had not begun takes none of it.
    begun = planned(mode="at-least-once", risk=1.0, consumed=[9, 0]).unseeded
    only = replace(settings, host=Host(index=0, count=2))
    sure = resume(BIG, "train", only, consumed=9, mode="at-least-once", risk=1.0).unseeded
    assert begun.expected_lost == (sure and sure.expected_lost)
    with pytest.raises(UsageError, match="at most the size of the buffer, 4"):
        planned(mode="at-least-once", risk=4.5)
    with pytest.raises(UsageError, match="risk is read with --mode at-least-once only"):
        planned(mode="at-most-once", risk=0.5)
    with pytest.raises(UnpredictableOrderError, match="--mode at-most-once skips it"):
        planned()
    with pytest.raises(UsageError, match="choose from exactly-once, at-most-once, at-least-once"):
        planned(mode="exact-order")
