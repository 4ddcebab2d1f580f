"""Training scripts of guides in processes that are killed, beside a run that nobody kills.

A script is called as `python script.py ARGUMENTS.. RUN`: it logs a line `STEP NAME NAME ..` to a
file in the folder RUN as soon as it has trained on the batch of those examples, keeps its
checkpoints in RUN, and continues from the newest when it is started again.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tests.cases import add_cases, seed_of_test
from tests.forked_scripts import ForkedScript, forking_python
from tests.tfds_datasets import build_dataset

Process = subprocess.Popen[bytes] | ForkedScript

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
    """

    path: Path
    arguments: tuple[str | Path, ...]
    outcome: Callable[[Path], Mapping[str, Any]]
    log: str = "trained.log"
    environment: Mapping[str, str] = field(default_factory=dict)
    loaded: bool = True

    def start(self, run: Path) -> Process:
        """Start the script; what it says is beside the folder of the run."""
        command = [self.path, *self.arguments, run]
        environment = {**os.environ, **_ENVIRONMENT, **self.environment}
        with open(f"{run}.said", "wb") as said:
            if not self.loaded:
                every = [sys.executable, *command]
                return subprocess.Popen(every, stdout=said, stderr=said, env=environment)
            file = said.fileno()
            return forking_python().start(
                command, stdout=file, stderr=file, environment=environment
            )

    def log_of(self, run: Path) -> bytes:
        """Return what a run has logged so far."""
        try:
            return (run / self.log).read_bytes()
        except FileNotFoundError:
            return b""


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

    def __str__(self) -> str:
        later = f" + {1000 * self.delay:.1f} ms" if self.delay else ""
        return f"{self.at:.4g} {self.by}{later}"


@dataclass(frozen=True, kw_only=True)
class WholeRun:
    """The run that nobody killed."""

    steps: Mapping[int, str]
    outcome: Mapping[str, Any]
    seconds_to_load: float
    seconds_of_a_step: float


@dataclass(kw_only=True)
class Report:
    """What was killed: each moment, and the step at which the process after it began."""

    seed: int
    kills: list[tuple[Moment, int]] = field(default_factory=list)
    num_runs: int = 0
    num_steps: int = 0

    @property
    def num_resumed(self) -> int:
        """How many processes continued from a checkpoint."""
        return sum(step > 1 for _, step in self.kills)

    def __str__(self) -> str:
        moments = ", ".join(f"{moment} -> step {step}" for moment, step in self.kills)
        return (
            f"seed {self.seed}: {len(self.kills)} kills in {self.num_runs} runs, "
            f"{self.num_resumed} resumed from a checkpoint, {self.num_steps} steps: {moments}"
        )


def whole_run(script: Script, run: Path) -> WholeRun:
    """Run a script from its beginning to its end."""
    begin = time.monotonic()
    process = script.start(run)
    while process.poll() is None and not script.log_of(run):
        _check_time(process, begin, run)
    loaded = time.monotonic()
    _end(process, begin, run)
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
    moments = None if isinstance(kills, int) else list(kills)
    num_kills = kills if isinstance(kills, int) else len(kills)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        while len(report.kills) < num_kills:
            most = numbers.randint(1, min(num_kills - len(report.kills), _MOST_KILLS_OF_A_RUN))
            run = folder / f"run{report.num_runs}"
            report.num_runs += 1
            _killed_run(script, whole, run, _moments(moments, most, whole, numbers), report)
            assert moments is None or len(report.kills) == num_kills, "it ended before"
    except BaseException:
        print(report)  # what failed can be run again
        raise
    add_cases(num_kills)
    return report


