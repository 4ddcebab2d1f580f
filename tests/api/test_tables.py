"""Answers as HTML tables and as DataFrames: the rows of the CSV, hostile text escaped."""

from __future__ import annotations

import base64
import csv
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import pytest

import shardctl
from shardctl import Dataset, Split
from shardctl.api.tables import view_of
from shardctl.base.by_name import named
from shardctl.base.columns import Answer, Tabular
from shardctl.draw.picture import DRAWERS
from tests.public_calls import World

ANSWERS: dict[str, Callable[[Any], Any]] = {
    "plan": lambda d: shardctl.plan(d, "train", "test", hosts=2),
    "layout": shardctl.layout,
    "simulate": lambda d: shardctl.simulate(d, "train", {"batch": 4}),
    "locate": lambda d: shardctl.locate(d, "train", {"batch": 4}, step=1, id=5),
    "resume": lambda d: shardctl.resume(d, "train", consumed=5),
    "hosts": lambda d: shardctl.hosts(d, "train", hosts=3),
    "sweep": lambda d: shardctl.hosts(d, "train", hosts=[2, 3]),
    "eval": lambda d: shardctl.evaluate(d, "train", batch=5, hosts=2),
    "quality": lambda d: shardctl.quality(d, "train", what_if=False),
    "loaders": lambda d: shardctl.compare_loaders(d, "train[:50%]"),
    "lint": lambda d: shardctl.lint(d, "train", {"epochs": 2}),
}
COMMANDS = {
    "plan": "plan train test --hosts 2",
    "layout": "layout",
    "simulate": "simulate train --batch 4",
    "locate": "locate train --batch 4 --step 1 --id 5",
    "resume": "resume train --consumed 5",
    "hosts": "hosts train --hosts 3",
    "sweep": "hosts train --hosts 2,3",
    "eval": "eval train --batch 5 --hosts 2",
    "quality": "quality train",
    "loaders": "quality train[:50%] --loaders",
}


