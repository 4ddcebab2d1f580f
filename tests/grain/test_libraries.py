"""Importing shardctl.grain or .torch imports nobody; what is missing is said."""

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

import shardctl.torch
from shardctl.errors import MissingDependencyError
from shardctl.grain import Sampler, data_loader, fit_epochs, map_dataset
from tests.grain.toys import needs_grain, toy

_LIBRARIES = ("grain", "jax", "keras", "tensorflow", "tensorflow_datasets", "torch", "torchdata")


@pytest.mark.long
@pytest.mark.parametrize("room", ["grain", "torch"])
def test_importing_it_and_making_a_sampler_imports_no_library(room: str) -> None:
    code = (
        f"import sys, shardctl.{room}\n"
        f"s = shardctl.{room}.Sampler('mnist', 'train', {{'shuffle_seed': 1}})\n"
        f"print([m for m in {_LIBRARIES} if m in sys.modules], len(s), s.order.key(0))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.startswith("[] 60000 ")


def test_what_is_missing_is_said_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("grain", "grain.python", "torch.utils.data", "keras"):
        monkeypatch.setitem(sys.modules, name, None)
    data, source = toy(4, 5), list(range(9))
    calls: list[tuple[str, Callable[[], Any]]] = [
        (r"'shardctl\[grain\]'", lambda: data_loader(source, data)),
        (r"'shardctl\[grain\]'", lambda: map_dataset(source, data)),
        (r"'shardctl\[torch\]'", lambda: shardctl.torch.data_loader(source, data)),
        ("keras", lambda: fit_epochs(Sampler(data))),
    ]
    for extra, call in calls:
        with pytest.raises(MissingDependencyError, match=f"pip install {extra}"):
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
