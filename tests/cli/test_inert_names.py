"""Names that would be commands to a runner of CI, formulas or options do nothing anywhere."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Shardctl

SPLITS = ("::error title=x::", "  ::add-mask::a", "a ##vso[task.setvariable]b", "##[error]c", "=1")
# What actions/runner and azure-pipelines-agent look for, by their sources (see base/text.py).
COMMAND = re.compile(r"^\s*::|##\[|##vso\[", re.MULTILINE)


@pytest.fixture
def hostile(shardctl: Shardctl) -> tuple[str, str]:
    """The options that choose a dataset whose names are commands."""
    template = "{SPLIT}-{DATASET}.{FILEFORMAT}-{SHARD_X_OF_Y}"
    splits = {name: {"shard_lengths": [3, 2], "filepath_template": template} for name in SPLITS}
    Path("l.json").write_text(json.dumps({"name": "::group::n", "splits": splits}))
    return ("-d", "l.json")


_COMMANDS = (
    ("layout",),
    ("layout", "::error title=x::"),
    ("plan", "all"),
    ("plan", "::error::"),
    ("simulate", "all"),
    ("locate", "all", "--position", "0"),
    ("resume", "all", "--consumed", "0"),
    ("resume", "all", "--consumed", "3", "--new-hosts", "2"),
    ("hosts", "all", "--hosts", "2"),
    ("eval", "all", "--batch", "4"),
    ("quality", "all"),
    ("lint", "all"),
    ("snapshot", "all"),
    ("config",),
    ("list", "--data-dir", "::error::"),
    ("::error::",),
    ("plan", "::a", "##[error]x", "-f", "##vso[x]"),
)


@pytest.mark.parametrize("arguments", _COMMANDS)
def test_no_line_is_a_command(
    arguments: tuple[str, ...], shardctl: Shardctl, hostile: tuple[str, str]
) -> None:
    chosen = hostile if arguments[0] not in ("list", "::error::") else ()
    for form in ("table", "json", "yaml", "csv", "jsonl", "ids", "tfds-ids"):
        ran = shardctl(*arguments, *chosen, *([] if "-f" in arguments else ["-f", form]))
        assert ran.exit_code in (0, 1, 2)
        assert not COMMAND.search(ran.stderr)
        assert not COMMAND.search(ran.stdout), form


def test_documents_are_exact(shardctl: Shardctl, hostile: tuple[str, str]) -> None:
    as_json = json.loads(shardctl("layout", *hostile, "-f", "json").stdout)
    as_yaml = yaml.safe_load(shardctl("layout", *hostile, "-f", "yaml").stdout)
    assert as_json == as_yaml
    assert tuple(split["name"] for split in as_json["splits"]) == SPLITS
    assert as_json["dataset"]["name"] == "::group::n"
    lines = shardctl("simulate", "all", *hostile, "-f", "jsonl").stdout.splitlines()
    assert json.loads(lines[0])["id"] == "::error title=x:::0"


def test_tables_and_csv_say_what_the_name_is(shardctl: Shardctl, hostile: tuple[str, str]) -> None:
    table = shardctl("layout", *hostile).stdout
    assert "\n\\x3a:error title=x:: " in table
    assert "\na \\x23#vso[task.setvariable]b " in table
    rows = list(csv.reader(shardctl("layout", *hostile, "-f", "csv").stdout.splitlines()))
    assert rows[1][0] == "::error title=x::"
    assert rows[-1][0] == "'=1"


@pytest.mark.parametrize("form", ["ids", "tfds-ids"])
def test_lines_of_ids_are_exact_or_refused(
    form: str, shardctl: Shardctl, hostile: tuple[str, str]
) -> None:
    ran = shardctl("simulate", "all", *hostile, "-f", form)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: line '::error title=x::")
    assert "--output" in ran.stderr
    assert shardctl("simulate", "all", *hostile, "-f", form, "-o", "ids.txt").exit_code == 0
    assert Path("ids.txt").read_text().startswith("::error title=x::")
