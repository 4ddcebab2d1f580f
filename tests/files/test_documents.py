"""Documents: what is written reads back, as JSON, YAML and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import strategies as st

from shardctl.base.columns import Cell, OnDemand, Records, stream_of
from shardctl.files.documents import Block, Document, Words, json_lines, to_csv, to_json, to_yaml
from tests.cases import FUZZ, check_cases, few_or_many
from tests.columns import records_of, some_cells
from tests.golden import assert_evaluated, assert_golden

# fmt: off
TRICKY = [
    "", " ", "no", "No", "y", "on", "null", "~", "true", "1e3", "1.0", "0x1f", "0o7", "012", "1_0",
    "2020-01-01", "12:30:45", "-", "- a", "? a", ":", "a: b", "a #b", "#a", "*a", "&a", "!a", "@a",
    "%a", "`a`", "|", ">", "[a]", "{a}", "a, b", "'", '"', "it's", "\\", "\\n", "<<", "=", ".inf",
    ".nan", "...", "---", "a\nb", "\n", "a ", " a", "\t", "\x1b[31m", "\x85", "\u2028", "\ufeff",
    "\x7f", "\u202e", "\U000e0041", "名前", "😀", "train[40:]", "sha256:00ff", "5.1.0", "None",
]
# fmt: on
texts = st.sampled_from(TRICKY) | st.text(max_size=20)
keys = st.sampled_from(["name", "file_instructions", "no", "1"]) | st.text(max_size=8)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([1e16, 1e-7, 1.5e300, 5e-324, -0.0, 2**63, 10**400])
    | texts
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=25,
)
nested_documents = st.dictionaries(keys, values, max_size=6)


def json_text(document: dict[str, Any]) -> str:
    return "".join(to_json(document))


def yaml_text(document: dict[str, Any]) -> str:
    return "".join(to_yaml(document))


def same(one: object, other: object) -> bool:
    """Return whether two values are equal in kind too: 1 is not True, nor 1.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(map(same, one.values(), other.values()))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


@few_or_many(25, 150)
def test_any_document_reads_back_from_json_and_yaml(num_cases: int) -> None:
    loaders = [yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)]

    def check(document: dict[str, Any]) -> None:
        by_json, by_yaml = json_text(document), yaml_text(document)
        assert same(json.loads(by_json), document)
        for loader in loaders:
            assert same(yaml.load(by_yaml, Loader=loader), document), by_yaml
        assert (by_json + by_yaml).replace("\n", "").isprintable()

    check_cases(nested_documents, check, num_cases)


@pytest.mark.parametrize("text", TRICKY)
def test_text_stays_text_in_yaml(text: str) -> None:
    for document in ({"a": text}, {"a": [text]}, {"a": [[text]]}, {text: {"a": {"b": text}}}):
        assert yaml.safe_load(yaml_text(document)) == document


def test_records_and_lists_of_scalars_are_on_a_line_each() -> None:
    document = {
        "kind": "plan",
        "dataset": {"name": "toy", "config": None, "version": "5.1.0"},
        "plans": [
            {"spec": "train[40:]", "rows": [{"a": 1, "b": True}, {"a": 2, "b": 0.5}], "none": []},
            {"spec": "no", "rows": []},
        ],
        "nested": [[[1], [2]], [3]],
        "ids": [1, 2, 3],
        "block": Block(x=1, z="no", rows=[Block(x=[1]), Block(x=2)], none=Block()),
        "empty": {},
    }
    whole: list[dict[str, Any]] = [document, {}, {"a": 1, "b": "c"}]
    texts = [write(one) for one in whole for write in (json_text, yaml_text)]
    assert_golden(Path(__file__).with_name("documents.txt"), "".join(texts))


def test_floats_stay_floats_in_yaml() -> None:
    values = [math.inf, -math.inf, 1e300, 1e-300, 1e16, 0.1, math.nan]
    found = yaml.safe_load(yaml_text({"a": values}))["a"]
    assert list(map(repr, found)) == list(map(repr, values))


def test_words_are_lines_of_92_characters_in_yaml_and_a_list_in_json() -> None:
    words = ["a" * 43, "b" * 44, "c-" * 60, "1", "no"]  # 4 + 43 + 1 + 44 = 92
    document = {"tree": {"leaves": Words(words), "none": Words()}}
    assert yaml_text({"x": document}) == (
        f"x:\n  tree:\n    leaves: |\n      {words[0]}\n      {words[1]}\n      {words[2]}\n"
        "      1 no\n    none: []\n"
    )
    assert yaml_text(document).splitlines()[2] == f"    {words[0]} {words[1]}"
    assert yaml.safe_load(yaml_text(document))["tree"]["leaves"].split() == words
    assert json.loads(json_text(document)) == {"tree": {"leaves": words, "none": []}}