class Table:
    """The cells of an HTML table, row by row, and every tag of what a notebook gets."""

    def __init__(self, text: str) -> None:
        before, _, table = text.partition("<table>")
        found = ElementTree.fromstring(f"<table>{table}")
        self.rows = [["".join(cell.itertext()) for cell in row] for row in found.iter("tr")]
        self.tags = {one.tag for one in found.iter()} | {*re.findall(r"<(\w+)", before)}


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_a_table_is_the_csv_of_the_command(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from shardctl.cli.main import main

    pandas = pytest.importorskip("pandas")
    monkeypatch.setenv("SHARDCTL_DATASET", "mnist")
    with pytest.raises(SystemExit):
        main([*COMMANDS[name].split(), "-f", "csv"])
    header, *expected = csv.reader(capsys.readouterr().out.splitlines())
    frame = ANSWERS[name]("mnist").to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == header

    def cell(value: Any) -> str:
        return "" if value is None or value is pandas.NA or value != value else str(value)

    rows = [[cell(value) for value in row] for row in frame.itertuples(index=False)]
    same = [[_number(cell) for cell in row] for row in rows]
    assert same == [[_number(cell) for cell in row] for row in expected]
    shown = Table(ANSWERS[name]("mnist")._repr_html_()).rows
    assert shown[0] == header
    assert len(shown) == 1 + (len(expected) if len(expected) <= 30 else 31)


def _number(cell: str) -> Any:
    try:
        return float(cell)
    except ValueError:
        return {"True": "true", "False": "false"}.get(cell, cell)


def test_whole_numbers_stay_whole_where_some_are_unknown() -> None:
    pytest.importorskip("pandas")
    large = 2**53 + 1  # which a float is not
    train = Split(name="train", shard_lengths=(3, 4), num_bytes=None, shard_bytes=(large, None))
    files = World().dataset.split("test").files
    train = Split(name="train", shard_lengths=(3, 4), files=files, shard_bytes=(large, None))
    frame = shardctl.layout(Dataset(name="toy", splits=(train,))).to_pandas()
    assert frame["num_bytes"].dtype == "Int64"
    assert frame["num_bytes"][0] == large
    assert frame["num_examples"].sum() == 7


def test_columns_without_rows_are_no_numbers() -> None:
    pandas = pytest.importorskip("pandas")
    nothing = shardctl.plan("mnist", "train[2:2]").to_pandas()
    assert {str(kind) for kind in nothing.dtypes} == {"object"}
    both = pandas.concat([nothing, shardctl.plan("mnist").to_pandas()])
    assert both["filename"].tolist() == ["mnist-train.tfrecord-00000-of-00001"]


def test_of_a_long_table_the_first_rows_are_shown() -> None:
    rows = Table(shardctl.plan("imagenet2012", "train")._repr_html_()).rows
    assert [row[2][-14:] for row in rows[1:3]] == ["00000-of-01024", "00001-of-01024"]
    assert (rows[-1], len(rows)) == (["… more rows; to_pandas() has all"], 1 + 30 + 1)
    text = shardctl.simulate("imagenet2012", take=-1)._repr_html_()
    assert Table(text).rows[-1] == ["… more rows; to_pandas() has all"]
    assert len(text[text.index("<table>") :]) < 20_000
    assert len(Table(shardctl.plan("mnist", "train[:0]")._repr_html_()).rows) == 1
    rows = Table(shardctl.plan("mnist", hosts=2).plans[1]._repr_html_()).rows
    assert rows[1][:3] == ["train", "1/2", "mnist-train.tfrecord-00000-of-00001"]


HOSTILE = "<script>alert('x')</script>\"\x1b[31m&amp;\u202e"


def test_nothing_in_a_table_is_markup() -> None:
    split = Split.even(name="train", num_examples=9, num_shards=3)
    dataset = Dataset(name=HOSTILE, config=HOSTILE, splits=(split,))
    for name, answer in ANSWERS.items():
        if name in ("plan", "layout", "simulate", "locate", "resume"):
            continue  # without the names of files
        text = answer(dataset)._repr_html_()
        tags = {"img", "table", "caption", "thead", "tbody", "tr", "th", "td"}
        assert Table(text).tags <= tags, name
        assert not re.search("[\x1b\u202e]", text)
        if name != "lint":
            assert "&lt;script&gt;" in text


def test_without_pandas_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(shardctl.MissingDependencyError, match=" -m pip install pandas"):
        shardctl.plan("mnist").to_pandas()
    assert shardctl.plan("mnist")._repr_html_()


def test_every_answer_with_rows_has_a_table() -> None:
    public = (getattr(shardctl, name) for name in shardctl.__all__)
    answers = {one for one in public if isinstance(one, type) and issubclass(one, Answer)}
    for answer in answers - {shardctl.Snapshot, shardctl.TakenSnapshot}:
        for what in ("document", "rows")[: 1 + issubclass(answer, Tabular)]:
            assert named(f"shardctl.verbs.{view_of(answer)}_{what}")


# Pictures above the table.


def _audited(dataset: Any) -> Any:
    with TemporaryDirectory() as folder:
        shardctl.StepLog(f"{folder}/0.log").log(0)  # a step without ids
        return shardctl.audit(dataset, "train", batch=4, logs=folder)


DRAWN = {
    "Audit": _audited,
    "Evaluation": ANSWERS["eval"],
    "HostsPlan": ANSWERS["hosts"],
    "Layout": ANSWERS["layout"],
    "LoaderComparison": ANSWERS["loaders"],
    "Quality": ANSWERS["quality"],
    "Simulation": ANSWERS["simulate"],
}
KINDS = pytest.mark.parametrize("kind", DRAWN)


def image_of(html: str) -> ElementTree.Element:
    """The SVG of the one image of an answer, which stands before the table."""
    (source,) = re.findall(r'<img [^>]*src="data:image/svg\+xml;base64,([^"]*)">', html)
    assert html.index("<img ") == 0
    assert html.count("<table>") == 1
    return ElementTree.fromstring(base64.b64decode(source))


@KINDS
def test_pictures_stand_above_the_table(kind: str) -> None:
    answer = DRAWN[kind]("mnist")
    assert type(answer).__name__ == kind
    html = answer._repr_html_()
    root = image_of(html)
    assert any(element.tag.endswith("}text") for element in root.iter())
    (said,) = re.findall(r'<img [^>]*alt="([^"]*)"', html)
    assert len(said) > 40


@KINDS
def test_no_name_in_a_picture_is_markup(kind: str) -> None:
    html = DRAWN[kind](replace(World().dataset, name=HOSTILE, config=HOSTILE))._repr_html_()
    image_of(html)
    assert "<script" not in html
    assert not re.search("[\x1b\u202e]", html)


@KINDS
def test_what_fails_to_draw_leaves_the_table(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(answer: Any) -> Any:
        raise ZeroDivisionError(answer)

    answer = DRAWN[kind]("mnist")
    whole = answer._repr_html_()
    for draws in (broken, lambda answer: ()):
        monkeypatch.setattr("shardctl.draw.picture.pictures_of", draws)
        table = answer._repr_html_()
        assert table.startswith("<table>")
        assert whole.endswith(table)


def test_answers_without_pictures_are_their_tables() -> None:
    assert shardctl.plan("mnist")._repr_html_().startswith("<table>")
    assert DRAWN.keys() == DRAWERS.keys()
