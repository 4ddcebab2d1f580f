"""Training scripts of guides in processes that are killed, beside a run that nobody kills.

A script is called as `python script.py ARGUMENTS.. RUN`: it logs a line `STEP NAME NAME ..` to a
file in the folder RUN as soon as it has trained on the batch of those examples, keeps its
checkpoints in RUN, and continues from the newest when it is started again. One that runs as N
processes of JAX is called with `host:port I N` too, and has a log of each process, `trained-I.log`.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from tests.cases import add_cases, seed_of_test
from tests.forked_scripts import ForkedScript, forking_python
from tests.tfds_datasets import build_dataset

Process: TypeAlias = "subprocess.Popen[bytes] | ForkedScript | Group"

_REPOSITORY = Path(__file__).parents[1]
_GUIDES = _REPOSITORY / "shardctl" / "guide"
_MOST_SECONDS = 240.0  # of a process
_MOST_KILLS_OF_A_RUN = 5
# Sums in one order, so that weights are equal bit for bit; and nothing said that nobody reads.
_ENVIRONMENT = {
    "PYTHONPATH": str(_REPOSITORY),
    "CUDA_VISIBLE_DEVICES": "-1",
    "JAX_PLATFORMS": "cpu",
    "OMP_NUM_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}


def guide_text(guide: str) -> str:
    """Return a guide as it is written."""
    return (_GUIDES / f"{guide}.md").read_text("utf-8")


def image_of(i: int) -> dict[str, Any]:
    """Return an example like those of MNIST."""
    image = np.random.default_rng(i).integers(0, 256, (28, 28, 1), np.uint8)
    return {"image": image, "label": i % 10}


def build_images(root: Path, **splits: Sequence[int]) -> Path:
    """Write a dataset like MNIST with shards of these lengths, and return its folder."""
    import tensorflow_datasets as tfds

    image = tfds.features.Image(shape=(28, 28, 1))
    label = tfds.features.ClassLabel(num_classes=10)
    features = tfds.features.FeaturesDict({"image": image, "label": label})
    return build_dataset(root, "mnist", splits, features=features, example=image_of)


def script_of_guide(guide: str, name: str) -> str:
    """Return a script as it is in a guide: the Python that begins with a comment of its name."""
    pattern = rf"^```python\n(# {re.escape(name)}\b.*?)^```$"
    found = re.findall(pattern, guide_text(guide), re.M | re.S)
    assert len(found) == 1, f"{len(found)} scripts {name} in {guide}.md"
    return str(found[0])


@dataclass(frozen=True, kw_only=True)
class Script:
    """A training script, and what it leaves behind.

    arguments: what stands before the folder of the run.
    outcome: what a run that has ended holds in its folder, its weights at least, by name.
    loaded: whether it uses libraries that a process has loaded from which it is forked.
    processes: as how many processes of JAX it runs; 0 is as one that JAX knows nothing of.
    """

    path: Path
    arguments: tuple[str | Path, ...]
    outcome: Callable[[Path], Mapping[str, Any]]
    log: str = "trained.log"
    environment: Mapping[str, str] = field(default_factory=dict)
    loaded: bool = True
    processes: int = 0

    def start(self, run: Path) -> Process:
        """Start the script; what it says is beside the folder of the run."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        of_each = [[address, str(i), str(self.processes)] for i in range(self.processes)]
        Path(f"{run}.said").unlink(missing_ok=True)
        started = [self._start([self.path, *self.arguments, run, *own], run) for own in of_each]
        return Group(started) if started else self._start([self.path, *self.arguments, run], run)

    def _start(
        self, command: Sequence[str | Path], run: Path
    ) -> subprocess.Popen[bytes] | ForkedScript:
        environment = {**os.environ, **_ENVIRONMENT, **self.environment}
        with open(f"{run}.said", "ab") as said:
            if not self.loaded:
                every = [sys.executable, *command]
                return subprocess.Popen(every, stdout=said, stderr=said, env=environment)
            file = said.fileno()
            return forking_python().start(
                command, stdout=file, stderr=file, environment=environment
            )

    def log_of(self, run: Path) -> bytes:
        """Return what a run has logged so far, a line for each step that all processes logged."""
        texts = [log.read_bytes() if log.exists() else b"" for log in self._logs(run)]
        if not self.processes:
            return texts[0]
        # The names of each process lie between commas.
        lines = [text[: text.rfind(b"\n") + 1].splitlines() for text in texts]
        return b"".join(_together(every) for every in zip(*lines, strict=False))

    def cut_log(self, run: Path) -> bytes:
        """Take away what one process alone had logged, or had begun to write of a line."""
        whole = self.log_of(run)
        num_lines = whole.count(b"\n")
        for log in self._logs(run):
            if log.exists():
                log.write_bytes(b"".join(log.read_bytes().splitlines(True)[:num_lines]))
        return self.log_of(run)

    def _logs(self, run: Path) -> list[Path]:
        name = Path(self.log)
        return [run / f"{name.stem}-{i}{name.suffix}" for i in range(self.processes)] or [
            run / name
        ]


