"""Pipelines: real TensorFlow and Keras hand out the same; what runs in place of their stages."""

from __future__ import annotations

import random
import time
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.base.tfds_rules import Loop
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.iteration.build import fuses, optimized
from shardctl.iteration.iteration import EVERYTHING, Source, lasting_below, read_ahead
from shardctl.iteration.repeat import Repeat
from shardctl.iteration.selection import Strided
from shardctl.iteration.shuffle import Shuffle
from shardctl.stages.pipelines import open_stages, options_of
from shardctl.stages.stages import Pipeline, Range, Shared, Values, WithOptions
from shardctl.stages.text import parse_stages, text_of
from shardctl.tfdata.shuffle_seeds import KernelSeeds, SeedGenerator
from tests.cases import FUZZ, add_cases, fuzzed, random_of_a_fuzz_run
from tests.golden import assert_answers, assert_evaluated
from tests.iteration.elements import check_lookups, elements_of, node_of, pass_of
from tests.pipelines.random_pipelines import Element, Habits, RandomPipeline, Sized, random_pipeline
from tests.pipelines.real_pipelines import examples_of
from tests.pipelines.real_pipelines import real_dataset as made_of

# What the real TensorFlow and Keras make of pipelines, beside what their nodes hand out.


Pass = list[list[int]]  # the examples of each element


def random_of_numbers(rng: random.Random, habits: Habits) -> RandomPipeline:
    """Return a pipeline whose sources have numbers of their own, so that each says where from."""
    firsts = count(0, 100)

    def numbers(rng: random.Random) -> Sized:
        size, first = rng.choice([0, 1, 2, 3, *range(4, 61)]), next(firsts)
        if rng.random() < 0.3:
            return Sized(source=Range(stop=size), num_examples=size)
        values = tuple(range(first, first + size))
        return Sized(source=Values(values=values), num_examples=size)

    return random_pipeline(rng, numbers, habits)


def real_dataset(pipeline: Pipeline) -> Any:
    """Return the `tf.data.Dataset` that a script with these stages makes."""
    shared: dict[str, Any] = {}

    def read(source: Shared) -> Any:
        if source.label not in shared:
            shared[source.label] = made_of(source.pipeline, read)
        return shared[source.label]

    return made_of(pipeline, read)


def set_seed(seed: int | None) -> None:
    """Set the global seed, or none, as it is when a script begins."""
    import tensorflow as tf
    from tensorflow.python.eager import context

    tf.random.set_seed(0 if seed is None else seed)
    if seed is None:
        context.context()._seed = None


def real_passes(
    dataset: Any, num_passes: int, loop: Loop = "python", kind: Element | None = None
) -> list[Pass]:
    """Return what each pass hands out, in a Python loop or in the loop of Keras' `fit`."""
    if loop == "python":
        return [[_examples(element, kind) for element in dataset] for _ in range(num_passes)]
    import tensorflow as tf
    from keras.src.backend.tensorflow.trainer import TFEpochIterator

    strategy = tf.distribute.get_strategy()
    epochs = TFEpochIterator(x=dataset, distribute_strategy=strategy, steps_per_execution=1)
    epochs.reset()  # as `fit` does, once
    found: list[Pass] = []
    for _ in range(num_passes):
        found.append([])
        with epochs.catch_stop_iteration():
            for _, _, iterator in epochs:
                found[-1].append(_examples(next(iterator), kind))
    return found


def _examples(element: Any, kind: Element | None = None) -> list[int]:
    if kind is not None:
        return list(examples_of(element, kind))
    if isinstance(element, tuple):
        return [number for part in element for number in _examples(part)]
    return list(map(int, np.ravel(element).tolist()))


def check_against_tensorflow(
    pipeline: Pipeline | str,
    num_passes: int = 3,
    loop: Loop = "python",
    seed: int | None = None,
    kind: Element | None = None,
) -> int:
    """Compare passes with TensorFlow's; return how many were, none where a refusal stands."""
    case = f"{num_passes} passes of {loop}, global seed {seed}: {pipeline}"
    pipeline = parse_stages(pipeline) if isinstance(pipeline, str) else pipeline
    try:
        node = node_of(pipeline, seed)
    except UsageError as refusal:
        if "batches" in str(refusal):
            return 0
        raise AssertionError(case) from refusal
    if node.is_infinite:
        return 0
    set_seed(seed)
    dataset = real_dataset(pipeline)
    assert node.cardinality == int(dataset.cardinality()), case
    predicted = []
    try:
        for index in range(num_passes):
            predicted.append(pass_of(pipeline, index, loop=loop, seed=seed))
    except UnpredictableOrderError as refusal:
        if "timing" not in str(refusal):
            raise AssertionError(case) from refusal
    try:
        real = real_passes(dataset, len(predicted), loop, kind)
    except Exception as refusal:
        if "shape" in str(refusal).lower():
            return 0  # batches of batches of different sizes
        raise AssertionError(case) from refusal
    for index, iteration in enumerate(predicted):
        # An iterator that was begun and cut before its first element is asked, too.
        with suppress(UnpredictableOrderError):
            assert check_lookups(iteration) == real[index], f"pass {index} of {case}"
    return len(predicted)


