"""Records made of columns in every format, beside the same records written one by one."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.core.columns import HOLE, Cell, Numbers, Records, Texts
from shardctl.files.documents import json_line, json_lines, to_csv, to_json, to_yaml
from shardctl.files.rows_as_bytes import parts_of, rows_as_bytes
from tests.cases import FUZZ, check_cases
from tests.columns import records_of, rows_of, some_cells, some_texts


def _in_every_format(case: tuple[int, list[Cell]]) -> None:
    records = records_of(*case)
    rows = list(records)
    document = {"deep": [{"rows": rows, "after": 1}], "rows": rows}
    columns = {"deep": [{"rows": records, "after": 1}], "rows": records}
    assert "".join(to_json(columns)) == "".join(to_json(document))
    assert "".join(to_yaml(columns)) == "".join(to_yaml(document))
    assert "".join(to_yaml({"a": [records]})) == "".join(to_yaml({"a": [rows]}))
    lines = "".join(f"{json_line(row)}\n" for row in rows)
    assert b"".join(json_lines(records)) == lines.encode("utf-8", "backslashreplace")
    values = [tuple(row.values()) for row in rows]
    assert "".join(to_csv(records.fields, records)) == "".join(to_csv(records.fields, values))


def test_any_texts() -> None:
    check_cases(some_cells(), _in_every_format, 20)


def test_texts_that_are_written_as_columns() -> None:
    check_cases(some_cells(plain=True), _in_every_format, 20)


@pytest.mark.fuzz
@pytest.mark.parametrize("plain", [False, True])
def test_many_rows_of_any_texts(*, plain: bool) -> None:
    check_cases(some_cells(plain=plain), _in_every_format, FUZZ, fuzz=True)


@pytest.mark.long
def test_plain_rows_beside_json_and_csv_themselves() -> None:
    numbers = np.arange(50_000) * 97 % 100_003
    files = Texts(forms=[f"d,{HOLE}-of-8"], holes=(Numbers(values=numbers % 8, num_digits=5),))

    def columns(start: int, stop: int) -> Sequence[Cell]:
        rows = slice(start, stop)
        return [Numbers(values=numbers[rows]), None, rows_of(files, rows)]

    records = Records(len(numbers), ("n", "step", "file"), columns)
    expected = [(n, None, f"d,{n % 8:05d}-of-8") for n in numbers.tolist()]
    lines = [json.dumps(dict(zip(records.fields, row, strict=True))) for row in expected]
    assert b"".join(json_lines(records)).decode().splitlines() == lines
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([records.fields, *expected])
    assert "".join(to_csv(records.fields, records)) == buffer.getvalue()


def test_a_text_alone() -> None:
    def check(case: tuple[int, Texts]) -> None:
        count, texts = case
        rows = rows_as_bytes([*parts_of(texts, json.dumps), b"\n"], count)
        assert rows.decode() == "".join(f"{json.dumps(text)}\n" for text in texts.tolist())

    cases = st.integers(0, 5).flatmap(lambda count: st.tuples(st.just(count), some_texts(count)))
    check_cases(cases, check, 40)
