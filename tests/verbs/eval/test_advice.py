"""Advice on an evaluation: where it hangs, what it loses, what cures it."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.verbs.eval.advice import advice, problems
from shardctl.verbs.eval.answer import evaluate
from tests.verbs.eval.eval_cases import toy


def test_advice_names_host_step_and_cure() -> None:
    said = advice(evaluate(toy(4097), batch=64, devices=8, hosts=8))
    assert said[:2] == (
        "hangs at step 1, counted from 0: "
        "host 0 waits there for 7 hosts that are done after 1 step",
        "cure: --batch 65 instead of 64 (1 step a host, 1.5% of the places empty)",
    )


def test_advice_says_when_all_is_well() -> None:
    assert advice(evaluate(toy(64), batch=4, devices=2, hosts=2)) == (
        "every batch is full and every host makes the same number of steps",
    )


def test_advice_ends_with_the_call_that_makes_padded_batches() -> None:
    odd = toy(4097)
    for how, call in (
        ({"batch": 512}, "builder, 'test', batch=512"),
        ({"batch": 512, "remainder": "pad"}, "builder, 'test', batch=512"),
        ({"batch": 64, "devices": 8}, "builder, 'test', batch=64, devices=8"),
        (
            {"batch": 64, "hosts": 2, "settings": {"host_by": "examples", "reverse": True}},
            "builder, 'test', {'host_by': 'examples', 'reverse': True}, batch=64, hosts=2, host=I",
        ),
    ):
        said = advice(evaluate(odd, "test", **how))
        assert said[-1] == (
            f"shardctl.tfds.evaluation({call}) makes the padded batches and their masks"
        )


def test_advice_warns_of_a_last_batch_that_devices_cannot_share() -> None:
    said = advice(evaluate(toy(13), batch=4, devices=2))
    assert "a last batch of 5 does not divide among 2 devices" in said[0]
    # Hosts of whole files have 8 + 7 and 8 + 5; the smallest is named.
    how: dict[str, Any] = {"settings": {"host_by": "files"}, "batch": 4, "devices": 2, "hosts": 2}
    said = advice(evaluate(toy(15, 13), "test", **how))
    assert any("a last batch of 5 does not divide among 2 devices" in line for line in said)


def test_advice_says_what_each_cure_loses() -> None:
    """4 and 3 examples make 2 and 1 batches of 2; 1 of 3 each, and 3 of all 7 on one host."""
    said = advice(evaluate(toy(7), batch=2, hosts=2, remainder="drop"))
    assert said == (
        "hangs at step 1, counted from 0: host 0 waits there for 1 host that is done after 1 step",
        "1 of 7 examples is lost (14.286%)",
        "cure: --pad (2 steps a host, 12.5% of the places empty, nothing lost)",
        "cure: --batch 3 instead of 2 (1 step a host, 0.0% of the places empty, 1 example lost)",
        "cure: --hosts 1 instead of 2 (3 steps a host, 0.0% of the places empty, 1 example lost)",
        "shardctl.tfds.evaluation(builder, 'test', batch=2, hosts=2, host=I) makes the padded "
        "batches and their masks",
    )


@pytest.mark.parametrize(
    ("num_examples", "hosts", "said"),
    [
        # 5 and 4 examples: 3 and 2 steps of two, 12 places when both make 3.
        (9, 2, "1 batch of padding alone (3 steps a host, 25.0% of the places empty)"),
        # 5, 4 and 4: 18 places.
        (13, 3, "2 batches of padding alone (3 steps a host, 27.8% of the places empty)"),
    ],
)
def test_batches_of_padding_alone_are_counted(num_examples: int, hosts: int, said: str) -> None:
    found = advice(evaluate(toy(num_examples), batch=2, hosts=hosts))
    assert f"cure: --pad with {said}" in found


# 4,097 examples on 8 hosts are 513 and 512 a host, one more than 8 devices have in batches of 64;
# MNIST's 10,000 on 6 hosts are 3 batches of 512 and 131 or 130 more.
@pytest.mark.parametrize(
    ("num_examples", "how", "said"),
    [
        (
            4097,
            {"batch": 64, "devices": 8, "hosts": 8, "remainder": "drop"},
            "1 of 4,097 examples is lost (0.024%)",
        ),
        (
            4097,
            {"batch": 64, "devices": 8, "hosts": 8, "remainder": "pad"},
            "8 hosts compute 4,095 examples of padding; mask them out of the metrics",
        ),
        (
            4097,
            {"batch": 64, "devices": 8, "hosts": 8},
            "2 shapes are compiled; --pad compiles 1 and fills the last batches with "
            "511 examples of padding",
        ),
        (
            10_000,
            {"batch": 512, "hosts": 6},
            "at step 3 hosts hold batches of different sizes, so they run different XLA programs; "
            "--pad gives all one",
        ),
        (
            10_000,
            {"batch": 512, "hosts": 6},
            "3 shapes are compiled; --pad compiles 1 and fills the last batches with "
            "2,288 examples of padding",
        ),
        (
            6,
            {"batch": 1, "hosts": 4},
            "hangs at step 1, counted from 0: 2 hosts, host 0 the first, wait there for 2 hosts "
            "that are done after 1 step",
        ),
        (
            3,
            {"batch": 1, "hosts": 2},
            "hangs at step 1, counted from 0: host 0 waits there for 1 host that is done after "
            "1 step",
        ),
        (
            10,
            {"batch": 3, "hosts": 2, "remainder": "drop"},
            "4 of 10 examples are lost (40.000%)",
        ),
    ],
)
def test_advice_is_a_sentence_on_each_thing_that_goes_wrong(
    num_examples: int, how: dict[str, Any], said: str
) -> None:
    assert said in advice(evaluate(toy(num_examples), **how))


@pytest.mark.parametrize(
    ("num_examples", "how", "said"),
    [
        (64, {"batch": 4, "hosts": 2}, ()),
        (10, {"batch": 3, "hosts": 2, "remainder": "pad"}, ()),
        (10, {"batch": 3, "hosts": 2}, ()),
        (3, {"batch": 1, "hosts": 2}, ("a collective hangs at step 1: host 0 waits in it",)),
        (10, {"batch": 3, "hosts": 2, "remainder": "drop"}, ("4 examples are lost",)),
        (
            7,
            {"batch": 2, "hosts": 2, "remainder": "drop"},
            ("a collective hangs at step 1: host 0 waits in it", "1 example is lost"),
        ),
        (0, {"batch": 2, "hosts": 2}, ()),
    ],
)
def test_problems_are_a_hang_and_examples_that_are_lost(
    num_examples: int, how: dict[str, Any], said: tuple[str, ...]
) -> None:
    assert problems(evaluate(toy(num_examples), **how)) == said