@pytest.mark.parametrize("write", [json_text, yaml_text])
def test_a_file_name_that_is_not_utf_8_is_escaped(write: Any) -> None:
    document = {"data_dir": "/data/\udcff", "rows": [{"a": "\udcff"}]}
    text = write(document)
    text.encode("utf-8")
    assert "\\udcff" in text
    if write is json_text:
        assert json.loads(text) == document


def read_csv(text: str) -> list[list[str]]:
    """Return rows of CSV, without the `'` before what a spreadsheet would compute."""
    rows = csv.reader(io.StringIO(text, newline=""))
    return [[re.sub("(^|;)'(?='* *[=+@＝＋＠－-])", r"\1", cell) for cell in row] for row in rows]


@few_or_many(60, 120)
def test_any_printable_rows_read_back_from_csv(num_cases: int) -> None:
    acting = st.sampled_from(["=", "+", "-", "@", "'", ";", " ", ":", '"', ",", "＝", "1"])
    printed = st.characters().filter(str.isprintable) | acting
    cell = st.integers().map(str) | st.text(printed, max_size=9)

    def check(rows: list[list[str]]) -> None:
        written = "".join(to_csv(stream_of(["a", "b"], rows)))
        assert read_csv(written) == [["a", "b"], *rows]

    rows = st.lists(st.lists(cell, min_size=2, max_size=2), max_size=6)
    check_cases(rows, check, num_cases)


@few_or_many(80, 120)
def test_no_cell_of_csv_acts(num_cases: int) -> None:
    pieces = ("::error::", "##vso[", "##[", "\x1b[", "\r", "\n", "\t", "=", "-", " ")
    acting = st.sampled_from(pieces)
    text = st.lists(st.characters() | acting, max_size=5).map("".join)

    def check(rows: list[list[str]]) -> None:
        written = "".join(to_csv(stream_of(["a", "b"], rows)))
        assert written.replace("\n", "").isprintable()
        assert "##[" not in written
        assert "##vso[" not in written
        assert not [line for line in written.split("\n") if line.lstrip().startswith("::")]
        for row in csv.reader(io.StringIO(written, newline="")):
            for cell in row:
                assert not re.match(r"\s*[=+@-](?![0-9.]*$)", cell)

    rows = st.lists(st.lists(text, min_size=2, max_size=2), max_size=3)
    check_cases(rows, check, num_cases)


def test_what_csv_makes_of_a_text_that_acts() -> None:
    assert_evaluated(globals(), "csv")


def test_no_line_of_a_document_is_a_command_of_a_ci_runner() -> None:
    value = {"::error::": "##[error]x", "names": ["::warning::", "a ##vso[x]", "###[b]", "##"]}
    for text in (
        json_text(value),
        yaml_text(value),
        json_text({"##[é": 1}),
        json_text({"##[\x9b": 1}),
    ):
        assert "##" not in text
        assert not [line for line in text.split("\n") if line.lstrip().startswith("::")]
    assert json.loads(json_text(value)) == yaml.safe_load(yaml_text(value)) == value


def test_long_csv_comes_in_pieces_that_join() -> None:
    rows = [[number, "x" * 50] for number in range(5_000)]
    pieces = list(to_csv(stream_of(["number", "text"], rows)))
    assert len(pieces) > 1
    expected = "number,text\n" + "".join(f"{number},{'x' * 50}\n" for number in range(5_000))
    assert "".join(pieces) == expected


def test_nothing_is_an_empty_cell_in_csv() -> None:
    assert "".join(to_csv(stream_of(["a", "b"], [[None, 0], ["", False]]))) == "a,b\n,0\n,False\n"


@pytest.mark.parametrize(
    "rows", [[], [{"x": 1}], [{"x": 1, "y": "no"}, {"x": 2, "y": None}], [1, 2]]
)
def test_what_is_made_on_demand_is_written_like_a_list(rows: list[Any]) -> None:
    document = {"a": 1, "rows": rows, "nested": [{"rows": rows}], "b": 2}
    lazy = OnDemand(len(rows), lambda index: rows[index])
    on_demand = {"a": 1, "rows": lazy, "nested": OnDemand(1, lambda _: {"rows": lazy}), "b": 2}
    for write in (to_json, to_yaml):
        assert "".join(write(on_demand)) == "".join(write(document))


@pytest.mark.long
@pytest.mark.parametrize("write", [to_json, to_yaml])
def test_a_million_records_take_no_memory(write: Callable[[Document], Iterator[str]]) -> None:
    chunks = write({"rows": OnDemand(10**12, lambda index: {"index": index})})
    tracemalloc.start()
    try:
        for _ in range(10_000):
            next(chunks)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


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


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("num_cases", [20, pytest.param(FUZZ, marks=pytest.mark.fuzz)])
def test_rows_of_any_texts(num_cases: int, plain: bool) -> None:
    check_cases(some_cells(plain=plain), _in_every_format, num_cases)


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