def _killed_run(
    script: Script,
    whole: WholeRun,
    run: Path,
    moments: Iterable[Callable[[int], Moment]],
    report: Report,
) -> None:
    """Run a script to its end, killed at each moment that it lives to see."""
    met: list[Moment] = []
    begins: list[int] = []  # in the log, of each process after the first
    for moment_of in moments:
        done = max(dict(_steps(script.log_of(run))), default=0)
        moment = moment_of(len(whole.steps) - done)
        if not _kill(script, run, moment):
            break
        met.append(moment)
        _drop_a_torn_line(run / script.log)
        begins.append(len(script.log_of(run)))
    else:
        _end(script.start(run), time.monotonic(), run)
    log, last = script.log_of(run), 0
    firsts = [next((step for step, _ in _steps(log[begin:])), 0) for begin in begins]
    report.kills += zip(met, firsts, strict=True)
    for step, names in _steps(log):
        assert names == whole.steps.get(step), f"another batch in step {step}"
        assert 1 <= step <= last + 1, f"step {step} after step {last}"
        last = step
        report.num_steps += 1
    assert last == len(whole.steps)
    outcome = script.outcome(run)
    assert outcome.keys() == whole.outcome.keys()
    for name, expected in whole.outcome.items():
        found = np.asarray(outcome[name])
        np.testing.assert_array_equal(found, expected, err_msg=name, strict=True)
        assert found.tobytes() == np.asarray(expected).tobytes(), name  # 0 and -0 are two


def _moments(
    given: Sequence[Moment] | None, most: int, whole: WholeRun, numbers: random.Random
) -> Iterator[Callable[[int], Moment]]:
    """Yield functions that say when a process is killed, by the number of steps that are left."""

    def any_moment(num_left: int) -> Moment:
        by = numbers.choice(("seconds", "steps", "steps", "files"))
        if by == "seconds":
            return Moment(by="seconds", at=numbers.uniform(0, 1.1 * whole.seconds_to_load))
        if by == "files":
            return Moment(by="files", at=numbers.randint(1, 12), delay=numbers.choice((0.0, 0.001)))
        delay = numbers.uniform(0, 3 * whole.seconds_of_a_step)
        return Moment(by="steps", at=numbers.randint(0, max(1, num_left * 2 // 3)), delay=delay)

    if given is None:
        yield from (any_moment for _ in range(most))
    else:
        yield from ((lambda _, moment=moment: moment) for moment in given)


def _kill(script: Script, run: Path, moment: Moment) -> bool:
    """Start the script and kill it; return False if it ends before."""
    before, seen, num_changes = script.log_of(run).count(b"\n"), _files(script, run), 0
    begin = time.monotonic()
    process = script.start(run)
    try:
        while process.poll() is None:
            if moment.by == "seconds":
                met = time.monotonic() - begin >= moment.at
            elif moment.by == "steps":
                met = script.log_of(run).count(b"\n") - before >= moment.at
            else:
                now = _files(script, run)
                num_changes, seen = num_changes + (now != seen), now
                met = num_changes >= moment.at
            if met:
                time.sleep(moment.delay)
                break
            _check_time(process, begin, run)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    if process.returncode == -signal.SIGKILL:
        return True
    assert process.returncode == 0, _said(run)
    return False


def _files(script: Script, run: Path) -> set[tuple[str, int, int]]:
    """Return what files a run has beside its log, and which versions of them."""
    found = set()
    for folder, _, names in os.walk(run):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # renamed meanwhile
                status = os.stat(os.path.join(folder, name))
                found.add((name, status.st_mtime_ns, status.st_size))
    return {version for version in found if version[0] != script.log}


def _end(process: Process, begin: float, run: Path) -> None:
    while process.poll() is None:
        _check_time(process, begin, run)
    assert process.returncode == 0, _said(run)


def _check_time(process: Process, begin: float, run: Path) -> None:
    if time.monotonic() - begin > _MOST_SECONDS:
        process.kill()
        process.wait()
        raise AssertionError(f"more than {_MOST_SECONDS} s: {_said(run)}")
    time.sleep(0.001)


def _said(run: Path) -> str:
    return Path(f"{run}.said").read_text(errors="replace")[-3000:]


def _steps(log: bytes) -> Iterator[tuple[int, str]]:
    for line in log.decode().splitlines():
        step, _, names = line.partition(" ")
        yield int(step), names


def _drop_a_torn_line(log: Path) -> None:
    """Cut off what a killed process had begun to write of a line."""
    if log.exists() and not (data := log.read_bytes()).endswith(b"\n"):
        log.write_bytes(data[: data.rfind(b"\n") + 1])
