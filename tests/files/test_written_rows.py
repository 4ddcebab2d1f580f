"""Records made of columns in every format, beside the same records written one by one."""

from __future__ import annotations

import csv
import io
import json

import pytest

from shardctl.base.columns import Cell, Records, stream_of
from shardctl.files.documents import json_lines, to_csv, to_json, to_yaml
from tests.cases import FUZZ, check_cases
from tests.columns import records_of, some_cells


def _in_every_format(case: tuple[int, list[Cell]]) -> None:
    records = records_of(*case)
    rows = list(records)
    document = {"deep": [{"rows": rows, "after": 1}], "rows": rows}
    columns = {"deep": [{"rows": records, "after": 1}], "rows": records}
    assert json.loads("".join(to_json(columns))) == document
    assert "".join(to_yaml(columns)) == "".join(to_yaml(document))
    assert "".join(to_yaml({"a": [records]})) == "".join(to_yaml({"a": [rows]}))
    lines = "".join(json_lines(records))
    assert [json.loads(line) for line in lines.split("\n")[:-1]] == rows
    assert "##" not in lines
    assert lines.replace("\n", "").isprintable()
    values = [tuple(row.values()) for row in rows]
    assert "".join(to_csv(records)) == "".join(to_csv(stream_of(records.fields, values)))


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
    numbers = [n * 97 % 100_003 for n in range(50_000)]
    files = [f"d,{n % 8:05d}-of-8" for n in numbers]
    records = Records(
        len(numbers),
        ("n", "step", "file"),
        lambda start, stop: [numbers[start:stop], None, files[start:stop]],
    )
    expected = [(n, None, file) for n, file in zip(numbers, files, strict=True)]
    lines = [json.dumps(dict(zip(records.fields, row, strict=True))) for row in expected]
    assert "".join(json_lines(records)).splitlines() == lines
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([records.fields, *expected])
    assert "".join(to_csv(records)) == buffer.getvalue()
