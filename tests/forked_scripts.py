"""Scripts as processes that need not load TensorFlow and JAX, or the command line.

A process that has imported them, and started nothing of them, forks one for each script. What the
script sees is what `python script.py` gives it: its arguments, folder and environment, `__main__`,
the end of the interpreter with all that is registered for it. It does not see what Python itself
reads as it starts, such as PYTHONIOENCODING.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import functools
import gc
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TENSORFLOW = ("tensorflow", "tensorflow_datasets", "jax", "flax.nnx", "shardctl.tfds")
_CORE = ("base", "dataset", "spec", "settings", "stages", "iteration", "order", "loaders", "saved")
# What commands import as they need it; of a package with `.*`, all that is below.
_COMMAND_LINE = (
    *(
        f"shardctl.{room}.*"
        for room in (*_CORE, "files", "metadata", "verbs", "code", "draw", "cli")
    ),
    *("csv", "json", "numpy", "rich.console", "rich.markdown", "rich.progress", "rich.table"),
    *("typer.main", "yaml"),
)
# What libraries read as they are imported; each script has an environment of its own besides.
_ENVIRONMENT = {"JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1"}
_NUMBER = struct.Struct("!i")


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What became of a script: its exit code, -9 where it was cut off, and what it wrote."""

    code: int
    out: str
    errors: str


