"""Names that would be commands to a runner of CI, formulas or options do nothing anywhere."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    "line",
    [
        *("layout", "layout '::error title=x::'", "plan all", "plan ::error::", "simulate all"),
        *("locate all --position 0", "resume all --consumed 0", "hosts all --hosts 2"),
        *("resume all --consumed 3 --new-hosts 2", "eval all --batch 4", "quality all", "lint all"),
        *("snapshot all", "config", "list --data-dir ::error::", "::error::"),
        "plan ::a '##[error]x' -f '##vso[x]'",
    ],
)
def test_no_line_is_a_command(line: str, shardctl: Shardctl, hostile: tuple[str, str]) -> None:
    words = shlex.split(line)
    chosen = hostile if words[0] not in ("list", "::error::") else ()
    for form in ("table", "json", "yaml", "csv", "jsonl", "ids", "tfds-ids"):
        ran = shardctl(*words, *chosen, *([] if "-f" in words else ["-f", form]))
        assert ran.exit_code in (0, 1, 2)
        assert not COMMAND.search(ran.stderr)
        assert not COMMAND.search(ran.stdout), form
