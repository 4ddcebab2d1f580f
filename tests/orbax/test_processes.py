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

WORKER = Path(__file__).with_name("worker.txt").read_text("utf-8")
WORKER = WORKER.replace("@EPOCHS", str(EPOCHS)).replace("@SAVED", str(SAVED))


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
