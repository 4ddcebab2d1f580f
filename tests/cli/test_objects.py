"""Objects of other loaders are read back, compared with their order, and need no TensorFlow."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardctl
from shardctl.errors import UsageError
from shardctl.live.library import LoaderObject, reader_of
from shardctl.live.objects import rows_of
from shardctl.loaders.loader import LOADERS, calls_of
from shardctl.stages.stages import Pipeline
from tests.cli import test_toy_chain as toy
from tests.cli.conftest import Shardctl

KINDS = {"reverse": toy.Reverse, "pack": toy.Pack, "again": toy.Again}
SCRIPT = """
from tests.cli.test_objects import Rows
def make(): return Rows("abcde", ("reverse", ()), ("pack", (2,)))
def several(): return {"train": make(), "test": (Rows([1, 2, 3]), 5)}
def other(): return Rows([1, 2, 3], ("reverse", ()), shown=())
def mapped(): return Rows([1, 2, 3], change=lambda element: element * 100)
def endless(): return Rows([1, 2, 3], ("again", ()))
def unknown(): return Rows([1, 2, 3], ("sort", ()))
def number(): return 5
"""


class Rows:
    """Rows of a source, of which `shown` are the calls that can be read back."""

    __module__ = "rowslib"

    def __init__(self, source: Any, *calls: Any, shown: Any = None, change: Any = None) -> None:
        self.source, self.calls, self.change = source, calls, change
        self.shown = calls if shown is None else shown

    def __iter__(self) -> Iterator[Any]:
        rows, calls = list(map(self.change or (lambda row: row), self.source)), dict(self.calls)
        rows = rows[::-1] if "reverse" in calls else rows
        if "pack" in calls:
            (size,) = calls["pack"]
            rows = [rows[at : at + size] for at in range(0, len(rows), size)]
        yield from rows
        while "again" in calls:
            yield from rows


def read_object(made: Any) -> LoaderObject | None:
    if not isinstance(made, Rows):
        return None
    known: dict[Any, Any] = {}
    if any(name not in KINDS for name, _ in made.shown):
        raise UsageError("rowslib.sort: its order is not known here")
    stages = [KINDS[name](**({"size": of[0]} if of else {})) for name, of in made.shown]
    chain = Pipeline(source=reader_of(made.source, known), stages=tuple(stages))
    return LoaderObject(loader=str(toy.NAME), stages=chain, sources=known)


@pytest.fixture(autouse=True)
def script(shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    added = {
        "takes": ("stages", "batch", "host"),
        "packages": ("rowslib",),
        "reads": f"{__name__}:read_object",
    }
    monkeypatch.setitem(LOADERS, toy.NAME, replace(toy.LOADER, **added))  # type: ignore[arg-type]
    Path("train.py").write_text(SCRIPT)
    yield
    calls_of.cache_clear()


def test_its_stages_and_order_are_inspected(shardctl: Shardctl) -> None:
    found = json.loads(shardctl("inspect", "train.py:make", "-f", "json").stdout)
    (pipeline,) = found["pipelines"]
    calls = [stage["call"] for stage in pipeline["stages"]]
    assert (calls, found["predictable"]) == (["range(5)", "reverse", "pack(2)"], True)
    assert shardctl("inspect", "train.py:make", "-o", "shardctl.yaml").exit_code == 0
    assert json.loads(shardctl("simulate", "-f", "json").stdout)["ids"] == [4, 3, 2, 1, 0]
    ran = shardctl("inspect", "train.py:several", "-f", "json")
    assert [one["name"] for one in json.loads(ran.stdout)["pipelines"]] == ["train", "test.0"]


def test_an_object_itself_is_inspected() -> None:
    found = shardctl.inspect(Rows("abc", ("reverse", ()), ("pack", (2,))))
    assert (found.predictable, found.ids().tolist()) == (True, [2, 1, 0])
    assert shardctl.tfds.verify_dataset(Rows("abc", ("reverse", ()))).equal


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("make", 0, "as predicted: 5 of 5 examples"),
        ("other", 1, "differs at position 0"),
        ("endless", 0, "as predicted: 100,000 of an endless order"),
        ("mapped", 2, "error: its elements are none of the examples of its sources"),
        ("unknown", 2, "error: rowslib.sort: its order is not known here"),
        ("several", 2, "choose with --only NAME: train, test.0"),
        ("number", 2, "returned int, no tf.data.Dataset nor what iterates one, and no object of"),
    ],
)
def test_what_it_yields_is_compared(name: str, code: int, said: str, shardctl: Shardctl) -> None:
    ran = shardctl("verify", f"train.py:{name}")
    assert ran.exit_code == code, ran.stderr
    assert said in ran.stdout + ran.stderr


def test_batches_are_taken_apart() -> None:
    assert rows_of([np.array([[1], [2]]), ["a", "b"]], 2) == [
        [np.array([1]), "a"],
        [np.array([2]), "b"],
    ]
    assert rows_of(["a", "b"], 2) == ["a", "b"]
    assert [*map(int, rows_of(np.array([[1, 2], [3, 4]]), 4))] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "line",
    [
        *("simulate -f python", "resume --consumed 3", "resume --consumed 3 --prove"),
        *("resume --consumed 3 -f json", "hosts --hosts 2", "eval --hosts 2", "quality", "lint"),
        *(
            "report",
            "report -f html -o r.html",
            "config",
            "snapshot",
            "locate --position 3",
            "plan train",
        ),
    ],
)
@pytest.mark.parametrize(
    "stages", ["reverse | pack(2)", "both(train | reverse, test) | pack(3)", "pack(2) | again"]
)
def test_every_command_takes_a_chain(line: str, stages: str, shardctl: Shardctl) -> None:
    by = ("-d", "toy.yaml", "--loader", str(toy.NAME), "--stages", stages)
    splits = "{train: {shard_lengths: [3, 2]}, test: {shard_lengths: [2]}}"
    Path("toy.yaml").write_text(f"name: toy\nsplits: {splits}\n")
    ran = shardctl(*line.split(), *by)
    errors = [text for text in ran.stderr.splitlines() if text.startswith("error: ")]
    assert len(errors) == (ran.exit_code == 2), ran.stderr
    assert "internal error" not in ran.stderr
    assert ran.exit_code != 2 or "again" in stages or line in ("simulate -f python", "plan train")


GRAIN = """
import grain
class Source:
    def __len__(self): return 20
    def __getitem__(self, index): return {"x": index, "t": str(index)}
