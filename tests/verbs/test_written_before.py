"""Files that an earlier shardctl wrote: compared as before, and written anew to the byte.

The folders hold layouts, snapshots and plans of them, and in diffs.json commands with what they
answered. All of it was written by shardctl before its rooms were divided, and is never written
anew.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from shardctl.base.tfds_rules import ORDER_RULES, RuleSet
from tests.cli.conftest import Shardctl
from tests.golden import values

FILES = Path(__file__).parents[1] / "saved"
SNAPSHOTS, PLANS = FILES / "snapshot" / "written_before", FILES / "written_before"
VERSION_2 = FILES / "snapshot" / "version_2"  # the same snapshots in digests of version 2
TOY = "-d toy.yaml --shuffle-seed 42 --buffer 20 --buffer-seed 1 --epochs 2 --batch 8"
SPLITS = (
    "train[10%:]+test+extra[1shard] -d toy.yaml --cycle 3 --block 2 --reverse --host 1/2 "
    "--host-by files"
)
LONG = "train[:5%]+test -d long.yaml --cycle 64 --shuffle-seed 7"
COMMANDS = values(Path(__file__).with_name("written_before.txt"), globals())


# With what the rules of these files had been compared when they were written.
RULES = RuleSet(version=1, tensorflow="2.21", tensorflow_datasets="4.9.10")


@pytest.fixture
def rules_of_then(monkeypatch: pytest.MonkeyPatch) -> None:
    assert RULES.version == ORDER_RULES.version
    monkeypatch.setattr("shardctl.verbs.snapshot.answer.ORDER_RULES", RULES)


COMPARED = [
    (folder, entry)
    for folder in (SNAPSHOTS, PLANS)
    for entry in json.loads((folder / "diffs.json").read_text("utf-8"))
]


def without_prose(answer: Any) -> Any:
    """Return an answer without its sentences, which may be put in better words."""
    if isinstance(answer, list):
        return [without_prose(item) for item in answer]
    if isinstance(answer, dict):
        kept = {key: value for key, value in answer.items() if key != "text"}
        kept |= {"notes": len(answer["notes"])} if "notes" in answer else {}
        return {key: without_prose(value) for key, value in kept.items()}
    return "the current order" if answer == "today" else answer  # the label of then


def copy_files(folder: Path, to: Path) -> None:
    for path in folder.iterdir():
        shutil.copy(path, to)
    names = (f"listed-train.tfrecord-{index:05d}-of-00400\n" for index in reversed(range(400)))
    (to / "listed_order.txt").write_text("".join(names))


@pytest.mark.usefixtures("rules_of_then")
@pytest.mark.parametrize("name", COMMANDS)
def test_the_same_bytes_are_written_today(name: str, shardctl: Shardctl) -> None:
    copy_files(SNAPSHOTS, Path.cwd())
    ran = shardctl("snapshot", *COMMANDS[name].split())
    assert ran.exit_code == 0
    assert without_refs(ran.stdout) == (VERSION_2 / name).read_text("utf-8")


def without_refs(text: str) -> str:
    """Return a snapshot without how the dataset was named, which was new in version 1.

    It is outside what the checksum covers.
    """
    return re.sub(r'^(refs:|  "refs":) .*\n', "", text, flags=re.MULTILINE)


@pytest.mark.long
@pytest.mark.usefixtures("rules_of_then")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_of_version_1_is_compared_with_today_and_brought_up_to_date(
    name: str, shardctl: Shardctl
) -> None:
    copy_files(SNAPSHOTS, Path.cwd())
    spec, *options = COMMANDS[name].replace(" -f json", "").split()
    given = ["--spec", spec, *options] if not spec.startswith("-") else [spec, *options]
    same = shardctl("diff", name, *given)
    assert same.exit_code == 0, same.stdout
    assert shardctl("diff", name, *given, "--spec", "train[1:]").exit_code == 1
    assert Path(name).read_text("utf-8") == (SNAPSHOTS / name).read_text("utf-8")
    assert shardctl("diff", name, *given, "--update").exit_code == 0
    assert without_refs(Path(name).read_text("utf-8")) == (VERSION_2 / name).read_text("utf-8")


def test_more_versions_of_tensorflow_behind_the_same_rules_are_no_update(
    shardctl: Shardctl,
) -> None:
    copy_files(SNAPSHOTS, Path.cwd())
    copy_files(VERSION_2, Path.cwd())
    name = "toy.pinned.yaml"
    assert str(ORDER_RULES) != str(RULES)
    ran = shardctl("diff", name, *TOY.split(), "--update")
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert Path(name).read_bytes() == (VERSION_2 / name).read_bytes()
    written = yaml.safe_load(shardctl("snapshot", *TOY.split()).stdout)
    assert written["rules"]["tensorflow"] == ORDER_RULES.tensorflow


@pytest.mark.parametrize("name", COMMANDS)
def test_two_files_of_two_versions_are_compared_where_an_order_can_be_made(
    name: str, shardctl: Shardctl
) -> None:
    old, new = SNAPSHOTS / name, VERSION_2 / name
    hashed = name.startswith(("long", "listed"))
    for one, other in ((old, new), (new, old)):
        ran = shardctl("diff", str(one), str(other))
        assert ran.exit_code == (2 if hashed else 0), ran.stderr
        if hashed:
            assert f"{old} has digests of version 1 and {new} of version 2" in ran.stderr
            assert ran.stderr.endswith("write the older one anew with shardctl snapshot -o FILE\n")
    if name == "toy.pinned.yaml":
        ran = shardctl("diff", str(old), str(VERSION_2 / "toy_order.pinned.yaml"))
        assert (ran.exit_code, ran.stderr) == (1, "")
        both = [
            str(FILES / "snapshot" / folder / "toy_order.pinned.yaml")
            for folder in ("written_before", "version_2")
        ]
        again = [shardctl("diff", str(VERSION_2 / name), path).stdout for path in both]
        assert again[0].replace("written_before", "version_2") == again[1]


@pytest.mark.parametrize(
    ("folder", "entry"), COMPARED, ids=[entry["command"] for _, entry in COMPARED]
)
def test_they_are_compared_as_before(
    folder: Path, entry: dict[str, Any], shardctl: Shardctl
) -> None:
    copy_files(folder, Path.cwd())
    ran = shardctl(*entry["command"].split())
    assert ran.exit_code == entry["exit"]
    if "answer" in entry:
        assert without_prose(json.loads(ran.stdout)) == without_prose(entry["answer"])
    else:
        assert (ran.stdout, ran.stderr[:7]) == ("", "error: ")
