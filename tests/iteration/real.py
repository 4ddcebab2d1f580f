"""Random pipelines, as texts, and what the real TensorFlow and Keras make of them."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import numpy as np

from shardctl.base.tfds_rules import Loop
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.stages.part import Part, Stage
from shardctl.stages.stages import Pipeline
from shardctl.stages.text import parse_stages
from tests.cases import add_cases
from tests.iteration.elements import check_lookups, node_of, pass_of, passes

Pass = list[list[int]]  # the examples of each element


class Drawing:
    """Draws pipelines; each source has numbers of its own, so that what comes says where from.

    mixed: sources combine others. sharing: some are one object wherever they are drawn again.
    """

    def __init__(self, rng: random.Random, *, mixed: bool, sharing: bool, filters: bool) -> None:
        self.rng, self.mixed, self.sharing, self.filters = rng, mixed, sharing, filters
        self._next, self._shared = 0, list[tuple[str, bool]]()

    def pipeline(self) -> str:
        source, endless = self.mixture(2) if self.mixed else (self.numbers(), False)
        singles = self.filters or source.startswith("zip")
        return self.behind(source, endless, most=2 if self.mixed else 8, singles=singles)[0]

    def numbers(self) -> str:
        if not self.mixed:
            return f"range({self.rng.choice([0, 1, 2, 3, *range(4, 31)])})"
        count = self.rng.choice([self.rng.randrange(2), *[self.rng.randrange(1, 61)] * 5])
        first, self._next = self._next, self._next + count
        return f"values({[*range(first, first + count)]})"

    def behind(
        self, source: str, endless: bool, *, most: int, ends: bool = True, singles: bool = False
    ) -> tuple[str, bool]:
        """Return a source with stages behind it, and whether it may be endless.

        ends: it may not. singles: its elements stay as they are.
        """
        rng, parts, batches = self.rng, [source], 0
        for _ in range(rng.randint(0, most)):
            names = (
                "shuffle shuffle shuffle repeat repeat take skip shard cache map prefetch options"
            )
            names += "" if singles else " batch batch" + " unbatch unbatch" * (batches > 0)
            names += " concat" * (most > 3 and not batches) + " filter filter" * self.filters
            name = rng.choice(names.split())
            # Where a filter lets nothing pass TensorFlow looks for it for ever.
            if endless and name in ("cache", "filter", "repeat", "skip"):
                continue
            if name == "filter" and source.startswith("zip"):
                continue
            parts.append(self.stage(name, endless))
            batches += (name == "batch") - (name == "unbatch")
            endless = endless or parts[-1] == "repeat"
            if endless and ends and rng.random() < 0.5:
                parts.append(f"take({rng.randrange(60)})")
                endless = False
        if endless and ends:
            parts.append(f"take({rng.randrange(90)})")
        return " | ".join(parts), endless and not ends

    def stage(self, name: str, endless: bool) -> str:
        rng, word = self.rng, self.rng.choice
        match name:
            case "shuffle":
                buffer = word([1, 2, 3, 5, 10, 40, 100, 7 if endless or self.mixed else -2])
                again = word(["", "", ", reshuffle_each_iteration=true"])
                again = word([again, again, ", reshuffle_each_iteration=false"])
                return f"shuffle({buffer}, seed={self.seed()}{again})"
            case "repeat":
                return word(["repeat", "repeat(1)", "repeat(2)", "repeat(2)", "repeat(3)"])
            case "take" | "skip":
                return f"{name}({word([-1, 0, rng.randrange(40), rng.randrange(20)])})"
            case "shard":
                count = rng.randint(1, 4)
                return f"shard({count}, {rng.randrange(count)})"
            case "batch":
                drop = word(["", "", ", drop_remainder=true"])
                return f"batch({rng.randint(1, 5)}{drop})"
            case "map":
                return f"map{word(['', '', '(calls=1)', '(calls=2)', '(calls=auto)'])}"
            case "prefetch":
                return f"prefetch({word([0, 1, 2, 'auto'])})"
            case "options":
                named = ("deterministic=true", "fusion=true", "fusion=false", "optimizations=true")
                return f"with_options({word([*named, 'optimizations=false', 'warm_start=true'])})"
            case "concat":
                other, _ = self.behind(self.numbers(), False, most=2, singles=True)
                return f"concatenate({other})"
            case "filter":
                return "filter(kept=kept.txt)"
        return name

    def seed(self) -> int:
        return self.rng.choice([0, 1, 42, -3, self.rng.randrange(2**40), 2**31 - 1])

    def mixture(self, depth: int) -> tuple[str, bool]:
        """Return a combination, and whether it may be endless."""
        rng = self.rng
        kind = rng.choice(["sample", "sample", "choose", "zip"] if depth > 1 else ["sample"])
        number = rng.choice([1, 2, 2, 3, 3, 4, 8]) if depth > 1 else 2
        inputs, endless = zip(*(self.input(depth) for _ in range(number)), strict=True)
        listed, stop = ", ".join(inputs), str(rng.random() < 0.5).lower()
        if kind == "zip":
            return f"zip([{listed}])", all(endless)
        if kind == "choose":
            # Each input is among them, else an endless one may be looked for in vain.
            values = [*range(number), *(rng.randrange(number) for _ in range(rng.randrange(9)))]
            rng.shuffle(values)
            shuffled = f"| shuffle({rng.randrange(1, 9)}, seed={rng.randrange(50)})"
            anew = rng.choice(["", "", shuffled, f"{shuffled} | map"])
            choices = (
                f"values({values}) {anew} | {rng.choice(['repeat', 'repeat(3)', 'repeat(20)'])}"
            )
            options = f"choices={choices}, stop_on_empty_dataset={stop}"
            return f"choose_from_datasets([{listed}], {options})", choices.endswith("repeat")
        weights = [rng.choice([1 / 3, 0.1, 1.0, 5 * rng.random() + 0.05]) for _ in range(number)]
        if number > 1 and rng.random() < 0.2:
            weights[rng.randrange(number)] = 0.0
        options = f"seed={self.seed()}, stop_on_empty_dataset={stop}"
        options += rng.choice(["", f", weights={weights}", f", weights={weights}"])
        options += rng.choice(["", ", rerandomize_each_iteration=true"])
        return f"sample_from_datasets([{listed}], {options})", any(endless) or depth > 1

    def input(self, depth: int) -> tuple[str, bool]:
        """Return an input: numbers of its own, a smaller mixture, or an object used before."""
        rng = self.rng
        if self.sharing and rng.random() < 0.6:
            if not self._shared or rng.random() < 0.4:
                below, endless = self.behind(
                    self.numbers(), False, most=2, ends=False, singles=True
                )
                self._shared.append((f"shared(d{len(self._shared)}, {below})", endless))
            one, endless = rng.choice(self._shared)
            more = ["", "", " | repeat(2)", " | map", " | take(7)", f" | concatenate({one})"]
            return (one, True) if endless else (one + rng.choice(more), False)
        if depth > 1 and rng.random() < 0.15:
            source, endless = self.mixture(depth - 1)
            return f"{source} | take({rng.randrange(1, 40)})" if endless else source, False
        return self.behind(self.numbers(), False, most=3, ends=False, singles=True)


def real_dataset(pipeline: Pipeline, shared: dict[str, Any] | None = None) -> Any:
    """Return the `tf.data.Dataset` that a script with these stages makes."""
    shared = {} if shared is None else shared
    dataset = _source(pipeline.source, shared)
    for stage in pipeline.stages:
        dataset = _behind(dataset, stage, shared)
    return dataset


def _source(it: Any, shared: dict[str, Any]) -> Any:
    import tensorflow as tf

    dataset, inputs = tf.data.Dataset, [real_dataset(one, shared) for one in _inputs(it)]
    match it.name:
        case "range":
            return dataset.range(it.stop)
        case "values":
            return dataset.from_tensor_slices(np.array(it.values, np.int64))
        case "shared":
            if it.label not in shared:
                shared[it.label] = real_dataset(it.pipeline, shared)
            return shared[it.label]
        case "zip":
            return dataset.zip(tuple(inputs))
        case "choose_from_datasets":
            choices = real_dataset(it.choices, shared)
            return dataset.choose_from_datasets(inputs, choices, it.stop_on_empty)
    weights = np.array(it.weights) if it.weights_dtype == "float64" else it.weights
    return dataset.sample_from_datasets(inputs, weights, it.seed, it.stop_on_empty, it.rerandomize)


def _inputs(source: Part) -> tuple[Pipeline, ...]:
    inputs: tuple[Pipeline, ...] = getattr(source, "inputs", ())
    return inputs


def _behind(dataset: Any, it: Any, shared: dict[str, Any]) -> Any:
    import tensorflow as tf

    def number(count: object) -> object:
        return tf.data.AUTOTUNE if count == "auto" else count

    match it.name:
        case "shuffle":
            return dataset.shuffle(it.buffer, it.seed, it.reshuffle)
        case "batch":
            return dataset.batch(it.size, drop_remainder=it.drop_remainder)
        case "shard":
            return dataset.shard(it.num_shards, it.index)
        case "map":
            return dataset.map(_changed, num_parallel_calls=number(it.calls))
        case "prefetch":
            return dataset.prefetch(number(it.size))
        case "concatenate":
            return dataset.concatenate(real_dataset(it.other, shared))
        case "filter":
            return dataset.filter(passes)
        case "with_options":
            return dataset.with_options(_options(it))
        case "unbatch" | "cache":
            return getattr(dataset, it.name)()
    return getattr(dataset, it.name)(it.count)


def _changed(*parts: Any) -> Any:
    """Return what a map makes of an element: a map of an element to itself would be removed."""
    import tensorflow as tf

    made = tf.nest.map_structure(lambda part: part + 0, parts)
    return made[0] if len(made) == 1 else made


def _options(stage: Any) -> Any:
    import tensorflow as tf

    options = tf.data.Options()
    rewriting = options.experimental_optimization
    for where, name, value in (
        (options, "deterministic", stage.deterministic),
        (rewriting, "shuffle_and_repeat_fusion", stage.fusion),
        (rewriting, "apply_default_optimizations", stage.optimizations),
        (options, "experimental_warm_start", stage.warm_start),
    ):
        if value is not None:
            setattr(where, name, value)
    return options


def behind(dataset: Any, stages: tuple[Stage, ...]) -> Any:
    """Return a dataset with stages behind it."""
    for stage in stages:
        dataset = _behind(dataset, stage, {})
    return dataset


def set_seed(seed: int | None) -> None:
    """Set the global seed, or none, as it is when a script begins."""
    import tensorflow as tf
    from tensorflow.python.eager import context

    tf.random.set_seed(0 if seed is None else seed)
    if seed is None:
        context.context()._seed = None


def real_passes(dataset: Any, num_passes: int, loop: Loop = "python") -> list[Pass]:
    """Return what each pass hands out, in a Python loop or in the loop of Keras' `fit`."""
    if loop == "python":
        return [[_examples(element) for element in dataset] for _ in range(num_passes)]
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
                found[-1].append(_examples(next(iterator)))
    return found


