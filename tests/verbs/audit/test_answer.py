"""Audits of logs of simulated runs, beside counts made one by one of what the runs trained on."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

from hypothesis import strategies as st

import shardctl
from shardctl import Audit, Dataset, ReadSettings, Split, StepLog
from tests.cases import check_cases, fuzzed

SIZE = 97
TOY = Dataset(name="toy", splits=(Split.even(name="train", num_examples=SIZE, num_shards=7),))


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
        own = settings if num_hosts == 1 else replace(settings, host=host)
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
