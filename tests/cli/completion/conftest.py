"""What a shell gets at the end of a line, and a data dir to complete names from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Shardctl

Offered = Callable[[str], list[str]]


@pytest.fixture
def offered(shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch) -> Offered:
    """A function that returns what is offered at the end of a line, words alone."""

    def ask(line: str) -> list[str]:
        monkeypatch.setenv("_SHARDCTL_COMPLETE", "complete_bash")
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
        ran = shardctl()
        assert (ran.exit_code, ran.stderr) == (0, "")
        return ran.stdout.splitlines()

    return ask


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    for version in ("birds/red/1.0.0", "birds/blue/1.0.0", "bits/2.0.0", "bits/2.1.0"):
        folder = root / version
        folder.mkdir(parents=True)
        (folder / "dataset_info.json").write_text(
            '{"name": "bits", "version": "1.0.0", "splits": ['
            '{"name": "left", "shardLengths": ["3"]}, {"name": "right", "shardLengths": ["4"]}]}'
        )
    return root
