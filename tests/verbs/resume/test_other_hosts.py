"""8 hosts of another loader stop, 6 go on: together they read the epoch exactly once."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from shardctl.errors import UsageError
from shardctl.order.order import Order
from shardctl.order.plan_order import plan_order
from shardctl.saved.plan_file import parse_plan, plan_json, plan_yaml
from shardctl.saved.resume_plan import ResumePlan
from shardctl.verbs.resume.apply_plan import applied
from shardctl.verbs.resume.hosts import resume_on_hosts
from shardctl.verbs.resume.proof import prove
from tests.verbs.resume.resume_cases import TOY, dataset

FILES = dataset(train=(13, 9, 0, 21, 17, 16, 5, 18), test=(7, 4, 8, 9))  # 99 and 28 examples

# What is read, and the settings of host i of 8; the epochs of each source.
LOADERS = {
    "grain": {"loader": "grain", "shuffle_seed": 5, "batch": 4},
    "grain, workers": {"loader": "grain", "shuffle_seed": 5, "batch": 4, "workers": 2},
    "torch": {"loader": "torch", "shuffle_seed": 5, "batch": 4},
    "stateful": {"loader": "stateful", "shuffle_seed": 5, "batch": 4, "workers": 2},
    "accelerate": {"loader": "accelerate", "shuffle_seed": 5, "batch": 4},
    "hf by index": {"loader": "hf", "shuffle_seed": 5, "batch": 4, "drop_remainder": True},
    "hf stream": {"loader": "hf", "shuffle_seed": 5, "streaming": True, "buffer": 6},
}


def handed_out(order: Order, stop: int) -> Counter[tuple[int, str]]:
    """Count (epoch, tfds_id) of the examples before a position."""
    ids = order.codes.tfds_ids(order.read(0, stop))
    return Counter(zip(order.epoch_of(range(stop)).tolist(), ids, strict=True))


def read_by(plan: ResumePlan) -> Counter[str]:
    return Counter(
        f"{i.filename}__{i.skip + k}"
        for host in plan.hosts
        for i in host.instructions
        for k in range(i.take)
    )


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_old_and_new_hosts_read_every_example_once(name: str, seed: int) -> None:
    settings = {**LOADERS[name], "epochs": 3}
    each = [{**settings, "host": f"{i}/8"} for i in range(8)]
    orders = [plan_order(FILES, "train", said).order for said in each]
    rng, counts = random.Random(seed), [0, 1, 2, 3, 4, 5, 6, 3]
    if seed:
        counts = [rng.randrange(min(2 * o.num_examples // 3, o.num_examples)) for o in orders]
    plan = resume_on_hosts(FILES, "train", settings, hosts=8, to_hosts=6, consumed=counts)
    before: Counter[tuple[int, str]] = Counter()
    whole: Counter[tuple[int, str]] = Counter()
    started = set()
    for order, count, said in zip(orders, counts, each, strict=True):
        before += handed_out(order, count)
        full = plan_order(FILES, "train", {**said, "drop_remainder": False}).order
        epochs = order.epoch_of(range(order.num_examples)).tolist()
        first = min(epochs[count:])
        started |= {first, *epochs[:count]}
        everything = handed_out(full, full.num_examples)
        whole += Counter({one: n for one, n in everything.items() if one[0] >= first})
        before_first = {one: n for one, n in handed_out(order, count).items() if one[0] < first}
        whole += Counter(before_first)
    assert plan.epoch == max(started)
    expected: Counter[str] = Counter()
    for number, example in whole:
        if number <= plan.epoch:
            expected[example] += max(1 - before[number, example], 0)
    assert read_by(plan) == +expected
    assert plan.remaining == expected.total()
    sizes = [share.num_examples for share in plan.hosts]
    assert max(sizes) - min(sizes) <= 1
    read = parse_plan("".join((plan_json, plan_yaml)[seed % 2](plan)).encode(), source="plan")
    assert read == plan
    assert applied(read, FILES).hosts == plan.hosts
    proof = prove(FILES, read)
    assert (proof.compared, proof.holds) == (plan.remaining, True)


def test_a_proof_misses_what_a_host_does_not_read() -> None:
    plan = resume_on_hosts(TOY, "train", LOADERS["torch"], hosts=2, to_hosts=2, consumed=1)
    short = replace(plan.hosts[0], instructions=plan.hosts[1].instructions)
    proof = prove(TOY, replace(plan, hosts=(short, plan.hosts[1])))
    size = plan.hosts[0].num_examples
    assert (proof.lost, proof.repeated, proof.holds) == (size, plan.hosts[1].num_examples, False)


def test_padding_is_not_left() -> None:
    # DistributedSampler, unshuffled: of 11 examples 4 hosts have 0 4 8, 1 5 9, 2 6 10 and 3 7 0.
    settings = {"loader": "torch", "shuffle": False}
    plan = resume_on_hosts(TOY, "train", settings, hosts=4, to_hosts=2, consumed=[2, 2, 2, 1])
    reads = [[(i.filename[-1], i.skip, i.take) for i in host.instructions] for host in plan.hosts]
    assert reads == [[("1", 4, 1), ("2", 0, 1)], [("2", 1, 2)]]  # 7 and 8, 9 and 10
    assert "1 example that hosts were to read again" in plan.warnings[-1]
    # Nobody has read id 0: it is left, and once.
    plan = resume_on_hosts(TOY, "train", settings, hosts=4, to_hosts=1, consumed=0)
    assert plan.remaining == 11


def test_new_hosts_drop_of_the_rest_and_of_each_epoch() -> None:
    settings = {"loader": "torch", "shuffle_seed": 1, "batch": 2, "drop_remainder": True}
    plan = resume_on_hosts(TOY, "train", settings, hosts=2, to_hosts=3, consumed=1)
    assert plan.remaining_total == 6
    assert any("each new host drops a last batch" in text for text in plan.warnings)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"stages": "shard(4, 1) | batch(2)"}, "a shard is of 4 hosts, and --hosts 2 stopped"),
        ({"stages": "cache | take(5)"}, "go on with as many hosts, .* from a log with --seen FILE"),
        ({"stages": "zip(read(train), read(test))"}, "of stages that options say"),
        ({"loader": "torch", "host": "0/2"}, "leave --host out"),
        ({"loader": "torch", "to_hosts": 0}, "--to-hosts 0: a number from 1"),
        ({"spec": "train[3:3]"}, "host 0 of 2: --consumed '1': the order has 0 examples"),
    ],
)
def test_what_cannot_be_shared_is_refused(settings: dict[str, Any], text: str) -> None:
    settings = {"spec": None if "read(" in str(settings) else "train", "to_hosts": 3, **settings}
    spec, to_hosts = settings.pop("spec"), settings.pop("to_hosts")
    with pytest.raises(UsageError, match=text):
        resume_on_hosts(TOY, spec, settings, hosts=2, to_hosts=to_hosts, consumed=1)
