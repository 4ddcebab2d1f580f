"""States: as text, of StatefulDataLoaders, of all ranks, from tf.data and back."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from shardctl import Host, ReadSettings
from shardctl.errors import DatasetError, UsageError
from shardctl.tfds import Position
from shardctl.torch import Sampler, consumed
from tests.cases import counted
from tests.grain.toys import raises_in_one_line, toy
from tests.tfds_datasets import build_dataset

DATA = toy(11, 13, 16)
SETTINGS = ReadSettings(shuffle_seed=3, buffer=9, buffer_seed=1, epochs=2, batch=8)


def state() -> dict[str, Any]:
    return Sampler(DATA, "train", SETTINGS, consumed=24).state_dict()


def without_workers(inner: object) -> dict[str, Any]:
    """Return a state as torchdata 0.11 writes it with num_workers=0."""
    of_batches = {"samples_yielded": 24, "sampler_state": inner}
    return {"_index_sampler_state": None, "_sampler_iter_state": of_batches, "_num_yielded": 3}


def with_workers(inner: object, steps: int = 0) -> dict[str, Any]:
    """Return a state as torchdata 0.11 writes it with workers."""
    snapshot = {"_snapshot_step": 3, "_main_snapshot": without_workers(inner)}
    return {"_snapshot": snapshot, "_steps_since_snapshot": steps}


def test_a_state_is_a_number_and_whose_it_is_in_plain_values() -> None:
    found = state()
    assert found["consumed"] == 24
    assert json.loads(json.dumps(found)) == found
    forms = (found, json.dumps(found), json.dumps(found).encode())
    of_loaders = (without_workers(found), with_workers(found))
    of_examples = {"_index_sampler_state": found, "_sampler_iter_state": None}
    for given in (*forms, *of_loaders, of_examples):
        assert consumed(given) == 24
        assert len(Sampler(DATA, "train", SETTINGS, states=[given])) == 56


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "no Sampler of shardctl.torch"),
        (without_workers(None), "no Sampler of shardctl.torch"),
        (without_workers({"yielded": 3}), "no Sampler of shardctl.torch"),
        (with_workers(state(), steps=2), "2 batches older"),
        ({**state(), "consumed": 32}, "does not match its digest"),
        ({**state(), "more": object()}, "values that no state"),
        ({"_snapshot": 3, "_steps_since_snapshot": 0}, "_snapshot"),
        (b"[3]", "the state"),
    ],
)
def test_what_is_no_state_is_refused(given: Any, words: str) -> None:
    raises_in_one_line(lambda: consumed(given), DatasetError, words)


@pytest.mark.parametrize("given", [None, 3, ["x"]])
def test_what_cannot_be_one_is_refused(given: Any) -> None:
    raises_in_one_line(lambda: consumed(given), UsageError, "state_dict()")


def ranks(count: int, states: Sequence[Mapping[str, Any]], given: dict[str, Any]) -> list[Sampler]:
    return [
        Sampler(DATA, "train", {**given, "host": Host(index=i, count=count)}, states=states)
        for i in range(count)
    ]


@pytest.mark.long
def test_other_ranks_share_what_is_left() -> None:
    numbers = random.Random(8)
    for _ in counted(range(3)):
        given: dict[str, Any] = {
            "shuffle_seed": 3,
            "epochs": numbers.choice([1, 2]),
            "batch": numbers.choice([2, 4]),
            "host_by": numbers.choice(["even", "examples"]),
            "pass": numbers.choice([0, 2]),
        }
        seen: Counter[int] = Counter()
        states: list[dict[str, Any]] = []
        for count in (3, 2, 8, 6):
            after = []
            for sampler in ranks(count, states, given):
                batches = numbers.randint(0, min(len(sampler) // given["batch"], 2))
                ahead = min(len(sampler), (batches + 3) * given["batch"])  # as workers are
                drawn = [*islice(sampler, ahead)]
                seen.update(drawn[: batches * given["batch"]])
                after.append(sampler.state_after(batches))
            states = numbers.sample(after, len(after))
        for sampler in ranks(1, states, given):
            seen.update(sampler)
        assert seen == dict.fromkeys(range(40), given["epochs"])


def test_a_rank_goes_on_with_its_own_state_alone() -> None:
    given = {"shuffle_seed": 3, "batch": 4, "host": "1/3"}
    own = Sampler(DATA, "train", given, consumed=8).state_dict()
    assert (
        len(Sampler(DATA, "train", given, states=[own])) == len(Sampler(DATA, "train", given)) - 8
    )
    with pytest.raises(UsageError, match="states of 1 of 3 hosts: 0, 2 missing"):
        Sampler(DATA, "train", {**given, "host": "0/3"}, states=[own])


def test_the_next_epoch_of_a_shared_one_is_that_of_the_new_ranks() -> None:
    given: dict[str, Any] = {"shuffle_seed": 3, "batch": 4}
    states = [sampler.state_after(1) for sampler in ranks(3, [], given)]
    for sampler in ranks(2, states, given):
        assert len([*sampler]) == 14
        sampler.set_epoch(1)
        whole = Sampler(DATA, "train", {**given, "pass": 1, "host": sampler.settings.host})
        assert [*sampler] == [*whole]


def test_it_goes_on_from_tf_data_and_back(tmp_path: Path) -> None:
    import tensorflow_datasets as tfds

    builder = tfds.builder_from_directory(build_dataset(tmp_path, splits={"train": [11, 13, 16]}))
    position = Position(builder, "train", SETTINGS, consumed=16)
    sampler = Sampler(builder, "train", SETTINGS, states=[position.get_state()])
    ids = [*islice(sampler, 8)]
    position.set_state(json.dumps(sampler.state_dict()).encode())
    assert position.consumed == 24
    whole = [*Sampler(builder, "train", SETTINGS)]
    assert ids == whole[16:24]
    tf_data = [int(i) for batch in position.dataset().as_numpy_iterator() for i in batch["id"]]
    assert tf_data == whole[24:]
