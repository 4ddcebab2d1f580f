"""From states of runs that stopped: other workers, other hosts, and back to tf.data's position."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from shardctl import Dataset, Host, ReadSettings
from shardctl.base.text import counted as in_words
from shardctl.errors import DatasetError, UsageError
from shardctl.grain import Sampler, consumed, data_loader, map_dataset
from shardctl.grain.states import order_after
from shardctl.live.key_order import KeyOrder
from shardctl.tfds import Position
from tests.cases import FUZZ, counted, random_of_a_fuzz_run
from tests.grain.toys import (
    as_lists,
    cut,
    handed_out,
    needs_grain,
    raises_in_one_line,
    random_settings,
    shares_of,
    toy,
)
from tests.tfds_datasets import build_dataset


def state_of(sampler: Sampler, batches: int, workers: int, batch: int) -> bytes:
    """Return the state of a loader after so many batches, as Grain writes it."""
    read = [len(range(w, batches, max(workers, 1))) * batch for w in range(max(workers, 1))]
    last = {str(w): w + (n - 1) * len(read) for w, n in enumerate(read)}
    return json.dumps(
        {
            "version": 2,
            "last_seen_indices": last,
            "last_worker_index": -1,
            "worker_count": workers,
            "sampler": repr(sampler),
            "data_source": "<class 'list'>",
        }
    ).encode()


SETTINGS = ReadSettings(shuffle_seed=3, buffer=9, buffer_seed=1, epochs=2, batch=4)
DATA = toy(11, 13, 16)


@pytest.mark.parametrize("workers", [0, 1, 2, 5])
def test_a_count_of_any_workers(workers: int) -> None:
    sampler = Sampler(DATA, "train", SETTINGS, workers=workers)
    whole = KeyOrder(DATA, "train", SETTINGS)
    for batches in range(21):
        state = state_of(sampler, batches, workers, 4)
        assert consumed(state) == 4 * batches
        rest = Sampler(DATA, "train", SETTINGS, workers=3 if batches == 8 else 0, states=[state])
        assert len(rest) == 80 - 4 * batches
        assert rest.order.consumed == 4 * batches
        if len(rest):
            assert rest.order.key(0) == whole.key(4 * batches)


def test_counts_add_up_over_several_stops() -> None:
    first = Sampler(DATA, "train", SETTINGS, workers=2)
    second = Sampler(DATA, "train", SETTINGS, workers=0, states=[state_of(first, 5, 2, 4)])
    state = state_of(second, 3, 0, 4)
    assert consumed(state) == 32
    assert json.loads(second.position(state))["consumed"] == 32


def shared_by(count: int, states: Sequence[bytes], settings: dict[str, Any]) -> list[Sampler]:
    return [
        Sampler(DATA, "train", {**settings, "host": Host(index=i, count=count)}, states=states)
        for i in range(count)
    ]


@pytest.mark.long
def test_other_hosts_share_what_is_left() -> None:
    numbers = random.Random(8)
    for _ in counted(range(6)):
        settings: dict[str, Any] = {
            "shuffle_seed": 3,
            "epochs": numbers.choice([1, 2]),
            "batch": numbers.choice([2, 4]),
            "host_by": numbers.choice(["even", "examples", "files"]),
        }
        if numbers.choice([True, False]):
            settings |= {"buffer": 7, "buffer_seed": 2}
        seen: Counter[int] = Counter()
        states: list[bytes] = []
        for count in (3, 2, 3):
            samplers, after = shared_by(count, states, settings), []
            for sampler in samplers:
                batches = numbers.randint(0, min(len(sampler) // settings["batch"], 5))
                seen.update(sampler.order.key(i) for i in range(batches * settings["batch"]))
                after.append(state_of(sampler, batches, 0, settings["batch"]))
            states = numbers.sample(after, len(after))
        for sampler in shared_by(1, states, settings):
            seen.update(sampler.order.key(i) for i in range(len(sampler)))
        assert seen == dict.fromkeys(range(40), settings["epochs"])


def test_a_host_goes_on_with_its_own_state_alone() -> None:
    settings = {"shuffle_seed": 3, "batch": 4, "host": "1/3"}
    sampler = Sampler(DATA, "train", settings)
    state = state_of(sampler, 2, 0, 4)
    assert Sampler(DATA, "train", settings, states=[state]).order.consumed == 8
    with pytest.raises(UsageError, match="states of 1 of 3 hosts: 0, 2 missing"):
        Sampler(DATA, "train", {**settings, "host": "0/3"}, states=[state])


def test_it_goes_on_from_tf_data_and_back(tmp_path: Path) -> None:
    import tensorflow_datasets as tfds

    folder = build_dataset(tmp_path, splits={"train": [11, 13, 16]})
    builder = tfds.builder_from_directory(folder)
    position = Position(builder, "train", SETTINGS, consumed=12)
    sampler = Sampler(builder, "train", SETTINGS, workers=0, states=[position.get_state()])
    assert sampler.order.consumed == 12
    position.set_state(sampler.position(state_of(sampler, 2, 0, 4)))
    assert position.consumed == 20
    tf_data = [int(i) for batch in position.dataset().as_numpy_iterator() for i in batch["id"]]
    assert tf_data == [sampler.order.key(i) for i in range(8, len(sampler))]


def test_what_is_no_state_of_this_order_is_refused() -> None:
    sampler = Sampler(DATA, "train", SETTINGS)
    state = state_of(sampler, 2, 0, 4)
    order = KeyOrder(DATA, "train", SETTINGS)
    other = toy(11, 13, 17)
    refused: list[tuple[KeyOrder, bytes, type[Exception], tuple[str, ...]]] = [
        (KeyOrder(other, "train", SETTINGS), state, DatasetError, ("states[0]", "other files")),
        (KeyOrder(DATA, "train[1:]", SETTINGS), state, UsageError, ("spec was train",)),
        (
            KeyOrder(DATA, "train", ReadSettings(shuffle_seed=4, batch=4)),
            state,
            UsageError,
            ("shuffle_seed was 3, now 4",),
        ),
        (order, b'{"next_index": 3}', DatasetError, ("map_dataset(..).position(state)",)),
        (order, b"[1]", DatasetError, ("states[0]",)),
        (order, state.replace(b"shardctl.grain", b"others"), DatasetError, ("another sampler",)),
        (order, state.replace(b'"version": 2', b'"version": 3'), DatasetError, ("version 3",)),
    ]
    for one, given, kind, words in refused:
        raises_in_one_line(lambda one=one, given=given: order_after(one, [given]), kind, *words)  # type: ignore[misc]


def test_files_without_end_are_not_shared() -> None:
    settings = {"shuffle_seed": 3, "epochs": 2, "repeat_files": True, "batch": 4}
    states = [state_of(s, 2, 0, 4) for s in shared_by(2, [], settings)]
    with pytest.raises(UsageError, match=r"states of 2 processes for other hosts.*--repeat-files"):
        shared_by(3, states, settings)


@pytest.mark.parametrize("batch", [0, -1, 1 << 62])
def test_a_batch_that_is_none_is_refused(batch: int) -> None:
    with pytest.raises(UsageError, match=f"--batch {batch}: 3 elements"):
        consumed({"next_index": 3}, batch=batch)


@pytest.mark.fuzz
def test_loaders_stopped_anywhere_go_on_with_other_workers() -> None:
    needs_grain()
    numbers = random_of_a_fuzz_run()
    for _ in counted(range(max(1, FUZZ // 10))):
        data: Dataset = toy(*[numbers.randrange(9) for _ in range(5)], 6)
        settings = random_settings(numbers)
        source = list(range(data.split("train").num_examples))
        try:
            order = KeyOrder(data, "train", settings)
        except UsageError:
            continue
        batch = settings.batch
        expected = cut([order.key(i) for i in range(len(order))], batch)
        states: list[bytes] = []
        done: list[Any] = []
        for workers in numbers.choices([0, 1, 2, 3, 7], k=3):
            loader = data_loader(source, data, "train", settings, workers=workers, states=states)
            left = as_lists(handed_out(loader), batch)
            assert done + left == expected, in_words(len(done), "batch")
            took = numbers.randint(0, len(left))
            done += left[:took]
            states = [state_of_loader(loader, took)]
            assert consumed(states[0]) == sum(1 if batch is None else len(b) for b in done)
        examples = map_dataset(source, data, "train", settings, states=states)
        assert (
            as_lists(examples if batch is None else examples.batch(batch), batch)
            == (expected[len(done) :])
        )


def state_of_loader(loader: Any, batches: int) -> bytes:
    """Return the state after so many batches, of the workers' own states put together by Grain."""
    shares = shares_of(loader)
    for step in range(batches):
        next(shares[step % len(shares)])
    iterator = loader._dataset.__iter__()
    while not hasattr(iterator, "_sampler"):
        (iterator,) = iterator._parents
    workers = loader.multiprocessing_options.num_workers
    states = [share.get_state() for share in shares]
    iterator._parents = (_Parent(states, batches, bool(workers)),)
    return json.dumps(iterator.get_state()).encode()


class _Parent:
    """Stands for the interleave of the workers' processes, whose states it has."""

    def __init__(self, states: list[Any], batches: int, interleaved: bool) -> None:
        self._states, self._batches, self._interleaved = states, batches, interleaved

    def get_state(self) -> Any:
        if not self._interleaved:
            return self._states[0]
        return {
            "next_index_in_cycle": self._batches % len(self._states),
            "iterators_in_use_states": self._states,
        }

    def close(self) -> None:
        pass
