"""What is left to a loader that stopped, against its order from there on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UsageError
from shardctl.loaders.loader import LOADERS
from shardctl.order.plan_order import plan_order
from shardctl.verbs.resume.answer import MOST_INSTRUCTIONS, resume, resume_loader

TOY = Dataset(name="toy", splits=(Split(name="train", shard_lengths=(3, 4, 0, 6)),))
WAYS: list[dict[str, Any]] = [
    *({"loader": name, "batch": 4, "epochs": 2} for name in LOADERS),
    *({"loader": n, "batch": 4, "epochs": 2, "host": "1/2", "shuffle_seed": 3} for n in LOADERS),
    {"loader": "grain", "batch": 2, "epochs": 2, "workers": 2, "shuffle_seed": 3},
    {"loader": "torch", "shuffle_seed": 3, "epochs": 3, "pass": 2},
    {"loader": "stateful", "shuffle": True, "global_seed": 3, "workers": 2, "batch": 3},
    {"loader": "hf", "buffer": 5, "shuffle_seed": 3, "epochs": 2},
]


@pytest.mark.parametrize("settings", WAYS, ids=str)
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


@pytest.mark.parametrize("settings", [way for way in WAYS if "batch" in way], ids=str)
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


def test_within_a_batch_there_is_a_warning() -> None:
    plan = resume_loader(TOY, "train", {"loader": "torch", "batch": 4}, consumed=6)
    assert plan.stop is not None
    assert (plan.stop.steps, plan.stop.in_batch) == (1, 2)
    assert plan.warnings == (
        "6 examples end 2 into a batch: the first batch that follows holds what is left of it, the "
        "others are those of the uninterrupted loader",
    )


def test_instructions_that_are_too_many_are_not_listed() -> None:
    settings = {"loader": "grain", "shuffle_seed": 3}
    plan = resume_loader("imagenet2012", "train[:200_000]", settings, consumed=10)
    assert not plan.lists_rest
    assert not plan.num_instructions
    assert plan.advice[-1] == (
        f"more than {MOST_INSTRUCTIONS:,} runs of neighbours are left, which no plan lists; "
        "simulate with --skip 10 and --take 199990 names the examples"
    )
    in_order = resume_loader("imagenet2012", "train", {"loader": "grain"}, consumed=10)
    assert len(in_order.instructions) == 1024


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"consumed": 14}, "^--consumed '14': the order has 13 examples"),
        ({}, "^say how far the pipeline got"),
        ({"consumed": 1, "steps": 1}, "^say how far the pipeline got"),
        ({"steps": 1}, "^--steps needs --batch N"),
    ],
)
def test_what_says_nothing_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        resume_loader(TOY, "train", {"loader": "torch"}, **given)


def test_it_is_resume_by_its_older_name() -> None:
    settings = {"loader": "torch", "batch": 4}
    assert resume_loader("mnist", "train", settings, steps=1) == resume(
        "mnist", "train", settings, consumed=4
    )


def test_epochs_that_mix_are_said() -> None:
    """Grain deals 10 records of an epoch to 3 workers, one of which ends it before the others."""
    settings = {"loader": "grain", "epochs": 2, "batch": 2, "workers": 3}
    plan = resume_loader("mnist", "train[:10]", settings, consumed=4)
    order = plan_order("mnist", "train[:10]", settings).order
    epochs = order.epoch_of(range(4, 20)).tolist()
    assert epochs != sorted(epochs)
    assert "come between those that are listed" in plan.advice[-1]
    alone = resume_loader("mnist", "train[:10]", settings | {"epochs": 1}, consumed=4)
    assert not [line for line in alone.advice if "come between" in line]
