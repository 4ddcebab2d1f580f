"""Real processes of jax.distributed, killed, and started again as another number of them."""

from __future__ import annotations

import random
import socket
from collections import Counter
from pathlib import Path

import pytest

from tests.cases import FUZZ, add_cases, random_of_a_fuzz_run
from tests.forked_scripts import forking_python
from tests.tfds_datasets import build_dataset

LENGTHS = [70, 0, 110, 45, 90, 3, 82]  # 400 examples
EPOCHS = 2
SAVED = 24  # steps that every process of 3 has, so that all of them take part in every save
MAX_SECONDS = 150

WORKER = f"""
import os
import signal
import sys
import time
from pathlib import Path

import jax

folder, run, log, address, count, index, last, delay = sys.argv[1:]
Path(f"{{log}}.pid").write_text(str(os.getpid()))
jax.distributed.initialize(address, int(count), int(index))

import numpy as np
import orbax.checkpoint as ocp
import tensorflow_datasets as tfds
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import shardctl.orbax as shardctl_args
from shardctl.tfds import Host, Position, ReadSettings

settings = ReadSettings(
    shuffle_seed=3, buffer=40, buffer_seed=1, epochs={EPOCHS}, batch=5,
    host=Host(index=jax.process_index(), count=jax.process_count()),
)
position = Position(tfds.builder_from_directory(folder), "train", settings)
sharding = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), PartitionSpec("data"))
weights = jax.make_array_from_callback((6,), sharding, lambda i: np.arange(6.0)[i])
checkpoints = ocp.CheckpointManager(run, options=ocp.CheckpointManagerOptions(max_to_keep=2))
step = checkpoints.latest_step() or 0
last = int(last) and int(last) + step
if step:
    items = ocp.args.Composite(
        state=ocp.args.StandardRestore({{"weights": weights}}),
        data=shardctl_args.Restore(position),
    )
    assert checkpoints.restore(step, args=items).data is position
with open(log, "w") as file:
    print("restored", step, position.consumed, file=file, flush=True)
    batches = position.dataset(transform=lambda example: example["id"]).as_numpy_iterator()
    for step, batch in enumerate(position.count(batches), step + 1):
        print(step, *batch, file=file, flush=True)
        if step % 2 == 0 and step <= {SAVED}:
            state = ocp.args.StandardSave({{"weights": weights}})
            data = shardctl_args.Save(position)
            checkpoints.save(step, args=ocp.args.Composite(state=state, data=data))
        if step == last and index == "0":  # all of them end here, wherever the others are
            time.sleep(float(delay))
            for i in reversed(range(int(count))):
                os.kill(int(Path(f"{{log[:-1]}}{{i}}.pid").read_text()), signal.SIGKILL)
checkpoints.close()
"""


def lines_of(root: Path, generation: int, process: int) -> list[list[str]]:
    text = (root / f"log-{generation}-{process}").read_text()
    return [line.split() for line in text[: text.rfind("\n") + 1].splitlines()]


def run(root: Path, generation: int, folder: Path, count: int, last: int, delay: float) -> None:
    """Run processes to their end, or kill all `delay` after the first has trained `last` steps."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    (root / "worker.py").write_text(WORKER)
    commands: list[list[str | Path]] = []
    for i in range(count):
        log = root / f"log-{generation}-{i}"
        numbers = (str(number) for number in (count, i, last, delay))
        commands.append([root / "worker.py", folder, root / "run", log, address, *numbers])
    for ran in forking_python().run(commands, root, seconds=MAX_SECONDS):
        assert ran.code == (-9 if last else 0), ran.errors[-2000:]


def check(folder: Path, root: Path, counts: list[int], numbers: random.Random) -> None:
    """Check that what counts of all logs, that is up to each restore, is every example once."""
    root.mkdir()
    for generation, count in enumerate(counts):
        last = 0 if generation == len(counts) - 1 else numbers.randint(5, 9)
        run(root, generation, folder, count, last, delay=numbers.random() / 20)
    seen: list[tuple[int, list[int]]] = []
    for generation, count in enumerate(counts):
        logs = [lines_of(root, generation, i) for i in range(count)]
        (step,) = {int(log[0][1]) for log in logs}
        assert step % 2 == 0
        assert (step > 0) == (generation > 0)  # a checkpoint of the run before was whole
        seen = [one for one in seen if one[0] <= step]
        seen += [(int(line[0]), [int(i) for i in line[1:]]) for log in logs for line in log[1:]]
    assert Counter(i for _, batch in seen for i in batch) == dict.fromkeys(
        range(sum(LENGTHS)), EPOCHS
    )
    add_cases(len(counts) - 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_dataset(tmp_path_factory.mktemp("data"), splits={"train": LENGTHS})


@pytest.mark.fuzz
def test_processes_killed_and_started_as_another_number_read_every_example_once(
    folder: Path, tmp_path: Path
) -> None:
    numbers = random_of_a_fuzz_run()
    for number in range(max(1, FUZZ // 10_000)):
        counts = [3, 2] if FUZZ <= 2000 else numbers.choices([1, 2, 3], k=4)
        check(folder, tmp_path / str(number), counts, numbers)