def _together(lines: Sequence[bytes]) -> bytes:
    steps = {line.split(b" ", 1)[0] for line in lines}
    assert len(steps) == 1, f"processes are in steps {steps}"
    return steps.pop() + b" " + b", ".join(line.partition(b" ")[2] for line in lines) + b"\n"


class Group:
    """Processes that run side by side, with the methods of one; where one fails, all are ended."""

    def __init__(self, processes: Sequence[subprocess.Popen[bytes] | ForkedScript]) -> None:
        self._processes = processes
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code of the first that failed, 0 where all have ended, else None."""
        codes = [process.poll() for process in self._processes]
        if self.returncode is None and (any(codes) or None not in codes):
            self.returncode = next((code for code in codes if code), 0)
            self._end()
        return self.returncode

    def kill(self) -> None:
        """End all at once, unless all have ended."""
        if self.poll() is None:
            self._end()
            self.returncode = -signal.SIGKILL

    def wait(self) -> None:
        """Wait for the end of all."""
        for process in self._processes:
            process.wait()

    def _end(self) -> None:
        for process in reversed(self._processes):  # the one that the others ask comes last
            process.kill()


@dataclass(frozen=True, kw_only=True)
class Moment:
    """When a process is killed, counted from its start.

    seconds: after so many seconds.
    steps: `delay` seconds after it has logged so many steps.
    files: as soon as the files in its folder have changed so many times, so while it saves.
    """

    by: Literal["seconds", "steps", "files"]
    at: float
    delay: float = 0.0


@dataclass(frozen=True, kw_only=True)
class WholeRun:
    """The run that nobody killed."""

    steps: Mapping[int, str]
    outcome: Mapping[str, Any]
    seconds_to_load: float
    seconds_of_a_step: float

    def any_moment(self, numbers: random.Random, num_done: int) -> Moment:
        """Return a random moment of a process that begins after so many steps."""
        by = numbers.choice(("seconds", "steps", "steps", "files"))
        if by == "seconds":
            return Moment(by="seconds", at=numbers.uniform(0, 1.1 * self.seconds_to_load))
        if by == "files":
            return Moment(by="files", at=numbers.randint(1, 12), delay=numbers.choice((0.0, 0.001)))
        delay = numbers.uniform(0, 3 * self.seconds_of_a_step)
        most = max(1, (len(self.steps) - num_done) * 2 // 3)
        return Moment(by="steps", at=numbers.randint(0, most), delay=delay)


@dataclass(kw_only=True)
class Report:
    """What was killed: each moment, and the step at which the process after it began."""

    seed: int
    kills: list[tuple[Moment, int]] = field(default_factory=list)
    num_runs: int = 0

    @property
    def num_resumed(self) -> int:
        """How many processes continued from a checkpoint."""
        return sum(step > 1 for _, step in self.kills)


def whole_run(script: Script, run: Path) -> WholeRun:
    """Run a script from its beginning to its end."""
    begin = time.monotonic()
    process = script.start(run)
    _follow(process, run, lambda: bool(script.log_of(run)))
    loaded = time.monotonic()
    _end(process, run)
    steps = dict(_steps(script.log_of(run)))
    assert list(steps) == list(range(1, len(steps) + 1)), "a whole run logs each step once"
    return WholeRun(
        steps=steps,
        outcome=script.outcome(run),
        seconds_to_load=loaded - begin,
        seconds_of_a_step=(time.monotonic() - loaded) / len(steps),
    )


def check_killed_runs(
    script: Script,
    whole: WholeRun,
    folder: Path,
    *,
    kills: int | Sequence[Moment],
    seed: int | None = None,
) -> Report:
    """Kill processes of a script, start it again until it ends, and compare with the whole run.

    Each step that any process logged is the batch of that step in the whole run, none is left
    out, and the outcome is the same to the last bit. `kills` are the moments of one run, or how
    many random ones there are, over several runs; `seed` is theirs.
    """
    seed = seed_of_test() if seed is None else seed
    numbers, report = random.Random(seed), Report(seed=seed)
    num_kills = kills if isinstance(kills, int) else len(kills)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        while (num_left := num_kills - len(report.kills)) > 0:
            run = folder / f"run{report.num_runs}"
            report.num_runs += 1
            moments: list[Callable[[int], Moment]]
            if isinstance(kills, int):
                most = numbers.randint(1, min(num_left, _MOST_KILLS_OF_A_RUN))
                moments = [partial(whole.any_moment, numbers)] * most
            else:
                moments = [partial(_at, moment) for moment in kills]
            _killed_run(script, whole, run, moments, report)
            assert isinstance(kills, int) or len(report.kills) == num_kills, "it ended before"
    except BaseException:
        print(report)  # what failed can be run again
        raise
    add_cases(num_kills)
    return report


def check_other_processes(
    scripts: Mapping[int, Script],
    whole: WholeRun,
    run: Path,
    counts: Sequence[int],
    numbers: random.Random,
) -> Mapping[int, str]:
    """Kill a run that is started as each number of processes, but for the last, which ends.

    Return what each step has trained on that a checkpoint kept, or that was last.
    """
    trained: dict[int, str] = {}
    for index, count in enumerate(counts):
        script, is_last = scripts[count], index == len(counts) - 1
        moment = whole.any_moment(numbers, min(len(trained), len(whole.steps) - 3))
        if is_last:
            run_to_end(script, run)
        has_ended = is_last or not kill_at(script, run, moment)
        read = dict(_steps(script.cut_log(run)))
        for log in run.glob("*.log"):
            log.unlink()
        if read:
            # What is behind the checkpoint from which these continued was not kept.
            trained = {step: names for step, names in trained.items() if step < min(read)} | read
            assert list(trained) == list(range(1, len(trained) + 1)), "a step is left out"
        if has_ended:
            break
        add_cases()
        print(f"killed {count} processes: {moment}")
    return trained


def _at(moment: Moment, _: int) -> Moment:
    return moment


def _killed_run(
    script: Script,
    whole: WholeRun,
    run: Path,
    moments: Iterable[Callable[[int], Moment]],
    report: Report,
) -> None:
    """Run a script to its end, killed at each moment that it lives to see."""
    met: list[tuple[Moment, int]] = []  # and where in the log the process after it begins
    for moment_of in moments:
        moment = moment_of(max(dict(_steps(script.log_of(run))), default=0))
        if not kill_at(script, run, moment):
            break
        met.append((moment, len(script.cut_log(run))))
    else:
        run_to_end(script, run)
    log, last = script.log_of(run), 0
    for moment, begin in met:
        report.kills.append((moment, next((step for step, _ in _steps(log[begin:])), 0)))
    for step, names in _steps(log):
        assert names == whole.steps.get(step), f"another batch in step {step}"
        assert 1 <= step <= last + 1, f"step {step} after step {last}"
        last = step
    assert last == len(whole.steps)
    outcome = script.outcome(run)
    assert outcome.keys() == whole.outcome.keys()
    for name, expected in whole.outcome.items():
        found = np.asarray(outcome[name])
        np.testing.assert_array_equal(found, expected, err_msg=name, strict=True)
        assert found.tobytes() == np.asarray(expected).tobytes(), name  # 0 and -0 are two


def run_to_end(script: Script, run: Path) -> None:
    """Start a script, and check that it ends well."""
    _end(script.start(run), run)


def kill_at(script: Script, run: Path, moment: Moment) -> bool:
    """Start the script and kill it; return False if it ends before."""
    before, files, begin = script.log_of(run).count(b"\n"), _files(script, run), time.monotonic()
    num_changes = 0

    def met() -> bool:
        nonlocal files, num_changes
        if moment.by == "seconds":
            return time.monotonic() - begin >= moment.at
        if moment.by == "steps":
            return script.log_of(run).count(b"\n") - before >= moment.at
        now = _files(script, run)
        num_changes, files = num_changes + (now != files), now
        return num_changes >= moment.at

    process = script.start(run)
    try:
        if _follow(process, run, met):
            time.sleep(moment.delay)
    finally:
        process.kill()
        process.wait()
    assert process.returncode in (0, -signal.SIGKILL), _said(run)
    return process.returncode != 0


def _files(script: Script, run: Path) -> set[tuple[str, int, int]]:
    """Return what files a run has beside its log, and which versions of them."""
    found = set()
    for folder, _, names in os.walk(run):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # renamed meanwhile
                status = os.stat(os.path.join(folder, name))
                found.add((name, status.st_mtime_ns, status.st_size))
    return {one for one in found if not one[0].startswith(Path(script.log).stem)}


def _follow(process: Process, run: Path, met: Callable[[], bool]) -> bool:
    """Wait until something is met; return False where the process ends before."""
    limit = time.monotonic() + _MOST_SECONDS
    while process.poll() is None:
        if met():
            return True
        if time.monotonic() > limit:
            process.kill()
            process.wait()
            raise AssertionError(f"more than {_MOST_SECONDS} s: {_said(run)}")
        time.sleep(0.001)
    return False


def _end(process: Process, run: Path) -> None:
    _follow(process, run, lambda: False)
    assert process.returncode == 0, _said(run)


def _said(run: Path) -> str:
    return Path(f"{run}.said").read_text(errors="replace")[-3000:]


def _steps(log: bytes) -> Iterator[tuple[int, str]]:
    for line in log.decode().splitlines():
        step, _, names = line.partition(" ")
        yield int(step), names
