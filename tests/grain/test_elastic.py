"""Global batches by Grain's ElasticIterator: those of the order, with any number of processes."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

import shardctl
from shardctl import Host, ReadSettings
from shardctl.errors import DatasetError, UsageError
from shardctl.grain import consumed, data_loader, elastic_iterator, map_dataset
from tests.cases import counted
from tests.grain.toys import needs_grain, raises_in_one_line, toy

DATA = toy(11, 13, 16)
SOURCE = list(range(40))
SETTINGS = ReadSettings(
    shuffle_seed=3, buffer=9, buffer_seed=1, epochs=2, batch=6, drop_remainder=True
)


def elastic(
    count: int = 1, index: int = 0, settings: ReadSettings = SETTINGS, **place: Any
) -> tuple[Any, Any]:
    examples = map_dataset(SOURCE, DATA, "train", settings, **place)
    return elastic_iterator(examples, host=Host(index=index, count=count)), examples


def global_batches(iterators: list[Any]) -> Any:
    """Yield the batches that processes yield together, in the order of rows."""
    for parts in zip(*iterators, strict=True):
        yield [int(part[row]) for row in range(len(parts[0])) for part in parts]


def test_processes_that_come_and_go_read_the_batches_of_the_order() -> None:
    needs_grain()
    ids = shardctl.plan_order(DATA, "train", SETTINGS).order.read(0, 78).tolist()
    numbers = random.Random(8)
    for _ in counted(range(20)):
        read: list[list[int]] = []
        state: Any = None
        while len(read) < 13:
            count = numbers.choice([1, 2, 3, 6])
            iterators = [elastic(count, index)[0] for index in range(count)]
            for one in iterators if state else ():
                one.set_state(json.loads(json.dumps(state)))
            batches = global_batches(iterators)
            for _ in range(numbers.randint(0, 13 - len(read))):
                read.append(next(batches))
            states = [one.get_state() for one in iterators]
            assert all(one == states[0] for one in states)
            state = states[0]
            assert consumed(state) == 6 * len(read)
        assert next(batches, None) is None
        assert [i for batch in read for i in batch] == ids


def test_its_state_is_that_of_a_position_too() -> None:
    needs_grain()
    iterator, examples = elastic()
    for _ in range(5):
        next(iterator)
    state = iterator.get_state()
    assert json.loads(examples.position(state))["consumed"] == 30
    rest = shardctl.plan_order(DATA, "train", SETTINGS).order.read(30, 78).tolist()
    for one in (json.dumps(state).encode(), examples.position(state)):
        loader = data_loader(SOURCE, DATA, "train", SETTINGS, states=[one])
        assert [int(i) for batch in loader for i in batch] == rest
        later, _ = elastic(states=[one])
        assert [int(i) for batch in later for i in batch] == rest
        later.set_state(later.get_state() | {"global_next_index": 12})
        assert consumed(later.get_state()) == 42
        with pytest.raises(UsageError, match="begins after 30"):
            later.set_state({**state, "global_next_index": 24})


@pytest.mark.parametrize("handler", ["grain", "api v1"])
def test_it_is_saved_and_restored_beside_a_position(handler: str, tmp_path: Any) -> None:
    grain = needs_grain()
    ocp = pytest.importorskip("orbax.checkpoint", reason="Orbax is not installed")
    iterator, _ = elastic()
    next(iterator)
    again, _ = elastic()
    if handler == "grain":
        with ocp.CheckpointManager(tmp_path / "run") as manager:
            saved = grain.checkpoint.CheckpointSave(iterator)
            manager.save(0, args=ocp.args.Composite(data=saved))
            manager.wait_until_finished()
            restored = grain.checkpoint.CheckpointRestore(again)
            manager.restore(0, args=ocp.args.Composite(data=restored))
    else:
        import orbax.checkpoint.experimental.v1 as ocp_v1

        ocp_v1.save_checkpointables(tmp_path / "run", {"data": iterator})
        ocp_v1.load_checkpointables(tmp_path / "run", {"data": again})
    assert again.get_state() == iterator.get_state()
    assert next(again).tolist() == next(iterator).tolist()


def test_maps_stand_before_it_and_nothing_else() -> None:
    needs_grain()
    _, examples = elastic()
    host = Host(index=0, count=1)
    mapped = examples.map(lambda i: i + 100).seed(1).random_map(lambda i, _: i)
    plain = next(elastic_iterator(examples, host=host))
    assert (next(elastic_iterator(mapped, host=host)) - 100).tolist() == plain.tolist()
    for other in (examples.batch(2), examples[3:], examples.shuffle(seed=1), SOURCE):
        with pytest.raises(UsageError, match="map_dataset returned is needed"):
            elastic_iterator(other, host=host)


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"batch": None, "drop_remainder": False}, "batch=N and drop_remainder=True"),
        ({"drop_remainder": False}, "batch=N and drop_remainder=True"),
        ({"batch": 5}, "3 of them cannot share it evenly"),
        ({"host": Host(index=0, count=3)}, "leave host out"),
    ],
)
def test_what_grain_would_drop_or_read_twice_is_refused(changed: Any, word: str) -> None:
    needs_grain()
    raises_in_one_line(lambda: elastic(3, settings=replace(SETTINGS, **changed)), UsageError, word)


def test_a_state_of_another_order_is_refused_and_changes_nothing() -> None:
    needs_grain()
    iterator, _ = elastic()
    next(iterator)
    state = iterator.get_state()
    other, _ = elastic(settings=replace(SETTINGS, shuffle_seed=4, batch=3))
    next(other)
    with pytest.raises(UsageError, match=r"shuffle_seed was 3, now 4.*batch was 6, now 3"):
        other.set_state(state)
    plain = {"global_next_index": 6}
    for wrong, kind in ((plain, DatasetError), ({**state, "global_next_index": -1}, DatasetError)):
        with pytest.raises(kind):
            iterator.set_state(wrong)
    assert (other.get_state()["global_next_index"], consumed(iterator.get_state())) == (3, 6)
