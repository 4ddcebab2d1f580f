"""How long a million rows take to be text, beside json, csv and pyarrow, and a copy of the text.

Run with `pytest -o addopts= tests/benchmarks/test_rows_speed.py -s`; a library that is not
installed is left out. Times are processor seconds; those of others include Python values of the
same columns.
"""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from shardctl.core.columns import cell_values
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.files.documents import to_csv
from shardctl.planning.locate import MATCH_FIELDS
from shardctl.planning.simulate import Simulation, simulate
from shardctl.rendering.simulate import id_lines, simulate_lines, simulate_rows, tfds_id_lines

NUM = 1_000_000


def _ordered() -> Simulation:
    return simulate("imagenet2012", "train", take=NUM)


def _shuffled() -> Simulation:
    settings = ReadSettings(buffer=100_000, buffer_seed=1, shuffle_seed=1)
    return simulate("imagenet2012", "train", settings, take=NUM)


def _seconds(work: Callable[[], int]) -> tuple[float, int]:
    start = time.process_time()
    size = work()
    return time.process_time() - start, size


def _rows(simulation: Simulation) -> Iterator[tuple[Any, ...]]:
    for count, cells in simulate_rows(simulation).pieces():
        yield from zip(*(cell_values(cell, count) for cell in cells), strict=True)


def _json(simulation: Simulation) -> int:
    dumps = json.dumps
    return sum(
        len(dumps(dict(zip(MATCH_FIELDS, row, strict=True)))) + 1 for row in _rows(simulation)
    )


def _csv(simulation: Simulation) -> int:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(_rows(simulation))
    return buffer.tell()


def _str(simulation: Simulation) -> int:
    return sum(len("\n".join(map(str, codes.tolist()))) + 1 for codes in simulation.chunks())


def _texts(simulation: Simulation) -> int:
    codes_of = simulation.order.codes
    return sum(len("\n".join(codes_of.tfds_ids(c))) + 1 for c in simulation.chunks())


def _arrow(simulation: Simulation) -> int:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import csv as arrow_csv

    sink = pyarrow.BufferOutputStream()
    options = arrow_csv.WriteOptions(include_header=False, quoting_style="needed")
    for count, cells in simulate_rows(simulation).pieces():
        columns = [
            pyarrow.array(values if isinstance(values, np.ndarray) else cell_values(cell, count))
            for cell in cells
            for values in [getattr(cell, "values", None)]
        ]
        table = pyarrow.table(columns, names=list(MATCH_FIELDS))
        arrow_csv.write_csv(table, sink, options)
    return int(sink.getvalue().size)


CASES: list[
    tuple[str, Callable[[Simulation], Iterator[Any]], list[Callable[[Simulation], int]]]
] = [
    ("jsonl", simulate_lines, [_json]),
    ("csv", lambda s: to_csv(MATCH_FIELDS, simulate_rows(s)), [_csv, _arrow]),
    ("ids", id_lines, [_str]),
    ("tfds-ids", tfds_id_lines, [_texts]),
]


@pytest.mark.parametrize("made", [_ordered, _shuffled])
@pytest.mark.parametrize(("name", "ours", "others"), CASES)
def test_a_million_rows_beside_a_writer_of_rows(
    made: Callable[[], Simulation],
    name: str,
    ours: Callable[[Simulation], Iterator[Any]],
    others: list[Callable[[Simulation], int]],
) -> None:
    simulation = made()
    # What the order itself takes, which the answer needs whatever the format.
    order, _ = _seconds(lambda: sum(map(len, simulation.chunks())))
    taken, size = _seconds(lambda: sum(map(len, ours(simulation))))
    copied = bytearray(size)
    copy, _ = _seconds(lambda: len(bytes(copied)))
    print(
        f"\n{name}, {made.__name__[1:]}: {taken:.2f} s for {size / 1e6:.0f} MB, "
        f"{order:.2f} s of it the order; a copy {copy:.2f} s"
    )
    for other in others:
        seconds, _ = _seconds(lambda other=other: other(simulation))  # type: ignore[misc]
        ratio = (seconds - order) / max(taken - order, 0.001)
        print(f"  {other.__name__[1:]}: {seconds:.2f} s, {ratio:.1f} times as long")
        assert ratio > (1 if other is _arrow else 2)


def _process(*words: str) -> tuple[float, int]:
    """Return the processor seconds of a command, and the bytes that it writes."""
    before = os.times()
    command = [sys.executable, "-m", "shardctl", "simulate", "-d", "imagenet2012", *words]
    size = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while piece := process.stdout.read(1 << 20):
            size += len(piece)
    after = os.times()
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system, size


def test_a_million_rows_as_a_process() -> None:
    start, _ = min(_process("--take", "1", "-f", "ids") for _ in range(3))
    print()
    for name in ("jsonl", "csv", "ids", "tfds-ids", "json", "yaml"):
        taken, size = min(_process("--take", str(NUM), "-f", name) for _ in range(3))
        print(f"{name:8} {taken:.2f} s for {size / 1e6:.0f} MB; start-up {start:.2f} s")
        assert taken < start + 0.6
