"""Answers as dicts, JSON and files: what the command of the name prints and writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import shardctl
from shardctl.cli.main import main
from tests.golden import values
from tests.record_files import framed

_BATCH: dict[str, Any] = {"shuffle_seed": 3, "batch": 4}
CASES: dict[str, tuple[Callable[[], Any], str]] = values(
    Path(__file__).with_name("documents.txt"), globals()
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHARDCTL_DATASET", "mnist")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.tfrecord").write_bytes(framed(b"x"))
    for name, consumed in (("a", 9), ("b", 10)):
        shardctl.snapshot("mnist", "test", block=consumed).save(f"{name}.yaml")
        shardctl.resume("mnist", consumed=consumed).save(f"plan-{name}.yaml")
    return tmp_path


def run(command: str, *more: str) -> None:
    with pytest.raises(SystemExit):
        main([*command.split(), *more])


@pytest.mark.long
@pytest.mark.parametrize("command", CASES)
def test_an_answer_is_written_as_the_command_writes_it(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call, endings = CASES[command]
    answer = call()
    capsys.readouterr()
    run(command, "-f", "json")
    printed = capsys.readouterr().out
    assert answer.to_json() == printed
    assert answer.to_dict() == json.loads(printed)
    for ending in [one for one in ("json", "yaml", "csv", "html") if one[0] in endings]:
        run(command, "-o", f"theirs.{ending}")
        answer.save(folder / f"ours.{ending}")
        assert Path(f"ours.{ending}").read_bytes() == Path(f"theirs.{ending}").read_bytes(), ending


def test_plans_and_snapshots_are_read_back(folder: Path) -> None:
    plan, taken = shardctl.resume("mnist", consumed=9), shardctl.snapshot("mnist", "test")
    for ending in ("json", "yaml"):
        plan.save(f"plan.{ending}")
        assert shardctl.read_plan(f"plan.{ending}") == plan
        taken.save(f"order.{ending}")
        assert shardctl.read_snapshot(f"order.{ending}") == taken.snapshot
    taken.snapshot.save("again.yaml")
    assert Path("again.yaml").read_bytes() == Path("order.yaml").read_bytes()
    assert yaml.safe_load(Path("again.yaml").read_text("utf-8")) is not None


def test_a_plan_of_one_host_is_the_entry_of_all_plans() -> None:
    plans = shardctl.plan("mnist", hosts=2)
    assert plans.plans[1].to_dict()["plans"] == plans.to_dict()["plans"][1:]


@pytest.mark.parametrize("name", ["plan", "plan.txt", "plan.html", "folder.json/"])
def test_another_ending_is_refused(name: str, folder: Path) -> None:
    with pytest.raises(shardctl.UsageError) as raised:
        shardctl.resume("mnist", consumed=9).save(name)
    if name[-1] != "/":
        said = "its ending is to be .json, .yaml, .yml or .csv"
        assert str(raised.value) == f"path='{name}': {said}"
    assert not Path(name).exists()
