"""Audits of logs of simulated runs, beside counts made one by one of what the runs trained on."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import strategies as st

import shardctl
from shardctl import Audit, Dataset, DatasetError, Host, ReadSettings, Split, StepLog, UsageError
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UnpredictableOrderError
from tests.cases import check_cases, fuzzed

SIZE = 97
FILES = ShardFiles(pattern="toy-train.tfrecord-\0-of-00007", num_shards=7)
SPLIT = Split.even(name="train", num_examples=SIZE, num_shards=7, files=(FILES,))
TOY = Dataset(name="toy", splits=(SPLIT,))


def check(seed: int, folder: Path) -> None:
    """Train, log, save and be killed at random, with faults; compare the audit with the counts."""
    draw = random.Random(seed)
    num_hosts, batch, base = draw.choice([1, 1, 2, 3]), draw.randint(3, 9), draw.randint(0, 1)
    settings = ReadSettings(
        shuffle_seed=draw.choice([None, 4]), epochs=3, batch=batch, host_by="even"
    )
    hosts = [f"{host}/{num_hosts}" for host in range(num_hosts)]
    # host -> the ids that are due, by position, and their epochs.
    streams = []
    for host in hosts:
        own = settings if num_hosts == 1 else replace(settings, host=Host.parse(host))
        size = SIZE // num_hosts
        size += int(host[0]) < SIZE % num_hosts  # as tfds.even_splits shares
        ids = shardctl.simulate(TOY, "train", own, take=None).ids.tolist()
        assert len(ids) == 3 * size
        streams.append([(ids[at], at // size) for at in range(3 * size)])
    num_steps = min(len(one) for one in streams) // batch
    every, step, saved, shift = draw.randint(1, 6), 0, 0, 0
    survived: list[list[tuple[int, list[int]]]] = [[] for _ in hosts]
    rolled_back, faults = 0, draw.random() < 0.6
    files = [folder / f"{seed}-{at}.log" for at in range(num_hosts)]
    logs = [StepLog(path, host) for path, host in zip(files, hosts, strict=True)]
    until = draw.randint(1, num_steps)
    while step < until:
        for at, stream in enumerate(streams):
            start = step * batch + (shift if at == num_hosts - 1 else 0)
            ids = [one for one, _ in stream[start : start + batch]]
            if faults and draw.random() < 0.05:
                ids = draw.choice([ids[::-1], ids[:-1], [*ids, ids[0]], [draw.randrange(SIZE)]])
            # A line that is lost, but not one by which a restart is seen.
            if not (faults and step != saved and draw.random() < 0.03):
                survived[at].append((step, ids))
                logs[at].log(step + base, ids)
        step += 1
        if step % every == 0:
            saved = step
        if draw.random() < 0.1 and survived[0] and survived[0][-1][0] >= saved:
            # Killed: what came after the last checkpoint is trained on again.
            for at, path in enumerate(files):
                rolled_back += sum(len(ids) for one, ids in survived[at] if one >= saved)
                survived[at] = [kept for kept in survived[at] if kept[0] < saved]
                with open(path, "ab") as file:
                    file.write(draw.choice([b"", f"{step + base} 5".encode()]))
                logs[at] = StepLog(path, hosts[at])
            step = saved
            shift = draw.choice([0, 0, batch, -1]) if faults and saved else shift
    if any(not kept or kept[-1][0] != until - 1 for kept in survived):
        return  # a last line was lost, up to which examples were due
    found = shardctl.audit(TOY, "train", settings, logs=files, first_step=base)
    for epoch in range(3):
        _compare(found, epoch, streams, survived, batch, until)
    assert sum(one.rolled_back for one in found.epochs) == rolled_back
    kinds = Counter(one["kind"] for one in found.differences)
    assert kinds["again"] == sum(one.again for one in found.epochs)
    assert found.equal == (not kinds)
    if not faults:
        assert found.equal


def _compare(
    found: Audit,
    epoch: int,
    streams: list[list[tuple[int, int]]],
    survived: list[list[tuple[int, list[int]]]],
    batch: int,
    until: int,
) -> None:
    whole = Counter(one for stream in streams for one, at in stream if at == epoch)
    due = Counter(one for s in streams for one, at in s[: until * batch] if at == epoch)
    trained: Counter[int] = Counter()
    wrong = 0
    for stream, steps in zip(streams, survived, strict=True):
        for step, ids in steps:
            for index, one in enumerate(ids):
                at = step * batch + min(index, batch - 1)
                if stream[at][1] == epoch:
                    trained[one] += 1
                    wrong += index >= batch or stream[at][0] != one
    again = sum((n - whole[one]) for one, n in trained.items() if 0 < whole[one] < n)
    foreign = sum(n for one, n in trained.items() if not whole[one])
    never = sum((due - trained).values())
    rows = [one for one in found.epochs if one.epoch == epoch]
    if not rows:
        assert not trained
        assert not due
        return
    (row,) = rows
    assert (row.trained, row.again, row.foreign, row.never) == (
        trained.total(),
        again,
        foreign,
        never,
    )
    assert row.out_of_turn == wrong - again - foreign


@fuzzed(few=120)
def test_counts_are_those_of_what_survived(num_cases: int, tmp_path: Path) -> None:
    check_cases(st.integers(0, 2**32), lambda seed: check(seed, tmp_path), num_cases)


def _logged(folder: Path, text: str | bytes, name: str = "steps.log") -> str:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


SEQUENTIAL = {"cycle": 1, "batch": 4, "epochs": 2}

# A log of steps of 4 from 0, read in storage order -> kinds that differ, and what is said of it.
LOGS = {
    "0 0 1 2 3\n1 4 5 6 7\n": {},
    "0 0 1 2 3\n1 4 5 6": {},  # cut off: what is left is step 0
    "0\n1\n2\n": {},
    "0\n2\n": {"never": 4},
    "1 0 1 2 3\n2 4 5 6 7\n": {},  # from 1
    "0 0 1 2 3\n1 0 1 2 3\n": {"again": 4, "never": 4},
    "0 3 2 1 0\n": {"out of turn": 4},
    "0 0 1 2\n": {"never": 1},
    "0 0 1 2 3 4\n": {"out of turn": 1},
    "0 0 1 2 3\n0 0 1 2 3\n": {},  # step 0 was repeated
    "0 0 1 2 96\n": {"never": 1, "foreign": 1},
    "# a note\n\n0 0 1 2 3\n# host 0/1\n1 4 5 6 7\n": {},
    "0 toy-train.tfrecord-00000-of-00007__0 1 2 3\r\n": {},
    "# file 3 toy-train.tfrecord-00000-of-00007\n0 3__0 3__1 train:2 0_3\n": {},
}


@pytest.mark.parametrize("text", LOGS)
def test_differences_of_small_logs(text: str, tmp_path: Path) -> None:
    found = shardctl.audit(TOY, "train[:90]", SEQUENTIAL, logs=_logged(tmp_path, text))
    assert Counter(one["kind"] for one in found.differences) == LOGS[text]
    assert found.equal == (not LOGS[text])
    assert any("cut off" in one for one in found.warnings) == (
        "1 4 5 6" in text[-8:] and text[-1] != "\n"
    )


REFUSED = {
    "x 1\n": "steps.log, line 1: 'x' is no step: a line is STEP ID ID ..",
    "0 0 1 2 3\n1 4 97\n": "steps.log, line 2:",
    "0 0 1 2 3\n1 4 -1\n": "steps.log, line 2:",
    f"0 {'9' * 30}\n": "steps.log, line 1:",
    f"{'9' * 30} 1\n": "steps.log, line 1:",
    "0 other-train.tfrecord-00000-of-00007__0\n": "line 1: tfds_id",
    "0 0__1\n": "line 1: tfds_id",
    "# file 0 \x1b[31m\n0 0__1\n": "line 1: tfds_id",
    "# host 8/8\n0 1\n": "line 1:",
    "": "no step in",
    "# host 0/1\n": "no step in",
    "900 1\n": "the logs have 901 steps, and the order 45",
    f"{2**40 - 1} 1\n": "the logs have",
    "# host 0/2\n0 1\n9 1\n# host 0/3\n5 1\n# host 0/2\n7 1\n": "2 hosts again after step 5",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_log_is_refused_with_its_line(text: str, tmp_path: Path) -> None:
    path = _logged(tmp_path, text)
    with pytest.raises((DatasetError, UsageError)) as refusal:
        shardctl.audit(TOY, "train[:90]", SEQUENTIAL, logs=path)
    assert REFUSED[text] in str(refusal.value)
    assert str(refusal.value).isprintable()


def test_without_seeds_how_often_is_known_and_not_the_order(tmp_path: Path) -> None:
    ids = random.Random(3).sample(range(SIZE), SIZE)
    steps = [ids[at : at + 10] for at in range(0, SIZE, 10)]
    lines = [f"{at} {' '.join(map(str, one))}\n" for at, one in enumerate(steps)]
    settings = {"shuffle_files": True, "batch": 10}
    found = shardctl.audit(TOY, "train", settings, logs=_logged(tmp_path, "".join(lines)))
    assert found.equal
    assert found.epochs[0].out_of_turn is None
    assert found.epochs[0].once == SIZE
    lines[4] = lines[3].replace("3 ", "4 ", 1)
    found = shardctl.audit(TOY, "train", settings, logs=_logged(tmp_path, "".join(lines)))
    assert Counter(one["kind"] for one in found.differences) == {"again": 10, "never": 10}
    with pytest.raises(UnpredictableOrderError):
        shardctl.audit(TOY, "train", settings, logs=_logged(tmp_path, "0\n1\n"))


def test_other_loaders_and_hosts_by_their_own_rules(tmp_path: Path) -> None:
    settings = ReadSettings(loader="torch", shuffle_seed=5, batch=4, epochs=1, shuffle=True)
    for host in range(3):
        own = replace(settings, host=Host(index=host, count=3))
        order = shardctl.plan_order(TOY, "train", own).order
        log = StepLog(tmp_path / f"{host}-of-3.log", f"{host}/3")
        for step in range(order.num_steps or 0):
            part = order.positions_in_step(step)
            log.log(step, order.read(part.start, part.stop))
    found = shardctl.audit(TOY, "train", settings, logs=str(tmp_path))
    assert found.equal
    assert [one.host for one in found.hosts] == ["0/3", "1/3", "2/3"]
    # 97 examples for 3 samplers: DistributedSampler wraps around to 99.
    assert found.epochs[0].trained == 99


@pytest.mark.parametrize("ids", [[1.5], ["a b"], [None], [-1], ["x__"], ["a\nb__1"]])
def test_a_log_takes_ids_alone(ids: list[object], tmp_path: Path) -> None:
    log = StepLog(tmp_path / "steps.log")
    with pytest.raises(UsageError):
        log.log(1, ids)
    assert (tmp_path / "steps.log").read_text() == "# host 0/1\n"
