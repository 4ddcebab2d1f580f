"""Simulated orders: every figure of the TFDS determinism guide, and stretches of an order."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UsageError
from shardctl.metadata.names import catalog_dataset
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.simulate.answer import simulate

IMAGENET = catalog_dataset("imagenet2012")
TOY = Dataset(name="d", splits=(Split.even(name="train", num_examples=10, num_shards=3),))


def ids(
    spec: str = "train", *, skip: int = 0, take: int | None = 20, **settings: object
) -> list[int]:
    assert IMAGENET is not None
    read = ReadSettings(**settings)  # type: ignore[arg-type]
    return list(map(int, simulate(IMAGENET, spec, read, skip=skip, take=take).ids()))


# What https://www.tensorflow.org/datasets/determinism prints, cell by cell.


@pytest.mark.parametrize(
    ("spec", "stretch", "settings", "expected"),
    [
        ("train", {}, {}, [*range(16), 1251, 1252, 1253, 1254]),
        ("train[67%:84%]", {}, {}, [*range(858382, 858398), *range(859533, 859537)]),
        (
            "train",
            {},
            {"cycle": 3, "block": 2},
            [x + i for i in range(0, 8, 2) for x in (0, 1, 1251, 1252, 2502, 2503)][:20],
        ),
        ("train", {"take": 25}, {}, [*range(16), *range(1251, 1260)]),
        ("train[:25]", {"take": None}, {}, [*range(25)]),
        (
            "train",
            {"take": 22},
            {"shuffle_files": True, "shuffle_seed": 32},
            [*range(176411, 176427), *range(710647, 710653)],
        ),
        ("train", {"take": 5}, {"reverse": True}, [*range(1279916, 1279921)]),
        ("train", {"skip": 40, "take": 22}, {"cycle": 1}, [*range(40, 62)]),
        ("train[40:]", {"take": 22}, {"cycle": 1}, [*range(40, 62)]),
    ],
)
def test_orders_are_those_of_the_guide(
    spec: str, stretch: dict[str, Any], settings: dict[str, Any], expected: list[int]
) -> None:
    assert ids(spec, **stretch, **settings) == expected


def test_a_fixed_shuffle_seed_does_not_repeat_the_order_as_the_guide_has_it() -> None:
    starts = [ids(take=1, shuffle_seed=32, pass_index=index)[0] for index in range(3)]
    assert starts == [176411, 972136, 556757]
    fixed = {ids(take=1, shuffle_seed=32, pass_index=i, reshuffle=False)[0] for i in range(3)}
    assert len(fixed) == 1


def test_stages_without_end_are_shown_as_far_as_asked() -> None:
    settings = {"stages": "shuffle(4, seed=1) | repeat | batch(3)"}
    found = simulate(TOY, None, settings, skip=95, take=10)
    once = simulate(TOY, None, {"buffer": 4, "buffer_seed": 1, "epochs": 11}, skip=95, take=10)
    assert found.ids().tolist() == once.ids().tolist()
    assert repr(found).endswith("positions 95 to 104 of an endless order>")
    for take in (None, -1):
        with pytest.raises(UsageError, match=r"stages have no end, .* give --take N"):
            simulate(TOY, None, settings, take=take)
