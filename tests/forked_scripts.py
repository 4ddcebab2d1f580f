"""Scripts of guides as processes that need not load TensorFlow and JAX, of which each takes seconds.

A process that has imported them, and started nothing of them, forks one for each script. What the
script sees is what `python script.py` gives it: its arguments, its environment, `__main__`, the end
of the interpreter with all that is registered for it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
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
        self._server.kill()
        self._server.communicate()


def _serve() -> list[str] | None:
    """Answer jobs until there are no more; return the command of a script in its own process."""
    import time

    for line in sys.stdin:
        job = json.loads(line)
        running: dict[int, int] = {}
        for index, command in enumerate(job["commands"]):
            pid = os.fork()
            if not pid:
                os.environ.update(job["environment"])
                os.chdir(job["folder"])
                for number, name in ((0, os.devnull), (1, "out"), (2, "err")):
                    path = name if number == 0 else os.path.join(job["files"][index], name)
                    flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT
                    os.dup2(os.open(path, flags, 0o600), number)
                return command
            running[pid] = index
        codes = [0] * len(running)
        limit = time.monotonic() + job["seconds"]
        while running:
            if time.monotonic() > limit:
                for pid in running:
                    os.kill(pid, 9)
            pid, status = os.waitpid(-1, 0 if time.monotonic() > limit else os.WNOHANG)
            if pid:
                codes[running.pop(pid)] = os.waitstatus_to_exitcode(status)
            else:
                time.sleep(0.02)
        print(json.dumps(codes), flush=True)
    return None


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
