"""Importing shardctl.grain imports nobody; what is missing is said with how to install it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shardctl.errors import MissingDependencyError
from shardctl.grain import Sampler, data_loader, fit_epochs, map_dataset
from shardctl.grain.loader import grain, keras
from tests.grain.toys import needs_grain, toy

_LIBRARIES = ("grain", "jax", "keras", "tensorflow", "tensorflow_datasets", "torch")


@pytest.mark.long
def test_importing_it_and_making_a_sampler_imports_no_library() -> None:
    code = (
        "import sys, shardctl.grain\n"
        "s = shardctl.grain.Sampler('mnist', 'train', {'shuffle_seed': 1})\n"
        f"print([m for m in {_LIBRARIES} if m in sys.modules], len(s), s.order.key(0))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    assert said.startswith("[] 60000 ")


def test_without_grain_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grain", None)
    monkeypatch.setitem(sys.modules, "grain.python", None)
    data, source = toy(4, 5), list(range(9))
    calls: list[Callable[[], Any]] = [
        grain,
        lambda: data_loader(source, data),
        lambda: map_dataset(source, data),
    ]
    for call in calls:
        with pytest.raises(MissingDependencyError, match=r"pip install 'shardctl\[grain\]'"):
            call()


KILLED = """\
import os, signal, sys, time
from absl import flags
from shardctl import Dataset, Split
from shardctl.grain import data_loader

if __name__ == "__main__":
    flags.FLAGS.mark_as_parsed()
    data = Dataset(name="d", splits=(Split(name="train", shard_lengths=(500, 500)),))
    batches = iter(data_loader(list(range(1000)), data, settings={"batch": 4}, workers=2))
    for _ in range(4):
        next(batches)
    import multiprocessing
    print(*[child.pid for child in multiprocessing.active_children()], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.fuzz
def test_workers_end_with_a_process_that_is_killed(tmp_path: Path) -> None:
    needs_grain()
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with open(tmp_path / "said", "wb") as said:
        done = subprocess.run([sys.executable, script], env=environment, stdout=said, check=False)
    assert done.returncode == -signal.SIGKILL
    workers = [int(pid) for pid in (tmp_path / "said").read_text().split()]
    assert len(workers) == 2
    until = time.monotonic() + 20
    while alive := [pid for pid in workers if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < until, alive
        time.sleep(0.1)


def test_without_keras_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keras", None)
    with pytest.raises(MissingDependencyError, match="pip install keras"):
        keras()
    with pytest.raises(MissingDependencyError, match="pip install keras"):
        fit_epochs(Sampler(toy(4, 5)))
