"""Files that an earlier shardctl wrote: compared as before, and written anew to the byte.

The folders hold layouts, snapshots and plans of them, and in diffs.txt commands with what they
answered: stdout, `stderr: ..` lines, `exit: N`. All of it was written by shardctl before its rooms
were divided, and is never written anew.
"""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Shardctl

FILES = Path(__file__).parents[2] / "files"
SNAPSHOTS, PLANS = FILES / "snapshot" / "written_before", FILES / "written_before"
TOY = "-d toy.yaml --shuffle-seed 42 --buffer 20 --buffer-seed 1 --epochs 2 --batch 8"
SPLITS = (
    "train[10%:]+test+extra[1shard] -d toy.yaml --cycle 3 --block 2 --reverse --host 1/2 "
    "--host-by files"
)
LONG = "train[:5%]+test -d long.yaml --cycle 64 --shuffle-seed 7"
COMMANDS = {
    "toy.pinned.yaml": TOY,
    "toy.pinned.json": f"{TOY} -f json",
    "grown.pinned.yaml": TOY.replace("toy", "grown"),
    "splits.pinned.yaml": SPLITS,
    "splits.pinned.json": f"{SPLITS} -f json",
    "long.pinned.yaml": LONG,  # too many shards to be kept: hashed
    "long.pinned.json": f"{LONG} -f json",
    "listed.pinned.yaml": "-d listed.yaml --file-order listed_order.txt --block 1",  # hashed
    "toy_order.pinned.yaml": (
        "-d toy.yaml --file-order toy_order.txt --epochs 3 --global-seed 5 --buffer -2"
    ),
    "ordered.pinned.yaml": "train[:8000] -d ordered.yaml --host 0/3 --batch 100 --drop-remainder",
    "named.pinned.yaml": "train+test -d named.yaml",
    "imagenet2012.pinned.yaml": (
        "-d imagenet2012 --shuffle-seed 42 --host 3/8 --loop keras-fit --epochs 2"
    ),
}


def answers(path: Path) -> dict[str, str]:
    """Return the answer to each command in a file."""
    found: dict[str, str] = {}
    for line in path.read_text("utf-8").splitlines(keepends=True):
        if line.startswith("$ "):
            command = line[2:].rstrip("\n")
            found[command] = ""
        else:
            found[command] += line
    return found


def answer(command: str, shardctl: Shardctl) -> str:
    """Return what a command answers, in the form of such a file."""
    ran = shardctl(*shlex.split(command)[1:])
    said = ran.stdout + "".join(f"stderr: {line}\n" for line in ran.stderr.splitlines())
    return said if not ran.exit_code else f"{said}exit: {ran.exit_code}\n"


COMPARED = [
    (folder, command, said)
    for folder in (SNAPSHOTS, PLANS)
    for command, said in answers(folder / "diffs.txt").items()
]


def copy_files(folder: Path, to: Path) -> None:
    for path in folder.iterdir():
        shutil.copy(path, to)
    names = (f"listed-train.tfrecord-{index:05d}-of-00400\n" for index in reversed(range(400)))
    (to / "listed_order.txt").write_text("".join(names))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_same_bytes_are_written_today(name: str, shardctl: Shardctl) -> None:
    copy_files(SNAPSHOTS, Path.cwd())
    ran = shardctl("snapshot", *COMMANDS[name].split())
    assert ran.exit_code == 0
    assert ran.stdout == (SNAPSHOTS / name).read_text("utf-8")


@pytest.mark.parametrize(
    ("folder", "command", "said"), COMPARED, ids=[command for _, command, _ in COMPARED]
)
def test_they_are_compared_as_before(
    folder: Path, command: str, said: str, shardctl: Shardctl
) -> None:
    copy_files(folder, Path.cwd())
    assert answer(command, shardctl) == said
