"""Running the command line in this process, in an empty folder and home, without settings."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from shardctl.cli.main import main


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a command left behind."""

    stdout: str
    stderr: str
    exit_code: int


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


Shardctl = Callable[..., Outcome]


@pytest.fixture
def shardctl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Shardctl:
    """A function that runs `shardctl` with arguments."""
    home = tmp_path / "home"
    home.mkdir()
    folder = tmp_path / "cwd"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("os.fsync", lambda file: None)  # nobody pulls a plug; it is waited for
    for name in ("SHARDCTL_DATASET", "TFDS_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: object) -> Outcome:
        with pytest.raises(SystemExit) as exit_info:
            main([str(argument) for argument in arguments])
        captured = capsysbinary.readouterr()
        code = exit_info.value.code
        assert isinstance(code, int)
        return Outcome(stdout=captured.out.decode(), stderr=captured.err.decode(), exit_code=code)

    return run
