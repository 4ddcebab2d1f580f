"""Answers as tables, documents and rows: each case is compared whole with a file in `views`."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.draw.tables import PLAIN, Screen
from shardctl.files.documents import to_csv, to_json, to_yaml
from shardctl.metadata.index.index import Index, IndexedSplit
from shardctl.metadata.index.planned_metadata import TfdsMetadata, TfdsSplit
from shardctl.metadata.index.splits_by_name import NameProblem
from shardctl.metadata.layouts import BrokenFile
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.index.check import FileChange, IndexCheck
from shardctl.verbs.index.view import summary, written
from shardctl.verbs.layout.answer import layout
from shardctl.verbs.layout.view import layout_document, layout_rows
from shardctl.verbs.list.answer import DatasetList, ListedDataset
from shardctl.verbs.locate.answer import Located, Query, locate_in
from shardctl.verbs.plan.answer import plan
from tests.cases import check_cases, few_or_many
from tests.golden import assert_evaluated, assert_golden
from tests.spec.tfds_splits import toy_dataset
from tests.strategies import datasets

NARROW, TERMINAL = Screen(width=34), Screen(width=80, abridged=True, color=True)


@dataclass(frozen=True, kw_only=True)
class Case:
    view: str  # module of verbs and the verb that begins the names of its functions
    answer: Any
    screens: Sequence[Screen] = (PLAIN,)
    table: dict[str, Any] = field(default_factory=dict)
    documents: bool = True

    def text(self) -> str:
        verb, _, name = self.view.partition(":")
        view = import_module(f"shardctl.verbs.{verb}.view")
        table = view.__dict__[f"{name}_table"]
        parts = [
            f"## {screen.width or 'all'} columns\n"
            + "".join(table(self.answer, screen, **self.table))
            for screen in self.screens
        ]
        if self.documents:
            document = "".join(to_json(view.__dict__[f"{name}_document"](self.answer)))
            rows = "".join(to_csv(view.__dict__[f"{name}_rows"](self.answer)))
            parts += [f"## document\n{document}", f"## rows\n{rows}"]
        return "\n".join(parts).replace("\x1b", "ESC")


def split_of(name: str, *lengths: int, **facts: Any) -> Split:
    files = ShardFiles(pattern=f"toy-{name}-\0", num_shards=len(lengths))
    return Split(name=name, shard_lengths=lengths, files=(files,), **facts)


def toy(*splits: Split, **facts: Any) -> Dataset:
    return Dataset(**{"name": "toy", "version": "1.0.0", "splits": splits, **facts})


def plan_cases() -> Iterator[tuple[str, Case]]:
    of_toy = toy_dataset({"train": (3, 4, 0, 3), "test": (2,)})
    specs = ["train[2:8]", "train", "test[:1]", "train[:2]+train[8:]", "all", "test+test[1:]"]
    specs += ["train[5:5]", "train[5:5]+test"]
    yield "plan", Case(view="plan:plan", answer=plan(of_toy, *specs), screens=(PLAIN, NARROW))
    yield "plan_hosts", Case(view="plan:plan", answer=plan(of_toy, "train", "test", hosts=3))
    long = plan(toy_dataset({"train": (2,) * 100}), "train")
    yield "plan_long", Case(view="plan:plan", answer=long, screens=(TERMINAL,), documents=False)
    odd = replace(of_toy, name="[red]toy")
    yield "plan_brackets", Case(view="plan:plan", answer=plan(odd, "train[40%:]"))


def layout_cases() -> Iterator[tuple[str, Case]]:
    both = (TERMINAL, PLAIN, NARROW)
    sized = split_of("train", 1000, 1500, num_bytes=2048, shard_bytes=(900, 1400))
    known = layout(toy(sized, data_dir="/data/toy/1.0.0"))
    yield "layout", Case(view="layout:layout", answer=known, screens=both)
    far = layout(toy(sized, data_dir="gs://b/toy/1.0.0"))
    yield "layout_remote", Case(view="layout:layout", answer=far, documents=False)
    mixed = toy(
        split_of("train", 1, num_bytes=7, shard_bytes=(9,)),
        split_of("test", 1, num_bytes=7),
        split_of("dev", 1),
    )
    yield "layout_mixed", Case(view="layout:layout", answer=layout(mixed))
    odd = toy(
        split_of("missing", 3, 0, 3, shard_bytes=(9, None, None)),
        split_of("empty", 0),
        Split(name="none", shard_lengths=()),
        split_of("a[b]\x1b[31m", 3, 0, 5, num_bytes=2048),
        name="[red]toy",
        ordered=True,
    )
    yield "layout_odd", Case(view="layout:layout", answer=layout(odd), screens=(TERMINAL, PLAIN))
    long = layout(toy(split_of("train", *[1] * 1024)))
    yield "layout_long", Case(view="layout:layout", answer=long, screens=both[:1], documents=False)


def list_cases() -> Iterator[tuple[str, Case]]:
    parts = (
        Split(name="train", shard_lengths=(1200, 34), num_bytes=2048),
        Split(name="test", shard_lengths=(5,), num_bytes=512),
    )
    mine = ListedDataset(
        name="toy",
        config="a",
        version="1.0.0",
        path="/home/somebody/tensorflow_datasets/toy/a/1.0.0",
        dataset=Dataset(name="toy", splits=parts, file_format="array_record"),
    )
    small = Dataset(name="x", splits=(Split(name="train", shard_lengths=(7,)),))
    built_in = tuple(
        ListedDataset(name=name, config=config, version="1.1.0", dataset=small)
        for name, config in (("coco", "2014"), ("coco", "2017"), ("mnist", None))
    )
    broken = ListedDataset(name="b", config=None, version="1.0.0", path="/b", problem="no splits")
    listed = DatasetList(
        data_dirs=("/data", "/more"), in_data_dirs=(broken, mine), built_in=built_in
    )
    assert listed.problems == ("no splits",)
    screens = (PLAIN, Screen(width=70, color=True), NARROW)
    yield "list", Case(view="list:list", answer=listed, screens=screens)
    yield "list_all", Case(view="list:list", answer=listed, table={"every_layout": True})
    for number, words in enumerate((["coco", "17"], ["mnits"], ["coco", "mnist"])):
        yield f"list_words_{number}", Case(view="list:list", answer=listed.having(words))
    yield "list_nothing", Case(view="list:list", answer=replace(listed, in_data_dirs=()))


def located(*positions: int, **settings: Any) -> Located:
    dataset = Dataset(name="d", splits=(split_of("train", 3, 2),))
    order = plan_order(dataset, "train", ReadSettings(**settings)).order
    return locate_in(order, [Query(kind="position", value=str(p)) for p in positions])


def locate_cases() -> Iterator[tuple[str, Case]]:
    for name, answer in {
        "locate": located(4, 0, cycle=1),
        "locate_steps": located(6, cycle=1, batch=4, epochs=2),
        "locate_nothing": located(),
    }.items():
        table = {"spec": "train"}
        yield name, Case(view="locate:locate", answer=answer, screens=(PLAIN, NARROW), table=table)


WHOLE = Index(
    name="toy",
    version=None,
    file_format="tfrecord",
    compression="GZIP",
    data_dir="/d",
    splits=(
        IndexedSplit(
            split=Split(
                name="train",
                shard_lengths=(1200, 0),
                files=(ShardFiles(data_dir="/d", num_shards=2, names=("a", "x/b")),),
                num_bytes=5000,
                shard_bytes=(5000, 0),
            ),
            versions=("mtime:1", "etag:y"),
        ),
    ),
    broken=(),
    problems=(),
    keep_going=False,
    num_files=2,
    num_known=0,
    num_counted=2,
    num_bytes_read=4096,
    seconds=0.5,
    paths=("/d",),
)


def index_cases() -> Iterator[tuple[str, Case]]:
    yield "index", Case(view="index:index", answer=WHOLE, table={"refs": ["/d x"]})
    wrong = replace(
        WHOLE,
        keep_going=True,
        broken=(BrokenFile("x/c", "train", "cut", "cut off", None, 99, 100, "mtime:3"),),
        problems=(NameProblem(kind="gap", split="train", text="shard 2 is missing"),),
    )
    yield "index_wrong", Case(view="index:index", answer=wrong, table={"refs": ["/d"]})
    equal = IndexCheck(
        layout="my layout.yaml",
        dataset=Dataset(name="toy", data_dir="/d", splits=(split_of("train", 3, 4),)),
        changes=(),
        num_files=2,
        num_counted=1,
        words=("/d", "--name", "toy"),
    )
    yield "index_check", Case(view="index:check", answer=equal)
    kinds: list[dict[str, Any]] = [
        {"kind": "grew", "then": 3, "now": 1400, "bytes_then": 30, "bytes_now": 2048},
        {"kind": "broken", "then": 4, "bytes_then": 30, "bytes_now": 30, "reason": "cut off"},
        {"kind": "appeared", "bytes_now": 9},
    ]
    changes = tuple(FileChange(path=f"f{n}", split="train", **one) for n, one in enumerate(kinds))
    changed = replace(equal, changes=changes)
    yield "index_changes", Case(view="index:check", answer=changed)
    metadata = TfdsMetadata(
        name="toy",
        version="1.0.0",
        folder="/d",
        file_format="tfrecord",
        splits=(TfdsSplit("train", 3, 2, "x-{SHARD_INDEX}"),),
        written=("features.json", "dataset_info.json"),
    )
    screens = (TERMINAL, PLAIN)
    yield "index_tfds", Case(view="index:tfds_metadata", answer=metadata, screens=screens)


CASES = dict(
    case
    for cases in (plan_cases, layout_cases, list_cases, locate_cases, index_cases)
    for case in cases()
)


@pytest.mark.parametrize("name", CASES)
def test_what_is_shown_is_that_of_the_file(name: str) -> None:
    assert_golden(Path(__file__).parent / "views" / f"{name}.txt", CASES[name].text())


@few_or_many(25, 60)
def test_json_yaml_and_csv_of_a_layout_say_the_same(num_cases: int) -> None:
    def check(dataset: Dataset) -> None:
        shown = layout(dataset)
        document = layout_document(shown)
        assert json.loads("".join(to_json(document))) == document
        assert yaml.safe_load("".join(to_yaml(document))) == document
        _, *rows = csv.reader("".join(to_csv(layout_rows(shown))).splitlines())
        # A name that a spreadsheet would compute has a ' before it (tests/files/test_documents.py).
        assert [[cell.removeprefix("'") for cell in row] for row in rows] == [
            [split["name"], *("" if value is None else str(value) for value in shard.values())]
            for split in document["splits"]
            for shard in split["shards"]
        ]

    check_cases(datasets(), check, num_cases)


def test_what_was_read_and_what_was_known() -> None:
    assert_evaluated(globals(), "summaries", summary)


def test_what_was_written_and_what_to_do_next() -> None:
    assert list(written(WHOLE, "my layout.yaml")) == [
        "wrote my layout.yaml: 1,200 examples in 2 files of 1 split",
        "2 files read in 0.5 s (4.0 KiB)",
        "next: show it, or check later what changed since:",
        "  shardctl layout -d 'my layout.yaml'",
        "  shardctl index --check 'my layout.yaml'",
    ]
    for path in ("files.csv", "layout"):
        assert list(written(WHOLE, path))[2:] == [
            f"'{path}' is no layout for -d: it would have to end in .yaml, .yml or .json"
        ]