def check_random(num_cases: int, rng: random.Random, **habits: Any) -> None:
    """Compare random pipelines; most have more than one pass with one order."""
    num_passes = 0
    for _ in range(num_cases):
        seed = rng.choice([None, None, rng.randrange(1000)])
        seedless = 0.0 if seed is None else 0.3
        made = random_of_numbers(rng, Habits(most_examples=400, seedless=seedless, **habits))
        loop: Loop = rng.choice(["python", "python", "keras-fit"])
        num_passes += check_against_tensorflow(
            made.pipeline, rng.randint(1, 4), loop, seed, made.element
        )
        add_cases()
    assert num_passes > num_cases or FUZZ < 100  # of a few random ones nobody knows


KINDS: dict[str, dict[str, Any]] = {
    "chains": {"mixtures": 0.0},
    "mixtures": {"mixtures": 0.9},
    "sharing": {"mixtures": 0.9, "sharing": 0.6},
    "filters": {"mixtures": 0.5, "filters": True},
}


@fuzzed(4)
@pytest.mark.parametrize("kind", KINDS)
def test_random_pipelines_hand_out_what_tensorflow_does(kind: str, num_cases: int) -> None:
    rng = random_of_a_fuzz_run() if num_cases == FUZZ else random.Random(kind)
    check_random(num_cases, rng, **KINDS[kind])


def numbers(first: int, count: int) -> str:
    return f"values({[*range(first, first + count)]})"


INPUTS = ", ".join(numbers(30 * i, 12 + i) for i in range(3))


# One dataset object twice; choices shuffled anew, where threads in front of a map may have read on
# if a pass is cut; inputs of which nothing is read; caches cut short; one input of weight.
NOTED = Path(__file__).with_name("pipelines_of_note.txt").read_text("utf-8").splitlines()[1:]


@pytest.mark.parametrize("line", NOTED)
def test_pipelines_of_note_hand_out_what_tensorflow_does(line: str) -> None:
    num_passes, _, text = line.partition(" ")
    assert check_against_tensorflow(text) >= int(num_passes)


def test_weights_in_double_precision_are_those_of_tensorflow() -> None:
    pipeline = parse_stages(f"sample_from_datasets([{INPUTS}], weights=[0.1, 0.2, 0.7], seed=3)")
    source = replace(pipeline.source, weights_dtype="float64")  # type: ignore[call-arg]
    assert check_against_tensorflow(Pipeline(source=source)) == 3


def test_global_seeds_are_drawn_in_the_order_of_the_script() -> None:
    text = "range(5) | shuffle(9) | concatenate(range(5) | shuffle(9))"
    assert check_against_tensorflow(text, 2, seed=3) == 2
    whole = elements_of(pass_of(text, seed=3))
    assert whole[:5] == elements_of(pass_of("range(5) | shuffle(9)", seed=3))
    assert whole[5:] != whole[:5]  # its seed is the next one that is drawn


@pytest.mark.long
def test_pulling_at_once_does_what_pulling_one_by_one_does() -> None:
    rng = random.Random(5)
    for number in range(60):
        habits = Habits(mixtures=0.9 * (number % 3 == 0), sharing=0.6, filters=number % 5 == 0)
        text = random_of_numbers(rng, habits).pipeline
        try:
            at_once, stepwise = node_of(text, 3), node_of(text, 3)
            for _ in range(3):
                one, other = at_once.iterate(), stepwise.iterate()
                stop = rng.choice(
                    [EVERYTHING if not at_once.is_infinite else 90, rng.randrange(40)]
                )
                one.pull(stop)
                while other.pulled < stop and not other.ended:
                    other.pull(min(stop - other.pulled, rng.choice([1, 1, 2, 5])))
                assert (one.pulled, one.ended) == (other.pulled, other.ended), text
                one.abandon()
                other.abandon()
                states = [[each.state for each in lasting_below(n)] for n in (at_once, stepwise)]
                assert states[0] == states[1], text
        except (UnpredictableOrderError, UsageError):
            continue
        add_cases()


@pytest.mark.parametrize(
    ("above", "name"),
    [
        ("repeat(2) | prefetch(30) | take(3)", "shuffle"),
        ("cache | prefetch(30) | take(3)", "cache"),
    ],
)
def test_what_is_refused_has_two_outcomes(above: str, name: str) -> None:
    with pytest.raises(UnpredictableOrderError, match=name):
        pass_of(f"range(8) | shuffle(2, seed=7) | {above}", 1)

    def second_pass(*, slow_input: bool) -> list[list[int]]:
        import tensorflow as tf

        def wait(code: int) -> int:
            time.sleep(0.05 if slow_input else 0)
            return code

        source = tf.data.Dataset.range(8).map(lambda code: tf.py_function(wait, [code], tf.int64))
        dataset = made_of(parse_stages(f"shuffle(2, seed=7) | {above}"), lambda _: source)
        for _ in dataset:  # a program that takes its time lets the threads read further
            time.sleep(0 if slow_input else 0.1)
        return real_passes(dataset, 1)[0]

    assert second_pass(slow_input=True) != second_pass(slow_input=False)


