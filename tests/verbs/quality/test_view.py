"""The quality of an order, and of all loaders, as people and programs read it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from shardctl.dataset.dataset import Dataset, ExampleSize
from shardctl.draw.tables import PLAIN, Screen
from shardctl.files.documents import to_csv, to_json, to_yaml
from shardctl.verbs.quality import view
from shardctl.verbs.quality.answer import Alternative, Quality, quality
from shardctl.verbs.quality.compare_loaders import Ending, LoaderComparison, compare_loaders
from shardctl.verbs.quality.metrics import Metric, score_of
from tests.cli.conftest import Shardctl
from tests.golden import assert_evaluated, assert_golden
from tests.verbs.quality.quality_orders import even_dataset

_SIZE = ExampleSize(num_bytes=600, num_tensors=2)
_PARTLY = replace(_SIZE, unknown=("image", "name"))
FULL = {"shuffle_seed": 1, "buffer": 50, "buffer_seed": 1, "host": "0/2", "batch": 16, "epochs": 2}
MEMORY = {"memory": "1MB", "what_if": False}


def sized(size: ExampleSize | None, num_bytes: int | None = None, shards: int = 40) -> Dataset:
    plain = even_dataset(20_000, shards)
    splits = tuple(replace(split, num_bytes=num_bytes) for split in plain.splits)
    return replace(plain, splits=splits, features=lambda: size)


def of(dataset: Dataset, settings: dict[str, Any], **asked: Any) -> Callable[[], Quality]:
    return lambda: quality(dataset, "train", settings, **asked)


BUFFER = {"buffer": 100, "buffer_seed": 1}
PLANS: dict[str, Callable[[], Quality | LoaderComparison]] = {
    "plain": of(even_dataset(400, 2), {}, what_if=False),
    "full": of(even_dataset(4000, 20), FULL, target=0.5),
    "timed": of(even_dataset(400, 4), {"shuffle_files": True, "repeat_files": True}),
    "sampled": of(even_dataset(3_000_000, 300), {"shuffle_seed": 1, "pass_index": 3}),
    "memory": of(sized(_SIZE), {**BUFFER, "host": "0/2"}, **MEMORY),
    "partly": of(sized(_PARTLY), {"shuffle_seed": 1, **BUFFER}, **MEMORY),
    "unreached": of(even_dataset(400, 4), {**BUFFER, "buffer": 900}, target=1.0, what_if=False),
    "reached": of(even_dataset(400, 4), {"shuffle_seed": 1}, target=0.001, what_if=False),
    "loaders": lambda: compare_loaders(
        even_dataset(1_000, 10), "train[:95%]", {"batch": 32, "host": "0/3"}
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_answers_are_those_on_file(name: str) -> None:
    """As a table, a document and rows; of numbers five digits, which no platform changes."""
    plan = PLANS[name]()
    kind = "loaders" if name == "loaders" else "quality"
    more = {"details": name != "plain"} if kind == "quality" else {}
    table, document, rows = (
        getattr(view, f"{kind}_{form}") for form in ("table", "document", "rows")
    )
    for width in (30, 60, 80, 120):
        lines = "".join(table(plan, Screen(width=width), **more)).splitlines()
        assert max(map(len, lines)) <= width
    text = "".join(to_json(document(plan)))
    assert yaml.safe_load("".join(to_yaml(document(plan)))) == json.loads(text)
    rounded = json.loads(text, parse_float=lambda number: float(f"{float(number):.5g}"))
    cells = [row.split(",") for row in "".join(to_csv(rows(plan))).splitlines()]
    shown = [",".join(c if len(c) < 9 else c[:7] for c in row) for row in cells]
    parts = [
        "".join(table(plan, PLAIN, **more)),
        "".join(to_yaml(rounded)),
        *(f"{row}\n" for row in shown),
    ]
    assert_golden(Path(__file__).with_name("golden") / f"{name}.txt", "".join(parts))


def memory(dataset: Dataset, **asked: Any) -> str:
    plan = quality(dataset, "train", what_if=False, **asked)
    return "\n".join([*view.memory_lines(plan), *view.advice(plan)[0]])


def choice(change: str, value: float, num_bytes: int | None = None) -> Alternative:
    metric = Metric(name="x", value=1 - value, expected=0, spread=0, fault="above", reach=1)
    size = {"buffer": num_bytes and 9, "num_bytes": num_bytes}
    return Alternative(change=change, score=score_of([metric]), verdict="fair", **size)


AS_IT_IS, LARGER = choice("as it is", 0.25), choice("--buffer 9", 0.75, 2048)
WORSE, BETTER = choice("--block 1", 0.125), choice("--block 1", 0.5)


def best(*choices: Alternative) -> str:
    plan: Any = SimpleNamespace(alternatives=choices)
    return view.best_line(plan)


def ending(fewest: int = 5, **counts: Any) -> Ending:
    nothing = {"num_repeated": 0, "num_left_out": 0, "num_dropped": 0, "last_batch": None}
    return Ending(num_hosts=2, fewest_steps=fewest, most_steps=5, **{**nothing, **counts})


def test_single_lines_are_those_on_file() -> None:
    assert_evaluated(globals(), "lines")


@pytest.mark.parametrize(
    "typed", ["", "--shuffle-files --target 0.9", "--stages shuffle(9,seed=1)"]
)
def test_the_printed_command_runs_and_scores_as_promised(shardctl: Shardctl, typed: str) -> None:
    Path("toy.yaml").write_text(
        "name: toy\nsplits: {train: {num_examples: 20000, num_shards: 40, num_bytes: 90000}}\n"
    )
    Path("shardctl.yaml").write_text("dataset: toy.yaml\nread: {cycle: auto, cpus: 9}\n")
    said = shardctl("quality", "train[:90%]", *typed.split()).stdout
    assert len(said.splitlines()) <= 25
    found = re.search(r"(?:\(score|scores) (0\.\d+)(?s:.*)\n  shardctl (.*)\n", said)
    if typed.startswith("--stages"):  # a shuffle of theirs is no option
        assert re.search("change: .*--buffer 90 ", said) is not None
        assert found is None
        return
    assert found is not None
    again = shardctl(*shlex.split(found[2]))
    assert (again.exit_code, f"score {found[1]} (" in again.stdout) == (0, True)
