"""A shell in a terminal, into which lines and keys are typed."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

# What each shell is told first: to keep quiet, and to write its line at Control-T. The marks are
# written in pieces, as the terminal shows these commands too.
_SETUP = {
    "bash": (
        "bind 'set bell-style none'; bind 'set enable-bracketed-paste off'; stty cols 500; "
        """bind -x '"\\C-t": printf "<<%s%s>>>" "<" "$READLINE_LINE"'; """
    ),
    "zsh": (
        "PS1=; unset zle_bracketed_paste; bindkey -e; unsetopt beep; stty cols 500; "
        "show() { print -rn -- '<''<<'$BUFFER'>''>>' }; zle -N show; bindkey '^T' show; "
    ),
}
_QUIET = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"]}


class Terminal:
    """A shell that waits for a line."""

    def __init__(self, number: int) -> None:
        self._number = number

    def after_tab(self, line: str) -> str:
        """Return what a line is after a TAB at its end; it is not run."""
        os.write(self._number, line.encode() + b"\t\x14")
        shown = self._read_until(b">>>").rpartition(b"<<<")[2].partition(b">>>")[0]
        os.write(self._number, b"\x15")  # empties the line
        return shown.decode()

    def run(self, commands: str) -> None:
        """Run commands and wait for their end."""
        os.write(self._number, f"""{commands}\necho "rea""dy"\n""".encode())
        self._read_until(b"ready")

    def _read_until(self, mark: bytes) -> bytes:
        seen, end = b"", time.monotonic() + 60
        while mark not in seen:
            waits = select.select([self._number], [], [], max(end - time.monotonic(), 0))
            assert waits[0], seen
            seen += os.read(self._number, 1 << 16)
        return seen


@contextmanager
def terminal(
    shell: str, *, folder: Path, environment: Mapping[str, str], setup: str = ""
) -> Iterator[Terminal]:
    """Start bash or zsh without anybody's settings; `setup` is what its rc file would hold."""
    import pty

    ours, its = pty.openpty()
    process = subprocess.Popen(
        [shell, *_QUIET[shell], "-i"],
        stdin=its,
        stdout=its,
        stderr=its,
        cwd=folder,
        env={**environment, "HOME": str(folder), "INPUTRC": "/dev/null", "TERM": "dumb"},
        start_new_session=True,
    )
    os.close(its)
    try:
        started = Terminal(ours)
        started.run(_SETUP[shell] + setup)
        yield started
    finally:
        process.kill()
        process.wait()
        os.close(ours)
