"""Processes of jax.distributed, killed, and started again as so many, or another number of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import FUZZ, random_of_a_fuzz_run
from tests.killed_runs import (
    Script,
    WholeRun,
    build_images,
    check_killed_runs,
    check_other_processes,
    script_of_guide,
    whole_run,
)

LENGTHS, EPOCHS = [400, 0, 250, 617, 300, 333, 100], 3

pytestmark = pytest.mark.fuzz


# What else a script may have: weights that the devices of all processes share, and processes that
# share files, which are of so different lengths that some wait for others.
OTHERWISE = {
    "host=host\n": "host=host, host_by='files'\n",
    '{"weights": weights}': '{"weights": weights, "shards": shards}',
    "step = checkpoints.latest_step()": """
numbers = np.arange(6, dtype=np.float32)
shards = jax.make_array_from_callback((6,), shared, lambda i: numbers[i])
step = checkpoints.latest_step()""",
    '    weights = checkpoints.restore(step, args=items).state["weights"]': """
    state = checkpoints.restore(step, args=items).state
    weights, shards = state["weights"], state["shards"]
    for one in shards.addressable_shards:
        assert one.data.tolist() == numbers[one.index].tolist()""",
}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Mapping[int, Script]]:
    """Return the script of the guide as 1, 2 and 3 processes, as it is and otherwise."""
    folder = build_images(tmp_path_factory.mktemp("data"), train=LENGTHS)
    text, paths = script_of_guide("flax-loops", "jax_train.py"), tmp_path_factory.mktemp("script")
    (paths / "even").write_text(text)
    for before, after in OTHERWISE.items():
        assert before in text
        text = text.replace(before, after)
    (paths / "files").write_text(text)
    made = {}
    for name in ("even", "files"):
        named: dict[str, Any] = {"path": paths / name, "arguments": (folder,)}
        made[name] = {n: Script(**named, outcome=outcome, processes=n) for n in (1, 2, 3)}
    return made


@pytest.fixture(scope="module")
def whole(scripts: Mapping[str, Any], tmp_path_factory: pytest.TempPathFactory) -> WholeRun:
    return whole_run(scripts["even"][2], tmp_path_factory.mktemp("whole"))


def outcome(run: Path) -> Mapping[str, Any]:
    import orbax.checkpoint as ocp

    with ocp.CheckpointManager(run / "checkpoints") as checkpoints:
        # Of the processes that saved it this one has no devices, so it says what it wants.
        wanted = ocp.args.StandardRestore({"weights": np.zeros((28 * 28, 10), np.float32)})
        last = checkpoints.latest_step()
        restored = checkpoints.restore(last, args=ocp.args.Composite(state=wanted)).state
        return {"weights": np.asarray(restored["weights"])}


def check_each_example(names: list[str]) -> None:
    found = Counter(names)
    assert len(found) == sum(LENGTHS)
    assert set(found.values()) == {EPOCHS}, "lost or repeated"


def test_as_many_processes_end_as_if_nobody_had_killed_them(
    scripts: Mapping[str, Any], whole: WholeRun, tmp_path: Path
) -> None:
    check_each_example(" ".join(whole.steps.values()).replace(",", " ").split())
    kills = max(1, FUZZ // 1000)
    report = check_killed_runs(scripts["even"][2], whole, tmp_path, kills=kills)
    print(report)
    assert len(report.kills) == kills


def test_other_numbers_of_processes_read_each_example_as_often(
    scripts: Mapping[str, Any], whole: WholeRun, tmp_path: Path
) -> None:
    numbers = random_of_a_fuzz_run()
    for number in range(max(1, FUZZ // 4000)):
        host_by = ("files", "even")[number % 2]
        counts = [3, 2] if FUZZ <= 2000 else numbers.choices([1, 2, 3], k=5)
        run = tmp_path / str(number)
        trained = check_other_processes(scripts[host_by], whole, run, counts, numbers)
        check_each_example(" ".join(trained.values()).replace(",", " ").split())
