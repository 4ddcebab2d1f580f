"""Runs that resume with other hosts, read through TFDS: what all hosts hand out."""

from __future__ import annotations

import random
import runpy
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import shardctl.tfds
from shardctl.errors import DatasetError, UsageError
from shardctl.files.documents import to_json
from shardctl.saved.plan_file import plan_document
from shardctl.saved.position_file import PositionRecord, position_text
from shardctl.saved.resume_plan import RunSegment
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host, HostBy
from shardctl.tfds.position_counting import records_of, stretch_of
from shardctl.verbs.resume.proof import prove
from tests.cases import FUZZ, counted, random_of_a_fuzz_run
from tests.killed_runs import script_of_guide
from tests.order.order_cases import changed
from tests.spec.tfds_splits import toy_dataset
from tests.tfds_datasets import build_dataset

pytestmark = pytest.mark.tensorflow

LENGTHS = [14, 0, 9, 21, 7, 12, 3, 6, 8]
SETTINGS = ReadSettings(
    cycle=2, block=3, shuffle_seed=5, buffer=7, buffer_seed=1, epochs=2, batch=2
)


@pytest.fixture(scope="module")
def builder(tfds: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    splits = {"train": LENGTHS, "test": [4, 5]}
    return tfds.builder_from_directory(
        build_dataset(tmp_path_factory.mktemp("elastic"), splits=splits)
    )


def position(builder: Any, index: int, count: int, settings: ReadSettings = SETTINGS) -> Any:
    host = Host(index=index, count=count) if count else None
    return shardctl.tfds.Position(builder, "train", replace(settings, host=host))


def name(example: Any) -> Any:
    return example["tfds_id"]


def batches(place: Any) -> list[list[bytes]]:
    """Return all that is left of a position, by the names of the examples."""
    return [batch.tolist() for batch in named(place).as_numpy_iterator()]


def named(place: Any) -> Any:
    return place.dataset(transform=name, add_tfds_id=True)


def trained(place: Any, num_batches: int | None) -> list[list[bytes]]:
    """Return the batches that a loop gets before it is stopped; None is never."""
    found: list[list[bytes]] = []
    if num_batches != 0:
        for batch in place.count(named(place)):
            found.append(batch.numpy().tolist())
            if len(found) == num_batches:
                break
    return found


def predicted(place: Any) -> list[bytes]:
    """Return what a position says that is left, which nothing reads."""
    order = place.planned.order
    chunks = (place._run or order).chunks(place.consumed, place.num_examples)
    codes = [int(code) for chunk in chunks for code in chunk]
    return [tfds_id.encode() for tfds_id in order.codes.tfds_ids(codes)]


def flat(found: Sequence[list[bytes]]) -> list[bytes]:
    return [example for batch in found for example in batch]


def each_as_often_as(builder: Any, settings: ReadSettings) -> Counter[bytes]:
    once = changed(settings, batch=None, drop_remainder=False)
    return Counter(
        example.numpy()
        for example in shardctl.tfds.pipeline(
            builder, "train", once, transform=name, add_tfds_id=True
        )
    )


@pytest.mark.slow
def test_eight_hosts_become_six_and_hand_out_every_example_once_an_epoch(builder: Any) -> None:
    done: Counter[bytes] = Counter()
    states = []
    for index in range(8):
        place = position(builder, index, 8)
        done.update(flat(trained(place, (2, 3, 0, 5, 3, 1, 11, 3)[index])))  # one in epoch 1
        states.append(place.get_state())
    random.Random(3).shuffle(states)
    for index in range(6):
        place = position(builder, index, 6)
        place.set_states(states)
        left = batches(place)
        if index in (0, 5):
            assert flat(left) == predicted(place)
        assert sum(map(len, left)) == place.num_examples
        done.update(flat(left))
    # Killed in the middle of its share, and started again with as many.
    assert trained(place, 2) == left[:2]
    again = position(builder, 5, 6)
    again.set_state(place.get_state())
    assert (again.consumed, again.num_examples) == (4, place.num_examples)
    assert batches(again) == left[2:]
    assert done == each_as_often_as(builder, SETTINGS)
    assert set(done.values()) == {2}
    assert len(done) == sum(LENGTHS)


@pytest.mark.fuzz
def test_a_history_of_hosts_of_any_number_fuzzed(builder: Any) -> None:
    rng = random_of_a_fuzz_run()
    for _ in counted(range(max(FUZZ // 400, 1))):
        check_history(builder, rng, max_hosts=9 if FUZZ > 2000 else 4)


def check_history(builder: Any, rng: random.Random, max_hosts: int) -> None:
    """Add up what hosts of several numbers hand out, each killed and restarted on the way."""
    settings = random_settings(rng)
    print(settings)
    done: Counter[bytes] = Counter()
    states: list[bytes] = []
    modes: list[HostBy] = ["even", "files", "examples"]
    max_hosts = min(max_hosts, 8)  # as many as there are files with examples
    histories = [rng.randint(0, max_hosts) for _ in range(rng.randint(2, 4))]
    for number, count in enumerate(histories):
        if histories[number - 1 : number] != [count]:  # as many hosts have the very batches
            settings = replace(settings, batch=rng.randint(1, 5), host_by=rng.choice(modes))
        last = number == len(histories) - 1
        new_states = []
        for index in range(max(count, 1)):
            place = position(builder, index, count, settings)
            if states:
                place.set_states(states)
            stop = None if last else rng.randint(0, 12)
            found = trained(place, stop)
            if states and found:
                prediction = position(builder, index, count, settings)
                prediction.set_states(states)
                assert flat(found) == predicted(prediction)[: len(flat(found))]
            place = restarted(builder, place, index, count, settings)
            if not last:
                found += trained(place, rng.randint(0, 4))
            done.update(flat(found))
            new_states.append(place.get_state())
        rng.shuffle(new_states)
        states = new_states
    expected = each_as_often_as(builder, replace(settings, host=None))
    if settings.drop_remainder:
        assert done <= expected
    else:
        assert done == expected


def restarted(builder: Any, place: Any, index: int, count: int, settings: ReadSettings) -> Any:
    again = position(builder, index, count, settings)
    again.set_state(place.get_state())
    return again


def random_settings(rng: random.Random) -> ReadSettings:
    buffer = rng.choice([None, 1, 5, 40, -2])
    return ReadSettings(
        cycle=rng.choice([1, 2, 16]),
        block=rng.choice([1, 3, 16]),
        shuffle_seed=rng.choice([None, 3]),
        buffer=buffer,
        buffer_seed=None if buffer is None else 11,
        epochs=rng.randint(1, 3),
        batch=rng.randint(1, 5),
        drop_remainder=rng.random() < 0.2,
        host_by=rng.choice(["even", "files", "examples"]),
    )


def test_a_process_alone_becomes_two_and_they_become_one(builder: Any) -> None:
    settings = replace(SETTINGS, epochs=1)
    alone = position(builder, 0, 0, settings)
    alone.advance(30)
    expected = Counter(flat(batches(alone)))
    states, done = [alone.get_state()], Counter[bytes]()
    both = []
    for index in range(2):
        place = position(builder, index, 2, replace(settings, host_by="files"))
        place.set_states(states)
        done.update(flat(trained(place, 5)))
        both.append(place.get_state())
    last = position(builder, 0, 0, replace(settings, host_by="files"))
    last.set_states(both)
    done.update(flat(batches(last)))
    assert done == expected


@pytest.mark.slow
def test_its_plan_is_read_epoch_by_epoch(tfds: Any, builder: Any) -> None:
    states = []
    for index in range(2):
        place = position(builder, index, 2)
        place.advance(4 + 4 * index)
        states.append(place.get_state())
    place = position(builder, 0, 1)
    place.set_states(states)
    plan = place.plan()
    assert (plan.consumed, plan.remaining, plan.remaining_total) == (0, 68, 148)
    by_epoch = [
        [example.numpy() for example in dataset]
        for _, dataset in shardctl.tfds.resume_epochs(
            builder, plan, transform=name, add_tfds_id=True
        )
    ]
    assert [len(epoch) for epoch in by_epoch] == [68, 80]
    assert [example for epoch in by_epoch for example in epoch] == predicted(place)
    elsewhere = tfds.builder_from_directory(builder.data_dir)  # whose dataset is another object
    again = shardctl.tfds.resume(elsewhere, plan, transform=name, add_tfds_id=True)
    assert flat(again.as_numpy_iterator()) == predicted(place)
    with pytest.raises(UsageError, match="the shared rest of this plan"):
        shardctl.tfds.read_config(plan)
    with pytest.raises(UsageError, match="a plan file does not hold"):
        "".join(to_json(plan_document(plan)))
    with pytest.raises(UsageError, match="shared again, and cannot be proven alone"):
        prove(place._dataset, plan)
    with pytest.raises(UsageError, match="shared again, and cannot be proven alone"):
        shardctl.tfds.verify_plan(place._dataset, plan)


def test_it_is_kept_in_checkpoints_and_files_as_any_other(
    tf: Any, builder: Any, tmp_path: Path
) -> None:
    place = position(builder, 1, 2)
    place.set_states(states_of(builder, 3))
    place.advance(6)
    saved = tf.train.Checkpoint(data=place).save(str(tmp_path / "checkpoint"))
    place.save(tmp_path / "position")
    from_checkpoint, from_file = (position(builder, 1, 2) for _ in range(2))
    tf.train.Checkpoint(data=from_checkpoint).restore(saved).assert_consumed()
    from_file.restore(tmp_path / "position")
    for again in (from_checkpoint, from_file):
        assert again.is_shared
        assert again.get_state() == place.get_state()
        assert (again.consumed, predicted(again)) == (6, predicted(place))


def states_of(builder: Any, count: int, settings: ReadSettings = SETTINGS) -> list[bytes]:
    return [position(builder, index, count, settings).get_state() for index in range(count)]


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        ({"cycle": 4}, {}, "cycle was 4, now 2"),
        ({"epochs": 3}, {}, "epochs was 3, now 2"),
        ({"stages": "batch(4)"}, {"stages": "batch(4)"}, "not for stages; resume with 3, each"),
        ({"repeat_files": True}, {"repeat_files": True}, "run into one another without end"),
    ],
)
def test_what_cannot_be_shared_is_refused_and_changes_nothing(
    builder: Any, before: dict[str, Any], now: dict[str, Any], words: str
) -> None:
    def made(changes: dict[str, Any]) -> ReadSettings:
        return ReadSettings(**changes) if "stages" in changes else changed(SETTINGS, **changes)

    place = position(builder, 0, 2, made(now))
    place.advance(4)
    state = place.get_state()
    with pytest.raises(UsageError, match=words):
        place.set_states(states_of(builder, 3, made(before)))
    assert place.get_state() == state


def test_a_state_of_another_number_of_hosts_says_who_takes_it(builder: Any) -> None:
    place = position(builder, 0, 2)
    with pytest.raises(
        UsageError, match=r"host was 0/3, now 0/2; set_states takes .* all processes"
    ):
        place.set_state(states_of(builder, 3)[0])
    # One of another order is not sent back there.
    with pytest.raises(UsageError, match=r"now \d+; give those that it had$"):
        place.set_states(states_of(builder, 3, changed(SETTINGS, buffer_seed=8)))


def test_states_of_another_dataset_are_refused(tfds: Any, builder: Any, tmp_path: Path) -> None:
    grown = build_dataset(tmp_path, splits={"train": [*LENGTHS, 1], "test": [4, 5]})
    states = states_of(tfds.builder_from_directory(grown), 3)
    for given in (states, [*states_of(builder, 3)[:2], states[2]]):
        with pytest.raises(DatasetError, match="train was 81 examples in 10 shards, now 80 exa"):
            position(builder, 0, 2).set_states(given)


def test_fit_has_no_epochs_of_a_run_that_was_shared(builder: Any) -> None:
    from shardctl.tfds.keras_fit import FitEpochs

    place = position(builder, 0, 1)
    place.set_states(states_of(builder, 2))
    assert place.is_shared
    with pytest.raises(UsageError, match="whose part has no epochs of fit"):
        FitEpochs(place, 1, None)
    with pytest.raises(UsageError, match=r"what is left of it is no epoch of fit"):
        place.begin_epoch_of_fit(0)
    place.advance(160)
    place.begin_epoch_of_fit(1)
    assert not place.is_shared


@pytest.mark.slow
def test_an_epoch_of_fit_is_shared_as_any_other(builder: Any) -> None:
    states, done = [], Counter[bytes]()
    settings = replace(SETTINGS, epochs=1)
    for index in range(2):
        place = position(builder, index, 2, settings)
        place.begin_epoch_of_fit(3)
        done.update(flat(trained(place, 4)))
        states.append(place.get_state())
    place = position(builder, 0, 0, settings)
    place.set_states(states)
    assert place.epoch_of_fit == 3
    again = restarted(builder, place, 0, 0, settings)
    assert (again.epoch_of_fit, again.num_examples) == (3, 64)
    done.update(flat(batches(again)))
    assert done == each_as_often_as(builder, settings)


# States of all processes: whose they are, and which do not belong together.


DATASET = toy_dataset({"train": (9, 4)}).identity


def record(index: int, count: int, consumed: int = 4, batch: int = 2, **more: Any) -> Any:
    settings = ReadSettings(batch=batch, host=Host(index=index, count=count))
    given = {"dataset": DATASET, "spec": "train", "settings": settings, "consumed": consumed}
    return PositionRecord(**{**given, **more})


def of(*records: PositionRecord) -> list[PositionRecord]:
    return records_of([position_text(one) for one in records])


def test_they_come_in_the_order_of_the_hosts() -> None:
    found = of(record(2, 3, 6), record(0, 3, 4), record(1, 3, 2))
    assert stretch_of(found) == RunSegment(consumed=(4, 2, 6), batch=2)
    alone = replace(record(0, 1), settings=ReadSettings())
    assert stretch_of(of(alone)) == RunSegment(consumed=(4,), alone=True)
    assert stretch_of(of(record(0, 1))) == RunSegment(consumed=(4,), batch=2)


ALONE = replace(record(0, 1), settings=ReadSettings(batch=2))


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ((), "none are given"),
        ((record(0, 3), record(2, 3)), "states of 2 of 3 hosts: 1 missing"),
        ((record(0, 99),), r"1 of 99 hosts: 1, 2, 3, 4, 5, 6, 7, 8 and 90 more missing"),
        ((record(0, 2), record(1, 2), record(0, 2)), r"states\[0\] and states\[2\] are both of"),
        ((ALONE, ALONE), r"states\[0\] is of a process alone, and 2 are given"),
        ((record(0, 1), ALONE), r"states\[1\] is of a process alone, and 2 are given"),
        ((record(0, 2), record(1, 3)), r"states\[1\] is .* states\[0\]: hosts is 3, not 2"),
        ((record(0, 2), record(1, 2, spec="train[:5]")), r"spec is train\[:5\], not train"),
        ((record(0, 2), record(1, 2, batch=3)), "batch is 3, not 2"),
        ((record(0, 2), record(1, 2, stretches=(RunSegment(consumed=(1,)),))), "shared before is "),
    ],
)
def test_those_of_no_one_run_are_refused(records: tuple[PositionRecord, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        of(*records)
    with pytest.raises(DatasetError, match=r"^states\[1\]: "):
        records_of([position_text(record(0, 2)), b"{}"])


# The script of the guide on hosts, run by three hosts and then by two of another batch size.


@pytest.mark.slow
def test_three_hosts_become_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, run = tmp_path / "train.py", tmp_path / "run"
    script.write_text(script_of_guide("hosts", "hosts_train.py"))
    lengths = [200, 0, 150, 117]
    folder = build_dataset(tmp_path / "data", splits={"train": lengths})

    def trained(host: str, *stopped_at: str) -> list[list[str]]:
        monkeypatch.setattr(sys, "argv", ["train.py", host, str(folder), str(run), *stopped_at])
        runpy.run_path(str(script), run_name="__main__")
        log = run / f"{host.replace('/', '-of-')}.log"
        return [line.split() for line in log.read_text().splitlines()]

    # As if the three were killed a little after step 10; a batch is 16, and 24 with two hosts.
    before = [trained(f"{index}/3")[:10] for index in range(3)]
    after = [trained(f"{index}/2", "10") for index in range(2)]
    assert [line[0] for line in before[0] + after[0]][:12] == [str(i) for i in range(1, 13)]
    assert {len(line) - 1 for lines in before for line in lines} == {16}
    assert {len(line) - 1 for lines in after for line in lines[:-1]} == {24}
    seen = Counter(name for lines in before + after for line in lines for name in line[1:])
    assert len(seen) == sum(lengths)
    assert set(seen.values()) == {2}
    # An audit of the logs says the same, of other hosts and batches, in turn.
    settings = ReadSettings(shuffle_seed=32, buffer=1000, buffer_seed=7, epochs=2, batch=16)
    audit = shardctl.audit(folder, "train", settings, logs=run)
    assert audit.equal
    assert [one.trained for one in audit.epochs] == 2 * [sum(lengths)]
    assert {run.host for run in audit.runs} == {"0/3", "1/3", "2/3", "0/2", "1/2"}
