"""Scripts of guides, as processes that need not load TensorFlow and JAX, which takes seconds.

A process that has imported them, and started nothing of them, forks one for each script. What the
script sees is what `python script.py` gives it: its arguments, its environment, `__main__`, the end
of the interpreter with all that is registered for it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

_LOADED = ("tensorflow", "tensorflow_datasets", "jax", "flax.nnx", "shardctl.tfds")


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What became of a script: its exit code, -9 where it was cut off, and what it wrote."""

    code: int
    out: str
    errors: str


class ForkedScripts:
    """Runs scripts in a folder; the context ends the process that they are forked from.

    What libraries read of the environment as they are imported is given here, else with the run.
    """

    def __init__(self, folder: Path, **environment: str) -> None:
        self._folder = folder
        paths = os.pathsep.join(path for path in sys.path if path)
        self._server = subprocess.Popen(
            [sys.executable, __file__, *_LOADED],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"PYTHONPATH": paths} | environment,
            start_new_session=True,  # so that the scripts end with it
        )

    def run(
        self,
        commands: Sequence[Sequence[str | Path]],
        *,
        seconds: float = 300,
        **environment: str,
    ) -> list[Ran]:
        """Run scripts with their arguments side by side; those not done in time are killed."""
        files = [tempfile.mkdtemp(dir=self._folder) for _ in commands]
        job = {
            "commands": [[str(part) for part in command] for command in commands],
            "files": files,
            "folder": str(self._folder),
            "seconds": seconds,
            "environment": environment,
        }
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(job) + "\n")
        self._server.stdin.flush()
        codes = json.loads(self._server.stdout.readline())
        return [
            Ran(code=code, out=Path(file, "out").read_text(), errors=Path(file, "err").read_text())
            for code, file in zip(codes, files, strict=True)
        ]

    def __enter__(self) -> ForkedScripts:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.killpg(self._server.pid, signal.SIGKILL)
        self._server.communicate()


def _serve() -> list[str] | None:
    """Answer jobs until there are no more; return the command of a script in its own process."""
    for line in sys.stdin:
        job = json.loads(line)
        running: dict[int, int] = {}
        for index, (command, folder) in enumerate(zip(job["commands"], job["files"], strict=True)):
            process = os.fork()
            if not process:
                os.environ.update(job["environment"])
                os.chdir(job["folder"])
                _redirect(0, os.devnull, os.O_RDONLY)
                _redirect(1, os.path.join(folder, "out"), os.O_WRONLY | os.O_CREAT)
                _redirect(2, os.path.join(folder, "err"), os.O_WRONLY | os.O_CREAT)
                return list(command)
            running[process] = index
        print(json.dumps(_codes(running, time.monotonic() + job["seconds"])), flush=True)
    return None


def _redirect(number: int, path: str, flags: int) -> None:
    os.dup2(os.open(path, flags, 0o600), number)


def _codes(running: dict[int, int], limit: float) -> list[int]:
    """Return how the processes end, by their indices; those that run at the limit are killed."""
    codes = [0] * len(running)
    while running:
        process, status = os.waitpid(-1, os.WNOHANG)
        if process:
            codes[running.pop(process)] = os.waitstatus_to_exitcode(status)
            continue
        if time.monotonic() > limit:
            for process in running:
                os.kill(process, signal.SIGKILL)
        time.sleep(0.02)
    return codes


if __name__ == "__main__":
    import importlib
    import runpy

    for name in sys.argv[1:]:
        importlib.import_module(name)
    asked = _serve()
    if asked is not None:
        sys.argv[:] = asked
        sys.path[0] = os.path.dirname(asked[0])
        runpy.run_path(asked[0], run_name="__main__")
