"""Random pipelines over real TFDS datasets: inspected, then iterated three times, and the same."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from shardctl.base.tfds_rules import Loop
from shardctl.errors import ShardctlError, UnpredictableOrderError
from shardctl.stages.stages import Read, SampleFromDatasets
from shardctl.verbs.inspect.answer import Inspection
from shardctl.verbs.inspect.view import project_yaml
from tests.cases import PIPELINES, add_cases, add_pipelines, random_of_a_fuzz_run
from tests.pipelines.random_pipelines import Habits, RandomPipeline, random_pipeline
from tests.pipelines.real_pipelines import epochs_of_fit, one_pass, real_dataset
from tests.pipelines.tfds_sources import Sources, build_datasets, name_of

# The claim, case by case: what `inspect` says of a dataset is what the dataset hands out.


NUM_PASSES = 3
HABITS = Habits(seedless=0.04, scrambled=0.04, mixtures=0.15, most_examples=250, functions=True)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A pipeline over real datasets, the seeds of its script, and who iterates it.

    seed: of what changes no order: maps of an element to itself, operations that take seeds.
    """

    drawn: RandomPipeline
    global_seed: int | None
    loop: Loop
    seed: int

    def dataset(self, sources: Sources) -> Any:
        """Return the dataset, made as a script that has just begun makes it."""
        import keras
        import tensorflow as tf

        if self.global_seed is not None and self.seed % 3 == 0:
            keras.utils.set_random_seed(self.global_seed)
        else:
            tf.random.set_seed(self.global_seed)
        for _ in range(self.seed % 4):
            tf.random.uniform([])  # takes a seed of those that the script has left
        # No function here branches on a tensor; to look for that took an eighth of the time.
        made = tf.autograph.experimental.do_not_convert(real_dataset)
        return made(self.drawn.pipeline, sources.dataset, random.Random(self.seed))

    def passes(self, dataset: Any, count: int = NUM_PASSES) -> list[list[str]]:
        """Return the names of the examples that each pass hands out."""
        if self.loop == "keras-fit":
            return epochs_of_fit(dataset, self.drawn.element, count)
        return [one_pass(dataset, self.drawn.element) for _ in range(count)]


def a_case(rng: random.Random, sources: Sources, *, fits: float = 0.03) -> Case:
    """Return a random case; `fits` is the rate of those that Keras iterates."""
    seedless = rng.random() < 0.2
    global_seed = rng.choice([None, None, rng.randrange(1000)])
    if global_seed is not None and seedless:  # what has no seed of its own gets one then
        habits = replace(HABITS, seedless=0.5, scrambled=0.0)
        drawn = random_pipeline(rng, sources.draw, habits)
    else:
        drawn = random_pipeline(rng, sources.draw, HABITS)
    return Case(
        drawn=drawn,
        global_seed=global_seed,
        loop="keras-fit" if rng.random() < fits else "python",
        seed=rng.randrange(1000),
    )


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What came of cases: how many passes were compared, and which were refused.

    `settings` are kept of pipelines whose order was told, with the ids of each pass, to be asked
    again without TensorFlow.
    """

    counts: Counter[str] = field(default_factory=Counter)
    unproven: list[tuple[str, Case]] = field(default_factory=list)
    told: list[tuple[Inspection, list[Any]]] = field(default_factory=list)


def check_claim(case: Case, sources: Sources, tally: Tally, *, attempts: int) -> None:
    """Compare what is said of a dataset, before anybody iterates it, with what it hands out.

    attempts: how many more runs of a pipeline whose order is refused are looked at for one that
        differs.
    """
    import tensorflow as tf

    import shardctl.tfds

    counts = tally.counts
    try:
        dataset = case.dataset(sources)
    except (ValueError, TypeError):  # what TFDS and TensorFlow refuse to build: an empty split
        counts["not built"] += 1
        return
    found = shardctl.tfds.inspect(dataset, loop=case.loop)
    told: list[Any] = []
    for index in range(NUM_PASSES):
        try:
            told.append(found.ids(index))
        except UnpredictableOrderError as error:
            told.append(error)
    try:
        real = case.passes(dataset)
    except (tf.errors.OpError, ValueError):  # shapes that do not fit; nothing to train on
        counts["not read"] += 1
        return
    counts["pipelines"] += 1
    for index, (said, names) in enumerate(zip(told, real, strict=True)):
        if isinstance(said, ShardctlError):
            counts["passes refused"] += 1
        else:
            counts["passes compared"] += 1
            examples = [name_of(name) for name in names]
            same = len(said) == len(examples) and all(
                example.may_be_called(one if isinstance(one, str) else int(one))
                for one, example in zip(said, examples, strict=True)
            )
            assert same, f"pass {index}: said {list(said)}, handed out {names}"
    refused = next((i for i, said in enumerate(told) if isinstance(said, ShardctlError)), None)
    if refused is None:
        counts["pipelines told"] += 1
        tally.told.append((found, told))
        return
    counts["pipelines refused" if refused == 0 else "later passes refused"] += 1
    if _differs(case, sources, real, refused, attempts):
        counts["refusals proven"] += 1
    else:
        tally.unproven.append((str(told[refused]), case))


def _differs(
    case: Case, sources: Sources, real: list[list[str]], index: int, attempts: int
) -> bool:
    """Return whether another run of the same script hands out another order."""
    return any(
        case.passes(case.dataset(sources), index + 1)[index] != real[index] for _ in range(attempts)
    )


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
