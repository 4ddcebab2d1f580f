"""The claim, case by case: what `inspect` says of a dataset is what the dataset hands out."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from shardctl.base.tfds_rules import Loop
from shardctl.errors import ShardctlError, UnpredictableOrderError
from shardctl.verbs.inspect.answer import Inspection
from tests.pipelines.random_pipelines import Habits, RandomPipeline, random_pipeline
from tests.pipelines.real_pipelines import epochs_of_fit, one_pass, real_dataset
from tests.pipelines.tfds_sources import Sources, name_of

NUM_PASSES = 3
HABITS = Habits(seedless=0.04, scrambled=0.04, mixtures=0.15, most_examples=250)


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
