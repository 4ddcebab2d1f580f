"""The scripts of the guide on Lightning and Ray Train: no example is lost or read twice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import types
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from shardctl.guide.guides import guide_files
from tests.late_modules import needs
from tests.torch.conftest import EPOCHS, LENGTHS

pytestmark = [
    needs("torch", "pyarrow", reason="PyTorch is not installed: pip install 'shardctl[torch]'"),
    pytest.mark.fuzz,
]


def check_read(run: Path) -> None:
    """Check that all processes together have trained on each example in each epoch."""
    found = Counter(int(i) for log in run.glob("trained-*") for i in log.read_text().split())
    assert found == dict.fromkeys(range(sum(LENGTHS)), EPOCHS)


# Ends a process of Lightning before a step, as a machine that fails does.
KILLED = """
step = Model.training_step

def training_step(self, batch, index):
    if self.trainer.global_step == 7:
        os._exit(9)
    return step(self, batch, index)

Model.training_step = training_step
"""


def test_lightning_resumes_in_the_midst_of_an_epoch(folder: Path) -> None:
    pytest.importorskip("lightning", reason="Lightning is not installed: pip install lightning")
    head, main, rest = guide_files()["lightning_train.py"].partition('if __name__ == "__main__":')
    run = folder.parent / "run"
    for name, text in (
        ("killed.py", head + KILLED + main + rest),
        ("whole.py", head + main + rest),
    ):
        script = folder.parent / name
        script.write_text(text)
        done = subprocess.run([sys.executable, script, folder, run], check=False)
        assert done.returncode == (9 if name == "killed.py" else 0)
    check_read(run)


class Ray:
    """What a worker of Ray Train sees, where workers report one after the other."""

    def __init__(self, saved: Path, rank: int, size: int, steps: int | None) -> None:
        self.saved, self.rank, self.size, self.left = saved, rank, size, steps
        self.step = 0

    def modules(self) -> dict[str, Any]:
        names = {"get_context": lambda: self, "get_checkpoint": self._checkpoint}
        checkpoint = types.SimpleNamespace(from_directory=lambda folder: folder)
        train = types.SimpleNamespace(**names, report=self.report, Checkpoint=checkpoint)
        return {"ray": types.SimpleNamespace(train=train), "ray.train": train, "ray.train.torch": 0}

    def get_world_rank(self) -> int:
        return self.rank

    def get_world_size(self) -> int:
        return self.size

    def _checkpoint(self) -> Any:
        """Return the newest, to which all workers have added their files."""
        found = sorted(self.saved.glob("done-*"))

        @contextmanager
        def as_directory() -> Any:
            yield str(found[-1])

        return types.SimpleNamespace(as_directory=as_directory) if found else None

    def report(self, metrics: dict[str, Any], checkpoint: str) -> None:
        self.step += 1
        if self.step == self.left:
            shutil.copytree(checkpoint, self.saved / "new", dirs_exist_ok=True)
            raise InterruptedError


def test_ray_train_resumes_with_other_workers(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, (size, steps) in enumerate([(2, 4), (3, 3), (1, None)]):
        for rank in range(size):
            ray = Ray(folder.parent, rank, size, steps)
            for name, module in ray.modules().items():
                monkeypatch.setitem(sys.modules, name, module)
            names: dict[str, Any] = {"__name__": "ray_train"}
            exec(guide_files()["ray_train.py"], names)
            config = {"folder": str(folder), "log": str(folder.parent / f"trained-{number}")}
            try:
                names["train"](config)
            except InterruptedError:
                assert steps is not None
        if steps is not None:
            os.rename(folder.parent / "new", folder.parent / f"done-{number}")
    check_read(folder.parent)