def test_a_choice_that_is_no_input_fails_where_tensorflow_fails() -> None:
    import tensorflow as tf

    text = "choose_from_datasets([range(9), range(9)], choices=values([0, 1, 0, 2, 0]))"
    real = iter(real_dataset(parse_stages(text)))
    assert [int(next(real)) for _ in range(3)] == [0, 0, 1]
    with pytest.raises(tf.errors.InvalidArgumentError):
        next(real)


@pytest.mark.parametrize(("count", "is_marked"), [(4, False), (5, False), (6, True), (None, True)])
def test_reading_ahead_marks_what_it_would_change(count: int | None, is_marked: bool) -> None:
    # Of 5 + 5 elements the second epoch is begun by the sixth; nothing where all are alike.
    for reshuffle in (True, False):
        generator = SeedGenerator(KernelSeeds(seed=1, seed2=2), reshuffle, stage="shuffle(3)")
        node = Repeat(Strided(Shuffle(Source(range(5)), 1, generator)), 2)
        read_ahead(node, node.iterate(), count)
        assert generator.is_uncertain is (is_marked and reshuffle)


def test_threads_that_were_never_asked_have_read_nothing() -> None:
    for warm in (False, True):
        generator = SeedGenerator(KernelSeeds(seed=1, seed2=2), True, stage="shuffle(1)")
        below = Repeat(Strided(Shuffle(Source(range(9)), 1, generator)), 2)
        Strided(below, reads_ahead=None, warm=warm).iterate().abandon()
        assert generator.is_uncertain is warm


# What runs, each as TF_CPP_VMODULE=rewrite_utils=5 of TensorFlow 2.21 shows it.


def test_what_runs_is_what_tensorflow_logs() -> None:
    def ops(text: str) -> str:
        pipeline = optimized(parse_stages(f"range(5) | {text}"))
        options, found = options_of(pipeline), list[str]()
        for index, stage in enumerate(pipeline.stages):
            if index and fuses(pipeline.stages[index - 1], stage, options):
                found[-1] += "_and_repeat"
            else:
                found.append(stage.name)
        return " ".join(found)

    assert_answers(Path(__file__).parent / "golden" / "what_runs.txt", ops)


def test_maps_run_in_parallel_and_inputs_are_rewritten_too() -> None:
    one, done = "range(5) | repeat(1) | map", "range(5) | map(calls=auto, deterministic=true)"
    for text in (
        "{}",
        "{} | map(calls=2, deterministic=false)",
        "range(3) | concatenate({})",
        "zip([{0}, {0}])",
        "sample_from_datasets([{0}, {0}])",
        "choose_from_datasets([{0}], choices={0})",
    ):
        made = optimized(parse_stages(text.format(one)))
        assert made == parse_stages(f"{text.format(done)} | prefetch(auto)"), text_of(made)
    off = parse_stages(f"{one} | with_options(optimizations=false)")
    assert optimized(off) == off
    # Options of inputs count, later ones first.
    first, second = (
        "with_options(fusion=false, warm_start=true)",
        "range(5)|with_options(fusion=true)",
    )
    options = options_of(parse_stages(f"range(5) | {first} | concatenate({second})"))
    assert options == WithOptions(fusion=True, warm_start=True)
    assert options_of(parse_stages(f"zip([{second}, range(5) | {first}])")).fusion is False


# Stages that leave an order open, by what they are.
# Options leave a reader open whose decoding goes by them. Inputs come before what combines them.
def test_open_stages() -> None:
    def names(text: str, seed: int | None = None) -> str:
        found: Any = open_stages(parse_stages(text), global_seed=seed)
        assert all(each.reason for each in found)
        return " ".join(each.stage.name for each in found) or "none"

    assert_evaluated(globals(), "open_stages", names)


@pytest.mark.slow
@pytest.mark.parametrize(
    "stages", ["skip(1)", "take(3000)", "shuffle(2, seed=3)", "skip(1) | batch(2) | unbatch()"]
)
def test_a_thousand_stages_follow_each_other(stages: str) -> None:
    chain = [one for _ in range(1_000) for one in stages.split(" | ")][:999]
    assert check_against_tensorflow(" | ".join(["range(1200)", *chain]), num_passes=1) == 1


def test_more_stages_than_can_be_followed_are_refused() -> None:
    followed = pass_of(" | ".join(["range(1002)", *["skip(1)"] * 1_000]))
    assert elements_of(followed) == [[1000], [1001]]
    with pytest.raises(UsageError, match="of 1,501 stages: at most 1,024 are followed"):
        node_of(" | ".join(["range(9)", *["skip(1)"] * 1_500]))
