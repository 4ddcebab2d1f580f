"""Random pipelines: any source, up to eight stages in any order, mixtures in mixtures."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from hypothesis import strategies as st

from shardctl.stages import stages as ast
from shardctl.stages.part import Source, Stage

MOST_STAGES = 8
MOST_EXAMPLES = 1500

_CALLS: tuple[int | Literal["auto"] | None, ...] = (None, 1, 2, "auto")

# What an element is: an example, several of them in a batch (even: always as many), or a tuple.
Element = Literal["example"] | tuple[Literal["batch"], "Element", bool] | tuple["Element", ...]


@dataclass(frozen=True, kw_only=True)
class Sized:
    """A source, and how many examples it has."""

    source: Source
    num_examples: int


@dataclass(frozen=True, kw_only=True)
class RandomPipeline:
    """A pipeline, what its elements are, and how many there are at most; None has no end."""

    pipeline: ast.Pipeline
    element: Element = "example"
    most: int | None

    @property
    def most_examples(self) -> int | None:
        """The number of examples of a pass at most."""
        return None if self.most is None else self.most * _width(self.element)


@dataclass(frozen=True, kw_only=True)
class Habits:
    """What may be drawn.

    seedless: shuffles and mixtures without a seed of their own, at this rate.
    scrambled: maps with `deterministic=False`, at this rate.
    mixtures: sources that combine others, at this rate.
    parallel: whether maps and prefetches may run in threads of their own.
    most_examples: of a pass.
    filters: whether a list says what passes some filters.
    functions: whether stages are drawn whose function is in a script only.
    sharing: inputs that are one object wherever they are drawn again, at this rate; `shared` has
        those of one pipeline.
    """

    seedless: float = 0.0
    scrambled: float = 0.0
    mixtures: float = 0.15
    parallel: bool = True
    most_examples: int = MOST_EXAMPLES
    filters: bool = False
    functions: bool = False
    sharing: float = 0.0
    shared: list[RandomPipeline] = field(default_factory=list)


def pipelines(
    sources: Callable[[random.Random], Sized], habits: Habits = Habits()
) -> st.SearchStrategy[RandomPipeline]:
    """Return the strategy of finite pipelines over the sources that a function draws."""
    return st.randoms(use_true_random=False).map(lambda rng: random_pipeline(rng, sources, habits))


def random_pipeline(
    rng: random.Random,
    sources: Callable[[random.Random], Sized],
    habits: Habits = Habits(),
    *,
    most_stages: int = MOST_STAGES,
    like: Element | None = None,
    may_be_endless: bool = False,
) -> RandomPipeline:
    """Return a random pipeline whose passes hold no more than `habits` say.

    like: what its elements have to be, an example or a batch of examples.
    """
    drawing = _Drawing(rng, sources, habits, most_stages)
    made = drawing.pipeline()
    if like is not None:
        made = drawing.alike(made, like)
    if made.most is None and not may_be_endless:
        made = _then(made, ast.Take(count=rng.randrange(1, 60)), most=60)
    return made


def _width(element: Element) -> int:
    """Return the number of examples of an element at most; batches are of 8 at most."""
    if element == "example":
        return 1
    if element[0] == "batch":
        return 8 * _width(element[1])
    return sum(_width(part) for part in element)


def _even(element: Element) -> bool:
    """Return whether all elements have one shape, so that they can be batched."""
    if element == "example":
        return True
    if element[0] == "batch":
        return bool(element[2]) and _even(element[1])
    return all(_even(part) for part in element)


def _then(
    made: RandomPipeline, *stages: Stage, most: int | None, element: Element | None = None
) -> RandomPipeline:
    pipeline = made.pipeline
    return RandomPipeline(
        pipeline=ast.Pipeline(source=pipeline.source, stages=(*pipeline.stages, *stages)),
        element=made.element if element is None else element,
        most=most,
    )


class _Drawing:
    def __init__(
        self,
        rng: random.Random,
        sources: Callable[[random.Random], Sized],
        habits: Habits,
        most_stages: int,
    ) -> None:
        self.rng, self.sources, self.habits = rng, sources, habits
        self.most_stages = most_stages

    def pipeline(self) -> RandomPipeline:
        mixed = self.most_stages > 2 and self.rng.random() < self.habits.mixtures
        made = self.mixture() if mixed else self.single()
        for _ in range(self.rng.randrange(self.most_stages)):
            made = self.stage(made)
        return made

    def single(self) -> RandomPipeline:
        drawn = self.sources(self.rng)
        return RandomPipeline(pipeline=ast.Pipeline(source=drawn.source), most=drawn.num_examples)

    def below(self, like: Element | None = None, *, endless: bool = False) -> RandomPipeline:
        sharing = self.habits.sharing if like in (None, "example") else 0.0
        if sharing and self.rng.random() < sharing:
            return self.used_again()
        return random_pipeline(
            self.rng,
            self.sources,
            self.habits,
            most_stages=self.most_stages // 2,
            like=like,
            may_be_endless=endless,
        )

    def used_again(self) -> RandomPipeline:
        """Return an object that is there already, or a new one, with at most a stage behind it."""
        known = self.habits.shared
        if not known or self.rng.random() < 0.4:
            made = random_pipeline(
                self.rng, self.sources, self.habits, most_stages=2, like="example"
            )
            source = ast.Shared(label=f"d{len(known)}", pipeline=made.pipeline)
            known.append(RandomPipeline(pipeline=ast.Pipeline(source=source), most=made.most))
        one = self.rng.choice(known)
        staged = self.stage(one)
        return staged if staged.element == "example" and staged.most is not None else one

    def alike(self, made: RandomPipeline, like: Element) -> RandomPipeline:
        """Return a pipeline with batches taken apart, and made again where they are wanted."""
        while made.element != "example":
            made = self._unbatch(made) if made.element[0] == "batch" else self.single()
        if like == "example":
            return made
        size = self.rng.randrange(1, 9)
        return _then(
            made, ast.Batch(size=size), most=made.most, element=("batch", "example", False)
        )

    def mixture(self) -> RandomPipeline:
        rng, kind = self.rng, self.rng.choice(["zip", "sample", "sample", "choose"])
        if kind == "zip":
            parts = [self.below() for _ in range(rng.randrange(1, 4))]
            return RandomPipeline(
                pipeline=ast.Pipeline(
                    source=ast.Zip(inputs=tuple(part.pipeline for part in parts))
                ),
                element=tuple(part.element for part in parts),
                most=min(part.most or 0 for part in parts),
            )
        like: Element = rng.choice(["example", "example", ("batch", "example", False)])
        parts = [self.below(like, endless=True) for _ in range(rng.randrange(1, 5))]
        inputs = tuple(part.pipeline for part in parts)
        most = sum(part.most or 0 for part in parts)
        endless = None in [part.most for part in parts]
        made: Source
        if kind == "sample":
            weights = tuple(rng.choice([1.0, 2.0, 0.1, rng.random() + 0.01]) for _ in parts)
            made = ast.SampleFromDatasets(
                inputs=inputs,
                weights=rng.choice([None, weights, weights]),
                seed=self.seed(),
                stop_on_empty=rng.random() < 0.5,
                rerandomize=rng.choice([None, None, True, False]),
            )
        else:
            choices, num_choices = self.choices(len(parts))
            endless = False
            most = num_choices
            made = ast.ChooseFromDatasets(
                inputs=inputs, choices=choices, stop_on_empty=rng.random() < 0.5
            )
        return RandomPipeline(
            pipeline=ast.Pipeline(source=made), element=like, most=None if endless else most
        )

    def choices(self, num_inputs: int) -> tuple[ast.Pipeline, int]:
        rng = self.rng
        stages: list[Stage] = []
        count = rng.randrange(1, 6)
        if rng.random() < 0.5:
            numbers = tuple(rng.randrange(num_inputs) for _ in range(rng.randrange(1, 20)))
            source: Source = ast.Values(values=numbers)
            length = len(numbers)
        else:
            source, length = ast.Range(stop=num_inputs), num_inputs
        if rng.random() < 0.3:
            stages.append(ast.Shuffle(buffer=rng.randrange(1, 9), seed=rng.randrange(100)))
        if rng.random() < 0.7:
            stages.append(ast.Repeat(count=count))
            length *= count
        return ast.Pipeline(source=source, stages=tuple(stages)), length

    def seed(self) -> int | None:
        if self.rng.random() < self.habits.seedless:
            return None
        return self.rng.choice([0, 1, 7, 42, self.rng.randrange(2**31), -3])

    def stage(self, made: RandomPipeline) -> RandomPipeline:
        kinds = (
            ("shuffle", 6),
            ("repeat", 4),
            ("batch", 3),
            ("unbatch", 2),
            ("take", 2),
            ("skip", 1),
            ("shard", 1),
            ("cache", 2),
            ("map", 3),
            ("prefetch", 2),
            ("with_options", 1),
            ("concatenate", 1),
            *(
                [("filter", 3)] if self.habits.filters else []
            ),  # Hypothesis draws what weighs nothing
            *([("window", 2), ("scan", 1)] if self.habits.functions else []),
        )
        names, weights = zip(*kinds, strict=True)
        drawn = getattr(self, f"_{self.rng.choices(names, weights)[0]}")(made)
        if drawn.most is not None and (drawn.most_examples or 0) > self.habits.most_examples:
            return made
        assert isinstance(drawn, RandomPipeline)
        return drawn

    def _shuffle(self, made: RandomPipeline) -> RandomPipeline:
        buffers = [1, 2, 5, 16, 100, self.rng.randrange(1, 40)]
        if made.most is not None:
            buffers.append(-2)
        stage = ast.Shuffle(
            buffer=self.rng.choice(buffers),
            seed=self.seed(),
            reshuffle=self.rng.choice([None, None, True, False]),
        )
        return _then(made, stage, most=made.most)

    def _repeat(self, made: RandomPipeline) -> RandomPipeline:
        if made.most is None:
            return made
        count = self.rng.choice([1, 2, 2, 3, 5, None])
        return _then(
            made, ast.Repeat(count=count), most=None if count is None else made.most * count
        )

    def _batch(self, made: RandomPipeline) -> RandomPipeline:
        if not _even(made.element) or _width(made.element) > 8:
            return made
        stage = ast.Batch(size=self.rng.randrange(1, 9), drop_remainder=self.rng.random() < 0.4)
        most = made.most if made.most is None else -(-made.most // stage.size)
        return _then(made, stage, most=most, element=("batch", made.element, stage.drop_remainder))

    def _unbatch(self, made: RandomPipeline) -> RandomPipeline:
        if made.element == "example" or made.element[0] != "batch":
            return made
        most = made.most if made.most is None else made.most * 8
        return _then(made, ast.Unbatch(), most=most, element=made.element[1])

    def _window(self, made: RandomPipeline) -> RandomPipeline:
        if made.most is None or made.element != "example":
            return made
        shift = self.rng.choice([None, 1, self.rng.randrange(1, 9)])
        stage = ast.Window(
            size=self.rng.randrange(1, 6),
            shift=shift,
            stride=self.rng.choice([1, 1, 2, 3]),
            drop_remainder=self.rng.random() < 0.5,
        )
        most = -(-made.most // (shift or stage.size))
        return _then(made, stage, most=most, element=("batch", "example", stage.drop_remainder))

    def _scan(self, made: RandomPipeline) -> RandomPipeline:
        return _then(made, ast.Scan(), most=made.most)

    def _take(self, made: RandomPipeline) -> RandomPipeline:
        count = self.rng.choice([-1, 0, 1, self.rng.randrange(30), self.rng.randrange(200)])
        if made.most is None:
            count = self.rng.randrange(60)
        return _then(
            made, ast.Take(count=count), most=made.most if made.most is not None else count
        )

    def _skip(self, made: RandomPipeline) -> RandomPipeline:
        return _then(
            made, ast.Skip(count=self.rng.choice([0, 1, self.rng.randrange(20)])), most=made.most
        )

    def _shard(self, made: RandomPipeline) -> RandomPipeline:
        num_shards = self.rng.randrange(1, 5)
        stage = ast.Shard(num_shards=num_shards, index=self.rng.randrange(num_shards))
        return _then(made, stage, most=made.most)

    def _cache(self, made: RandomPipeline) -> RandomPipeline:
        return made if made.most is None else _then(made, ast.Cache(), most=made.most)

    def _map(self, made: RandomPipeline) -> RandomPipeline:
        calls: int | Literal["auto"] | None = None
        if self.habits.parallel:
            calls = self.rng.choice(_CALLS)
        scrambled = calls is not None and self.rng.random() < self.habits.scrambled
        stage = ast.Map(
            calls=calls, deterministic=False if scrambled else self.rng.choice([None, None, True])
        )
        return _then(made, stage, most=made.most)

    def _prefetch(self, made: RandomPipeline) -> RandomPipeline:
        sizes: Sequence[int | Literal["auto"]] = (0, 1, 3, "auto")
        size = self.rng.choice(sizes) if self.habits.parallel else 0
        return _then(made, ast.Prefetch(size=size), most=made.most)

    def _with_options(self, made: RandomPipeline) -> RandomPipeline:
        stage = ast.WithOptions(
            deterministic=self.rng.choice([None, True]),
            fusion=self.rng.choice([None, True, False]),
            optimizations=self.rng.choice([None, None, True, False]),
            warm_start=self.rng.choice([None, None, True]),
        )
        return _then(made, stage, most=made.most)

    def _concatenate(self, made: RandomPipeline) -> RandomPipeline:
        batches: Element = ("batch", "example", False)
        if made.most is None or made.element not in ("example", batches):
            return made
        other = self.below(made.element)
        stage = ast.Concatenate(other=other.pipeline)
        return _then(made, stage, most=made.most + (other.most or 0))

    def _filter(self, made: RandomPipeline) -> RandomPipeline:
        # Where a filter lets nothing pass of what has no end TensorFlow looks for it for ever.
        if made.most is None or made.element != "example":
            return made
        return _then(made, ast.Filter(kept="kept.txt"), most=made.most)
