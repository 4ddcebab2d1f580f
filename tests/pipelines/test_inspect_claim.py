"""Random pipelines over real TFDS datasets: inspected, then iterated three times, and the same."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from shardctl.stages.stages import Read, SampleFromDatasets
from shardctl.verbs.inspect.view import project_yaml
from tests.cases import PIPELINES, add_cases, add_pipelines, random_of_a_fuzz_run
from tests.pipelines.claim import Tally, a_case, check_claim
from tests.pipelines.tfds_sources import Sources, build_datasets

pytestmark = pytest.mark.tensorflow

NUM_PARTS = 10
# Runs of a pipeline whose order is refused, until one differs. Each costs as much as the pipeline
# did, and those that never differ are only listed: a short fuzz run leaves that to the test before.
NUM_ATTEMPTS = 12 if PIPELINES > 10_000 else 0


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    return Sources(root=build_datasets(tmp_path_factory.mktemp("claims")), seedless=0.04)


def checked(rng: random.Random, sources: Sources, num_cases: int, *, attempts: int) -> Tally:
    """Check so many pipelines; what is wrong with one is told with its seed."""
    tally = Tally()
    while tally.counts["pipelines"] < num_cases:
        seed = rng.getrandbits(32)
        case = a_case(random.Random(seed), sources)
        try:
            check_claim(case, sources, tally, attempts=attempts)
        except Exception as error:
            error.add_note(f"seed {seed}: {case}")
            raise
    add_pipelines(num_cases)
    return tally


def test_what_is_said_is_what_is_read(tf: Any, sources: Sources, tmp_path: Path) -> None:
    num_cases = 6
    tally = checked(random.Random(0), sources, num_cases, attempts=3)
    counts = tally.counts
    assert counts["pipelines told"] > num_cases * 3 // 4, counts
    assert counts["passes compared"] > num_cases * 23 // 10, counts
    refused = counts["pipelines refused"] + counts["later passes refused"]
    assert counts["refusals proven"] >= min(num_cases // 20, refused), reasons(tally)
    settings_say_the_same(tally, tmp_path)


def test_a_mixture_that_reads_one_split_is_written_with_it(tf: Any, sources: Sources) -> None:
    """Once the readers' spec took the place of the mixture."""
    import shardctl.tfds

    read = Read(spec="test", data="toy", settings=())
    parts = [sources.dataset(read).take(3), sources.dataset(read).repeat()]
    mixture = tf.data.Dataset.sample_from_datasets(parts, seed=3, stop_on_empty_dataset=True)
    stages = shardctl.tfds.inspect(mixture).project_settings.stages
    assert stages is not None
    assert isinstance(stages.source, SampleFromDatasets)
    assert [one.source for one in stages.source.inputs] == [Read(spec="test")] * 2


WITHOUT_TENSORFLOW = """\
import os, sys

sys.modules["tensorflow"] = None
from shardctl.cli.main import main

for folder in sys.argv[1:]:
    os.chdir(folder)
    for index in range(3):
        out = f"pass{index}.txt"
        try:
            main(["simulate", "--take", "-1", "-f", "ids", "--pass", str(index), "-o", out])
        except SystemExit as end:
            assert not end.code, folder
"""


def settings_say_the_same(tally: Tally, folder: Path, most: int = 15) -> None:
    """The shardctl.yaml of a pipeline has the same ids, by `simulate` and without TensorFlow."""
    told = [(found, ids) for found, ids in tally.told if found.dataset is not None][:most]
    folders = []
    for number, (found, _) in enumerate(told):
        folders.append(folder / str(number))
        folders[-1].mkdir()
        text = "".join(project_yaml([found], "train.py:make_dataset"))
        folders[-1].joinpath("shardctl.yaml").write_text(text)
    words = [sys.executable, "-c", WITHOUT_TENSORFLOW, *map(str, folders)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    for one, (found, ids) in zip(folders, told, strict=True):
        for index, expected in enumerate(ids):
            lines = one.joinpath(f"pass{index}.txt").read_text().split()
            assert lines == list(map(str, expected)), (one, index, found)
    add_cases(len(told))


@pytest.mark.fuzz
@pytest.mark.parametrize("part", range(NUM_PARTS))  # several processes check them
def test_what_is_said_is_what_is_read_fuzz(tf: Any, sources: Sources, part: int) -> None:
    number = PIPELINES // NUM_PARTS + (part < PIPELINES % NUM_PARTS)
    tally = checked(random_of_a_fuzz_run(), sources, number, attempts=NUM_ATTEMPTS)
    print(tally.counts, *reasons(tally).most_common(20), sep="\n")


def reasons(tally: Tally) -> Counter[str]:
    """Return why orders were refused of which no two runs were seen to differ."""
    return Counter(reason for reason, _ in tally.unproven)
