"""8 hosts of any pipeline stop, 6 go on: together they read the epoch exactly once."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from shardctl.files.documents import to_json, to_yaml
from shardctl.order.order import Order
from shardctl.order.plan_order import plan_order
from shardctl.saved.plan_file import parse_plan, plan_document
from shardctl.saved.resume_plan import BatchCall
from shardctl.settings.read_settings import as_settings
from shardctl.verbs.resume.apply_plan import applied
from shardctl.verbs.resume.hosts import resume_on_hosts, undropped
from shardctl.verbs.resume.proof import prove
from tests.golden import assert_evaluated
from tests.verbs.resume.resume_cases import TOY, dataset
from tests.verbs.resume.test_hosts import read_by

FILES = dataset(train=(13, 9, 0, 21, 17, 16, 5, 18), test=(7, 4, 8, 9))  # 99 and 28 examples

# What is read, and the settings of host i of 8; the epochs of each source.
STAGES = {
    "stages": "shard(8, {}) | cache | shuffle(9, seed=3) | batch(4) | repeat(3)",
    "reader's host": "read(train, host='{}/8', shuffle_seed=5) | map | repeat(3) | skip(2)",
    "mixed epochs": "shard(8, {}) | repeat(2) | shuffle(20, seed=4) | batch(3, True)",
    "sample": "sample_from_datasets([read(train, host='{0}/8') | repeat(2), "
    "read(test, host='{0}/8') | repeat(3)], weights=[0.7, 0.3], seed=6) | batch(2)",
    "zip": "zip(read(train) | shard(8, {0}), read(test) | shard(8, {0}) | repeat(9))",
    "concatenate": "read(train, host='{0}/8') | concatenate(read(test, host='{0}/8')) | batch(2)",
}
LOADERS = {
    "grain": {"loader": "grain", "shuffle_seed": 5, "batch": 4},
    "grain, workers": {"loader": "grain", "shuffle_seed": 5, "batch": 4, "workers": 2},
    "torch": {"loader": "torch", "shuffle_seed": 5, "batch": 4},
    "stateful": {"loader": "stateful", "shuffle_seed": 5, "batch": 4, "workers": 2},
    "accelerate": {"loader": "accelerate", "shuffle_seed": 5, "batch": 4},
    "hf by index": {"loader": "hf", "shuffle_seed": 5, "batch": 4, "drop_remainder": True},
    "hf stream": {"loader": "hf", "shuffle_seed": 5, "streaming": True, "buffer": 6},
}
KINDS: dict[str, list[dict[str, Any]]] = {
    **{name: [{"stages": text.format(i)} for i in range(8)] for name, text in STAGES.items()},
    **{
        name: [{**said, "epochs": 3, "host": f"{i}/8"} for i in range(8)]
        for name, said in LOADERS.items()
    },
}
ALONE = {
    name: said[0] if name in STAGES else {**LOADERS[name], "epochs": 3}
    for name, said in KINDS.items()
}


def handed_out(order: Order, stop: int) -> Counter[tuple[int, str]]:
    """Count (epoch, tfds_id) of the examples before a position."""
    ids = order.codes.tfds_ids(order.read(0, stop))
    return Counter(zip(order.epoch_of(range(stop)).tolist(), ids, strict=True))


@pytest.mark.long
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))]
)
def test_old_and_new_hosts_read_every_example_once(name: str, seed: int) -> None:
    spec = None if name in STAGES and "read(" in STAGES[name] else "train"
    orders = [plan_order(FILES, spec, said).order for said in KINDS[name]]
    rng = random.Random(seed)
    if seed:
        epoch = [max(order.num_examples // (order.num_epochs or 1), 1) for order in orders]
        counts = [
            rng.randrange(min(2 * size, order.num_examples))
            for size, order in zip(epoch, orders, strict=True)
        ]
    else:
        counts = [0, 1, 2, 3, 4, 5, 6, 3]
    plan = resume_on_hosts(FILES, spec, ALONE[name], hosts=8, to_hosts=6, consumed=counts)
    before: Counter[tuple[int, str]] = Counter()
    whole: Counter[tuple[int, str]] = Counter()
    started = set()
    for order, count, said in zip(orders, counts, KINDS[name], strict=True):
        before += handed_out(order, count)
        full = plan_order(FILES, spec, undropped(as_settings(said))).order
        epochs = order.epoch_of(range(order.num_examples)).tolist()
        first = min(epochs[count:])
        started |= {first, *epochs[:count]}
        everything = handed_out(full, full.num_examples)
        whole += Counter({one: n for one, n in everything.items() if one[0] >= first})
        before_first = {one: n for one, n in handed_out(order, count).items() if one[0] < first}
        whole += Counter(before_first)
    last = max(epochs if not orders[0].has_epochs else started)
    assert plan.epoch == last
    expected: Counter[str] = Counter()
    for (number, example), times in whole.items():
        if number <= last:
            once = times if name in STAGES else 1
            expected[example] += max(once - before[number, example], 0)
    assert read_by(plan) == +expected
    assert plan.remaining == expected.total()
    sizes = [share.num_examples for share in plan.hosts]
    assert max(sizes) - min(sizes) <= (1 if len(orders[0].sources) < 2 else 2)
    read = parse_plan(
        "".join((to_json, to_yaml)[seed % 2](plan_document(plan))).encode(), source="plan"
    )
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
    assert "1 example left out: padding" in plan.warnings[-1]
    # No host has read id 0: it is left, and once.
    plan = resume_on_hosts(TOY, "train", settings, hosts=4, to_hosts=1, consumed=0)
    assert plan.remaining == 11


@pytest.mark.parametrize(
    ("settings", "consumed", "total"),
    [
        # 9 are left, 3 a host: a batch of 2 and one dropped. Then 11 in 4, 4 and 3: of these one.
        ({"stages": "shard(2, 0) | cache | batch(2, drop_remainder=True) | repeat(2)"}, 1, 6 + 10),
        ({"stages": "shard(2, 0) | cache | batch(2, drop_remainder=True)"}, 1, 6),
        ({"loader": "torch", "shuffle_seed": 1, "batch": 2, "drop_remainder": True}, 1, 6),
    ],
)
def test_new_hosts_drop_of_the_rest_and_of_each_epoch(
    settings: dict[str, Any], consumed: int, total: int
) -> None:
    plan = resume_on_hosts(TOY, "train", settings, hosts=2, to_hosts=3, consumed=consumed)
    assert plan.remaining_total == total
    assert any("each new host drops its partial last batch" in text for text in plan.warnings)


def test_what_cannot_be_shared_is_refused() -> None:
    assert_evaluated(globals(), "no_other_hosts")


def test_a_source_is_shared_with_every_new_host() -> None:
    # Each reads of both splits, the smaller spread over the larger.
    settings = {"stages": "sample_from_datasets([read(train), read(test)], seed=1)"}
    plan = resume_on_hosts(FILES, None, settings, hosts=1, to_hosts=4, consumed=0)
    for host in plan.hosts:
        names = [i.split for i in host.instructions for _ in range(i.take)]
        assert Counter(names) in (Counter(train=25, test=7), Counter(train=24, test=7))
    assert "the weights of a mixture are not kept" in plan.warnings[-1]
    calls = resume_on_hosts(
        FILES,
        None,
        {"stages": "zip(read(train), read(test)) | batch(2)"},
        hosts=1,
        to_hosts=2,
        consumed=0,
    ).after_read
    assert calls == (BatchCall(batch_size=2, drop_remainder=False),)
