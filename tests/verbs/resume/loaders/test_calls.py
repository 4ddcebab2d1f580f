"""What a library is told on the way to where a loader stopped."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.loaders.loader import LoaderCall
from shardctl.verbs.resume.answer import resume_loader

DATA = "mnist"


@pytest.mark.parametrize(
    ("settings", "steps", "expected"),
    [
        (
            {"loader": "torch", "host": "0/2", "shuffle_seed": 5, "pass": 3},
            40,
            [("set_epoch", {"epoch": 3}), ("skip", {"batches": 40})],
        ),
        (
            {"loader": "torch", "shuffle": True, "global_seed": 7, "epochs": 3},
            601,  # the first batch of 600 an epoch came before
            [("manual_seed", {"seed": 7}), ("iterations", {"count": 1}), ("skip", {"batches": 1})],
        ),
        (
            {"loader": "torch", "pass": 2},
            5,
            [("iterations", {"count": 2}), ("skip", {"batches": 5})],
        ),
        (  # torch.manual_seed(5) would be another order
            {"loader": "torch", "shuffle_seed": 5},
            3,
            [("generator.manual_seed", {"seed": 5}), ("skip", {"batches": 3})],
        ),
        ({"loader": "hf", "shuffle_seed": 5, "pass": 1}, 3, [("skip", {"batches": 3})]),
        (
            {"loader": "accelerate", "shuffle_seed": 5, "epochs": 2},
            603,
            [("set_epoch", {"epoch": 1}), ("skip_first_batches", {"batches": 3})],
        ),
        ({"loader": "grain", "epochs": 2}, 601, [("skip", {"batches": 601})]),
        (
            {"loader": "hf", "buffer": 100, "shuffle_seed": 5, "pass": 1},
            7,
            [("set_epoch", {"epoch": 1}), ("skip", {"batches": 7})],
        ),
    ],
)
def test_the_calls(settings: dict[str, Any], steps: int, expected: list[Any]) -> None:
    plan = resume_loader(DATA, "train", {**settings, "batch": 100}, steps=steps)
    calls = [call for call in plan.after_read if isinstance(call, LoaderCall)]
    assert len(calls) == len(plan.after_read)
    assert [(call.call, call.arguments) for call in calls] == expected


@pytest.mark.parametrize("loader", ["grain", "torch", "stateful", "accelerate"])
def test_each_says_what_its_own_ways_are_worth(loader: str) -> None:
    plan = resume_loader(DATA, "test", {"loader": loader, "batch": 10}, steps=3)
    assert len(plan.advice) == 1


def test_the_state_of_a_stream_loses_its_buffer() -> None:
    """14 of 197 were lost after 50 with a buffer of 16, as load_state_dict has it."""
    settings = {"loader": "hf", "buffer": 16, "shuffle_seed": 1, "arrow": False}
    data = Dataset(name="d", splits=(Split(name="train", shard_lengths=(100, 97)),))
    plan = resume_loader(data, "train", settings, consumed=50)
    assert plan.advice == (
        "load_state_dict of an IterableDataset loses what its shuffle buffer held, and may repeat "
        "examples; skip reads 50 examples again and loses none",
    )
