"""Code of a pipeline with stages, run by TFDS and tf.data, reads in the order that is predicted."""

from __future__ import annotations

import random
from itertools import islice

import pytest
from hypothesis import strategies as st

import shardctl
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.stages.pipelines import parts_of
from shardctl.core.stages.stages import Zip
from shardctl.errors import UsageError
from shardctl.planning.simulate import simulate
from shardctl.readers.tfds_metadata import read_tfds_folder
from shardctl.rendering.python.pipeline import simulate_python
from tests.cases import FUZZ, check_cases
from tests.core.order.staged_folders import Folders
from tests.pipelines.random_pipelines import Habits, RandomPipeline, random_pipeline
from tests.pipelines.real_pipelines import examples_of
from tests.rendering.python.pasted import run

Case = tuple[RandomPipeline, int | None]


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return Folders.build(tmp_path_factory.mktemp("staged_code"))


def check_code(folders: Folders, case: Case) -> int:
    """Run the code of stages, and compare the first pass with the order."""
    made, seed = case
    if any(isinstance(part, Zip) and len(part.inputs) < 2 for part in parts_of(made.pipeline)):
        return 0  # a function cannot tell a tuple of one from what is in it
    base = read_tfds_folder(folders.root / "toy" / "1.0.0")
    settings = ReadSettings(stages=made.pipeline, global_seed=seed)
    simulation = simulate(base, None, settings, take=10)
    order, elements = simulation.order, 40 if made.most is None else None
    if not len(order.reads):
        return 0  # a spec without examples, which TFDS refuses to read
    text = "".join(simulate_python(simulation))
    found = [
        str(name)
        for element in islice(run([text])["ds"], elements)
        for name in examples_of(element, made.element)
    ]
    assert order.is_endless or order.num_examples == len(found)
    assert order.codes.tfds_ids(order.read(0, len(found))) == found, text
    return 1


def cases(folders: Folders) -> st.SearchStrategy[Case]:
    def drawn(rng: random.Random) -> Case:
        made = random_pipeline(rng, folders.draw, Habits(mixtures=0.3), may_be_endless=True)
        return made, rng.choice([None, None, 7])

    return st.randoms(use_true_random=False).map(drawn)


def test_code_of_stages_reads_in_the_order_that_is_predicted(folders: Folders) -> None:
    assert check_cases(cases(folders), lambda case: check_code(folders, case), 4) >= 2


@pytest.mark.fuzz
def test_code_of_stages_reads_in_the_order_that_is_predicted_fuzzed(folders: Folders) -> None:
    check_cases(cases(folders), lambda case: check_code(folders, case), FUZZ // 4, fuzz=True)


def test_a_dataset_used_twice_is_made_once() -> None:
    from shardctl.core.stages.stages import Batch, Map, Pipeline, Read, Shared, Shuffle

    shuffled = Pipeline(source=Read(spec="test"), stages=(Shuffle(buffer=9, seed=1),))
    one = Pipeline(source=Shared(label="one", pipeline=shuffled))
    other = Pipeline(source=Shared(label="one", pipeline=shuffled), stages=(Map(calls="auto"),))
    stages = Pipeline(source=Zip(inputs=(one, other)), stages=(Batch(size=2),))
    text = "".join(simulate_python(simulate("mnist", None, ReadSettings(stages=stages))))
    assert text.count("as_dataset(") == text.count(".shuffle(") == 1
    assert "num_parallel_calls=tf.data.AUTOTUNE" in text


def test_what_has_no_public_call_is_refused() -> None:
    from shardctl.core.stages.stages import Map, Pipeline, Repeat, Shuffle

    stages = Pipeline(stages=(Shuffle(buffer=9, seed=(3, 4)), Map(), Repeat(count=2)))
    simulation = shardctl.simulate("mnist", "test", ReadSettings(stages=stages))
    with pytest.raises(UsageError, match="shuffle has the seeds of its kernel"):
        list(simulate_python(simulation))
