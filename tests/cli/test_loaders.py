"""Every command that has an order takes every loader, or refuses it by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shardctl.cli.app import application
from shardctl.cli.main import COMMANDS
from shardctl.loaders.loader import LOADERS, READERS
from tests.cli.conftest import Shardctl

LAYOUT = "name: toy\nsplits: {train: {shard_lengths: [3, 4, 0, 6]}, test: {shard_lengths: [5]}}\n"
# With what each has to be told besides; `verify` runs the library, in tests of its own.
LINES = (
    *("simulate", "locate --position 3 --id 5 --step 1 --batch 2", "resume --consumed 3"),
    *("hosts --hosts 2 --batch 2", "eval test --hosts 2 --batch 2", "quality", "report -f json"),
    *("lint --hosts 2 --batch 2", "snapshot", "diff order.yaml", "init --force", "config"),
)


@pytest.fixture(autouse=True)
def toy(shardctl: Shardctl) -> None:
    Path("toy.yaml").write_text(LAYOUT)


def has_loaders(command: str) -> bool:
    group = application(command)
    return any("--loader" in param.opts for param in group.commands[command].params)


def test_every_command_with_the_option_is_asked() -> None:
    assert {c for c in COMMANDS if has_loaders(c)} == {
        *(line.split()[0] for line in LINES),
        *("verify", "audit", "rehearse"),  # which read a log, or run a script
    }


@pytest.mark.parametrize("loader", READERS)
@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("ways", [slice(1, 2), pytest.param(slice(3), marks=pytest.mark.slow)])
def test_it_answers_or_refuses_by_name(
    ways: slice, line: str, loader: str, shardctl: Shardctl
) -> None:
    command = line.split(maxsplit=1)[0]
    if command == "diff":
        shardctl("snapshot", "-d", "toy.yaml", "-o", "order.yaml")
    options = ("", " --shuffle-seed 3", " --shuffle-seed 3 --epochs 2")
    for given in options[: 2 if command == "eval" else 3][ways]:
        ran = shardctl(*f"{line} -d toy.yaml --loader {loader}{given}".split())
        assert ran.exit_code in (0, 1, 2)
        errors = [line for line in ran.stderr.splitlines() if line.startswith("error: ")]
        assert len(errors) == (ran.exit_code == 2), ran.stderr
        assert "internal error" not in ran.stderr
        assert bool(ran.stdout) == (ran.exit_code != 2 and command != "init")
        if ran.exit_code == 2:  # what the loader itself does not have
            assert loader in ("stateful", "accelerate", "streaming", "webdataset"), ran.stderr


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(
    "form", ["json", "yaml", "csv", "ids", "tfds-ids", "jsonl", "npy", "python"]
)
def test_every_format_of_an_order(loader: str, form: str, shardctl: Shardctl) -> None:
    ran = shardctl(
        *("simulate", "-d", "toy.yaml", "--batch", 2, "-f", form, "-o", "out"),
        *("--loader", loader, "--loader-version", LOADERS[loader].proven[-1]),
    )
    assert (ran.exit_code, ran.stderr) == (0, "")
    data = Path("out").read_bytes()
    if form == "json":
        document = json.loads(data)
        assert document["ids"] == list(range(13))
        assert document["pipeline"]["loader"] == loader
        assert document["pipeline"]["loader_version"]
        assert document["pipeline"]["cycle"] is None
    if form == "ids":
        assert data.split() == [str(i).encode() for i in range(13)]
    if form == "python":
        compile(data, "out", "exec")