class ForkedScript:
    """A script that runs, with the methods of `subprocess.Popen` that its users need."""

    def __init__(self, answers: socket.socket) -> None:
        self._answers = answers
        self.returncode: int | None = None
        self.pid = _number(answers)

    def poll(self) -> int | None:
        """Return the exit code, negative after a signal, or None while it runs."""
        if self.returncode is None and select.select([self._answers], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code."""
        if self.returncode is None:
            if not select.select([self._answers], [], [], timeout)[0]:
                raise TimeoutError(f"process {self.pid} runs for more than {timeout} s")
            self.returncode = _number(self._answers)
            self._answers.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # its end is about to be told
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once, unless it has ended."""
        self.send_signal(signal.SIGKILL)


class ForkingPython:
    """The process that scripts are forked from; those that run end with it, and it with this one.

    loaded: the modules that it has imported.
    address: the socket at which it is asked.
    """

    def __init__(self, loaded: Sequence[str] = _TENSORFLOW) -> None:
        self._folder = tempfile.mkdtemp()
        self.address = os.path.join(self._folder, "asked")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.address)
        listener.listen()
        paths = os.pathsep.join(path for path in sys.path if path)
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(listener.fileno()), *loaded],
            stdin=subprocess.PIPE,  # never written to: its end is that of this process
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": paths} | _ENVIRONMENT,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
        listener.close()

    def start(
        self,
        command: Sequence[str | Path],
        *,
        stdout: int,
        stderr: int,
        stdin: int | None = None,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> ForkedScript:
        """Start a script, or `-m` and a module, or `-c` and a program, with its arguments.

        stdin, stdout and stderr are numbers of open files.
        """
        with open(os.devnull) as nothing:
            return asked(
                self.address,
                [str(part) for part in command],
                files=[nothing.fileno() if stdin is None else stdin, stdout, stderr],
                folder=str(folder or Path.cwd()),
                environment=dict(os.environ if environment is None else environment),
            )

    def run(
        self,
        commands: Sequence[Sequence[str | Path]],
        folder: Path,
        *,
        seconds: float = 300,
        stdin: int | None = None,
        environments: Sequence[Mapping[str, str]] = (),
        **environment: str,
    ) -> list[Ran]:
        """Run scripts side by side in a folder; those not done in time are killed.

        environments: what each has in its environment besides, in the order of the scripts.
        """
        places = [Path(tempfile.mkdtemp(dir=folder)) for _ in commands]
        running = []
        for index, (command, place) in enumerate(zip(commands, places, strict=True)):
            own = environments[index] if environments else {}
            with open(place / "out", "wb") as out, open(place / "err", "wb") as errors:
                script = self.start(
                    command,
                    stdout=out.fileno(),
                    stderr=errors.fileno(),
                    stdin=stdin,
                    folder=folder,
                    environment={**os.environ, **environment, **own},
                )
            running.append(script)
        limit = time.monotonic() + seconds
        for script in running:
            try:
                script.wait(max(0.0, limit - time.monotonic()))
            except TimeoutError:
                script.kill()
        return [
            Ran(
                code=script.wait(),
                out=(place / "out").read_text(),
                errors=(place / "err").read_text(),
            )
            for script, place in zip(running, places, strict=True)
        ]

    def close(self) -> None:
        """End it and every script that runs."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
        shutil.rmtree(self._folder)


@functools.cache
def forking_python() -> ForkingPython:
    """Return the one of this process, which is started when the first script is."""
    started = ForkingPython()
    atexit.register(started.close)
    return started


@functools.cache
def forking_commands() -> ForkingPython:
    """Return the one that has the command line loaded, and no TensorFlow."""
    started = ForkingPython(_COMMAND_LINE)
    atexit.register(started.close)
    return started


def asked(
    address: str,
    command: Sequence[str],
    *,
    files: Sequence[int],
    folder: str,
    environment: dict[str, str],
) -> ForkedScript:
    """Ask for a script: its stdin, stdout and stderr are the files."""
    job = {"command": list(command), "folder": folder, "environment": environment}
    data = repr(job).encode()
    asking = socket.socket(socket.AF_UNIX)
    asking.connect(address)
    socket.send_fds(asking, [_NUMBER.pack(len(data))], files)
    asking.sendall(data)
    return ForkedScript(asking)


def _number(answers: socket.socket) -> int:
    data = answers.recv(_NUMBER.size, socket.MSG_WAITALL)
    assert data, "the process that scripts are forked from has ended"
    number: int
    (number,) = _NUMBER.unpack(data)
    return number


def _serve(listener: socket.socket) -> list[str]:
    """Answer who asks; return the command of a script in its own process."""
    running: dict[int, socket.socket] = {}
    while True:
        ready = select.select([listener, sys.stdin], [], [], 0.02 if running else None)[0]
        if sys.stdin in ready:
            os.killpg(0, signal.SIGKILL)
        if listener in ready:
            asking, _ = listener.accept()
            length, files, _, _ = socket.recv_fds(asking, _NUMBER.size, 3)
            job = ast.literal_eval(
                asking.recv(_NUMBER.unpack(length)[0], socket.MSG_WAITALL).decode()
            )
            process = os.fork()
            if not process:
                for one in (listener, asking, *running.values()):
                    one.close()
                _become(job, files)
                return list(job["command"])
            for file in files:
                os.close(file)
            running[process] = asking
            _say(asking, process)
        while running:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                break
            asking = running.pop(process)
            _say(asking, os.waitstatus_to_exitcode(status))
            asking.close()


def _say(asking: socket.socket, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody waits for it
        asking.sendall(_NUMBER.pack(number))


def _become(job: Any, files: Sequence[int]) -> None:
    """Take over the files, the folder and the environment of a script."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(job["folder"])
    os.environ.clear()
    os.environ.update(job["environment"])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    streams: list[Any] = [sys.stdout, sys.stderr]
    for stream in streams:
        stream.reconfigure(line_buffering=stream.isatty() or stream is sys.stderr)
    sys.modules["numpy"].random.seed()  # each script draws numbers of its own
    if "JAX_LOG_COMPILES" in os.environ:  # which JAX reads as it is imported
        sys.modules["jax"].config.update("jax_log_compiles", True)


def load(names: Sequence[str] = _COMMAND_LINE) -> None:
    """Import modules, and with `.*` all below a package."""
    import importlib
    import pkgutil

    for name in names:
        try:
            package = importlib.import_module(name.removesuffix(".*"))
        except ImportError:
            continue  # a script that needs it says so
        if name.endswith(".*"):
            for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
                importlib.import_module(module.name)
    gc.freeze()  # else the first collection of each script copies all that is loaded


if __name__ == "__main__":
    import importlib
    import runpy

    sys.path.pop(0)  # whose folders have names of libraries
    load(sys.argv[2:])
    wanted = _serve(socket.socket(fileno=int(sys.argv[1])))
    importlib.invalidate_caches()
    if wanted[0] in ("-c", "-m"):
        sys.path.insert(0, os.getcwd())
        try:
            if wanted[0] == "-c":
                sys.argv[:] = ["-c", *wanted[2:]]
                exec(wanted[1], {"__name__": "__main__"})
            else:
                sys.argv[:] = wanted[1:]
                runpy.run_module(wanted[1], run_name="__main__", alter_sys=True)
            raise SystemExit(0)
        except SystemExit as ended:
            if "tensorflow" in sys.modules or not isinstance(ended.code, int):
                raise
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # as Python itself does where it ends
            atexit._run_exitfuncs()
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(ended.code)  # not to take apart what is loaded saves half of the time
    else:
        sys.argv[:] = wanted
        sys.path.insert(0, os.path.dirname(os.path.abspath(wanted[0])))
        runpy.run_path(wanted[0], run_name="__main__")