def make():
    ds = grain.MapDataset.source(Source()).seed(5).shuffle().map(lambda one: {"x": one["x"] * 2})
    return ds.to_iter_dataset().batch(3)
def plain(): return grain.MapDataset.source(Source()).shuffle(seed=1).repeat(2).batch(3)
def loader():
    shards = grain.sharding.ShardOptions(1, 2)
    sampler = grain.samplers.IndexSampler(20, shards, shuffle=True, seed=7, num_epochs=2)
    batch = [grain.transforms.Batch(4)]
    return grain.DataLoader(data_source=Source(), sampler=sampler, operations=batch)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["make", "plain", "loader"])
def test_objects_of_grain_yield_what_is_predicted(name: str, shardctl: Shardctl) -> None:
    pytest.importorskip("grain")
    Path("real.py").write_text(GRAIN)
    ran = shardctl("verify", f"real.py:{name}")
    assert ran.exit_code == 0, ran.stderr
    assert "as predicted" in ran.stdout


IMPORTS = """
import sys
from shardctl.cli.main import main
try: main(["inspect", "real.py:make", "-f", "json"])
finally: print("tensorflow" in sys.modules, file=sys.stderr)
"""


def imported(script: str) -> tuple[str, str]:
    Path("real.py").write_text(script)
    ran = subprocess.run(
        [sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=False
    )
    return ran.stdout, ran.stderr.splitlines()[-1]


def test_tensorflow_is_imported_where_the_script_does() -> None:
    assert imported("def make(): return 5") == ("", "False")


@pytest.mark.tensorflow
@pytest.mark.slow
def test_lines_of_a_script_that_imports_late_are_seen() -> None:
    late = "def make():\n  import tensorflow as tf\n  return tf.data.Dataset.range(5).batch(2)\n"
    shown, has_tensorflow = imported(late)
    stages = json.loads(shown)["pipelines"][0]["stages"]
    assert ([one["line"] for one in stages], has_tensorflow) == ([3, 3], "True")