def _examples(element: Any) -> list[int]:
    if isinstance(element, tuple):
        return [number for part in element for number in _examples(part)]
    return list(map(int, np.ravel(element).tolist()))


def check_against_tensorflow(
    pipeline: Pipeline | str, num_passes: int = 3, loop: Loop = "python", seed: int | None = None
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
        real = real_passes(dataset, len(predicted), loop)
    except Exception as refusal:
        if "shape" in str(refusal).lower():
            return 0  # batches of batches of different sizes
        raise AssertionError(case) from refusal
    for index, iteration in enumerate(predicted):
        # An iterator that was begun and cut before its first element is asked, too.
        with suppress(UnpredictableOrderError):
            assert check_lookups(iteration) == real[index], f"pass {index} of {case}"
    return len(predicted)


def check_random(
    num_cases: int,
    rng: random.Random,
    *,
    mixed: bool = False,
    sharing: bool = False,
    filters: bool = False,
) -> None:
    """Compare random pipelines; most have more than one pass with one order."""
    num_passes = 0
    for _ in range(num_cases):
        drawing = Drawing(rng, mixed=mixed, sharing=sharing, filters=filters)
        loop: Loop = "python" if mixed else rng.choice(["python", "keras-fit"])
        num_passes += check_against_tensorflow(drawing.pipeline(), rng.randint(1, 4), loop)
        add_cases()
    assert num_passes > num_cases
