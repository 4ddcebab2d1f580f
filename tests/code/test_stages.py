"""Code of a pipeline with stages, run by TFDS and tf.data, reads in the order that is predicted."""

from __future__ import annotations

import random
from itertools import islice

import pytest
from hypothesis import strategies as st

import shardctl
from shardctl.errors import UsageError
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages.pipelines import parts_of
from shardctl.stages.stages import Zip
from shardctl.stages.text import parse_stages
from shardctl.verbs.resume.answer import resume
from shardctl.verbs.resume.code import resume_python
from shardctl.verbs.simulate.answer import simulate
from shardctl.verbs.simulate.view import simulate_python
from tests.cases import FUZZ, check_cases
from tests.code.pasted import run
from tests.order.toy_pipelines import Folders
from tests.pipelines.random_pipelines import Habits, RandomPipeline, random_pipeline
from tests.pipelines.real_pipelines import examples_of

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


def cases(folders: Folders, mixtures: float = 0.3) -> st.SearchStrategy[Case]:
    def drawn(rng: random.Random) -> Case:
        made = random_pipeline(rng, folders.draw, Habits(mixtures=mixtures), may_be_endless=True)
        return made, rng.choice([None, None, 7])

    return st.randoms(use_true_random=False).map(drawn)


def test_code_of_stages_reads_in_the_order_that_is_predicted(folders: Folders) -> None:
    assert check_cases(cases(folders), lambda case: check_code(folders, case), 4) >= 2


@pytest.mark.fuzz
def test_code_of_stages_reads_in_the_order_that_is_predicted_fuzzed(folders: Folders) -> None:
    check_cases(cases(folders), lambda case: check_code(folders, case), FUZZ // 4)


MIXTURES = [
    "sample_from_datasets([read(train) | repeat(2), read(test)], weights=[0.6, 0.4], seed=3)"
    " | shuffle(4, seed=1) | batch(2)",
    "zip(read(train) | shuffle(5, seed=2), read(test)) | map | batch(2)",
    "read(test) | concatenate(read(train)) | repeat(2) | batch(3)",
    "read(train, data='{0}') | shuffle(9, seed=2) | concatenate(read(test)) | batch(2)",
]


@pytest.mark.parametrize(
    "text", [MIXTURES[0], *(pytest.param(text, marks=pytest.mark.slow) for text in MIXTURES[1:])]
)
def test_code_of_each_kind_of_mixture_goes_on(folders: Folders, text: str) -> None:
    toy = folders.root / "toy" / "1.0.0"
    settings = ReadSettings(stages=parse_stages(text.format(toy)))
    order = plan_order(read_tfds_folder(toy), None, settings).order
    plan = resume(read_tfds_folder(toy), None, settings, steps=3)
    code = "".join(resume_python(plan, None))
    assert f"shardctl.tfds.resume_like(ds, consumed={plan.consumed})" in code
    found: list[str] = []
    for element in run([code])["ds"].unbatch().as_numpy_iterator():
        parts = element if isinstance(element, tuple) else (element,)
        found += [part["tfds_id"].decode().rpartition("/")[2] for part in parts]
    expected = order.codes.tfds_ids(order.read(plan.consumed, order.num_examples))
    assert [name.rpartition("/")[2] for name in expected] == found


def test_what_has_no_public_call_is_refused() -> None:
    from shardctl.stages.stages import Map, Pipeline, Repeat, Shuffle

    stages = Pipeline(stages=(Shuffle(buffer=9, seed=(3, 4)), Map(), Repeat(count=2)))
    simulation = shardctl.simulate("mnist", "test", ReadSettings(stages=stages))
    with pytest.raises(UsageError, match="shuffle has the seeds of its kernel"):
        list(simulate_python(simulation))
