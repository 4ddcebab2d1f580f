"""Walks over the parts of a pipeline: find its readers, change a part, gather options and seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import count
from math import inf
from typing import cast

from shardctl.base.tfds_rules import INT64_MAX
from shardctl.stages import stages as ast
from shardctl.stages.part import Part, Source, Stage


def sources_of(pipeline: ast.Pipeline, *, seen: set[str] | None = None) -> Iterator[Source]:
    """Yield the sources of examples, each as often as it is there; not those of choices.

    What is shared is there once; `seen` are the labels of it that came before.

    >>> from shardctl.stages.stages import Concatenate, Zip
    >>> one = ast.Pipeline(source=ast.Read(spec="train"))
    >>> two = ast.Pipeline(source=Zip(inputs=(one, one)), stages=(Concatenate(other=one),))
    >>> len(list(sources_of(two)))
    3
    """
    # One set for the whole walk, since a label means the same object everywhere.
    source, seen = pipeline.source, set() if seen is None else seen
    if not source.fed_by:
        yield source
    for part in (source, *pipeline.stages):
        if isinstance(part, ast.Shared):
            if part.label in seen:
                continue
            seen.add(part.label)
        for one in part.fed_by:
            yield from sources_of(one, seen=seen)


def parts_of(pipeline: ast.Pipeline, *, choices: bool = False) -> Iterator[Part]:
    """Yield all sources and stages, a whole before its parts; those of choices if wanted."""
    for part in (pipeline.source, *pipeline.stages):
        yield part
        # `fed_by` leaves out choices, which are numbers and no examples.
        for one in part.pipelines if choices else part.fed_by:
            yield from parts_of(one, choices=choices)


def as_built(pipeline: ast.Pipeline) -> Iterator[Part]:
    """Yield all sources and stages in the order in which a script builds them."""
    for part in (pipeline.source, *pipeline.stages):
        # Inputs first: a script has to build them before what combines them. Seeds are drawn so,
        # too.
        for one in part.pipelines:
            yield from as_built(one)
        yield part


def readers_of(pipeline: ast.Pipeline) -> list[ast.Read]:
    """Return the readers, each as often as it is there."""
    return [source for source in sources_of(pipeline) if isinstance(source, ast.Read)]


def last_batch(pipeline: ast.Pipeline) -> ast.Batch | None:
    """Return the batch that is around an element at the end of a row of stages."""
    around: list[ast.Batch] = []
    for stage in pipeline.stages:
        if isinstance(stage, ast.Unbatch | ast.FlatMap):
            # Unbatch takes the outermost batch apart, the one that was added last.
            around = around[:-1]
        elif isinstance(stage, ast.Batch):
            around.append(stage)
        elif isinstance(stage, ast.Window):
            around.append(ast.Batch(size=stage.size, drop_remainder=stage.drop_remainder))
    return around[-1] if around else None


def with_changed(
    pipeline: ast.Pipeline,
    *,
    read: Callable[[ast.Read], ast.Read] | None = None,
    kept: Callable[[str], str] | None = None,
    part: Callable[[Part], Part] | None = None,
) -> ast.Pipeline:
    """Return a pipeline with every reader as `read` changes it; None leaves them as they are.

    kept: what becomes of the name of a file that says what a stage does to each example.
    part: what becomes of each source and stage, inner ones first.


    >>> behind = ast.Concatenate(other=ast.Pipeline())
    >>> pipeline = ast.Pipeline(source=ast.Read(spec="a"), stages=(behind,))
    >>> changed = with_changed(pipeline, read=lambda read: ast.Read(spec="b"))
    >>> changed.source.spec, changed.stages[0].other.source.spec
    ('b', 'b')
    """

    def whole(pipeline: ast.Pipeline) -> ast.Pipeline:
        source = cast(Source, changed(pipeline.source))
        return ast.Pipeline(source=source, stages=tuple(map(changed, pipeline.stages)))  # type: ignore[arg-type]

    def changed(given: Part) -> Part:
        if isinstance(given, ast.Read) and read is not None:
            given = read(given)
        if isinstance(given, ast.ByData) and given.kept is not None and kept is not None:
            given = replace(given, kept=kept(given.kept))
        # Inner pipelines before `part`, which therefore sees what has already been changed.
        given = given.mapped(whole)
        return given if part is None else part(given)

    return whole(pipeline)


def with_sources_read(pipeline: ast.Pipeline) -> ast.Pipeline:
    """Return a pipeline whose sources of counted elements are readers of these, each of its own.

    Choices stay numbers. What is shared is one object.

    >>> one = ast.Pipeline(source=ast.Range(stop=4))
    >>> made = with_sources_read(ast.Pipeline(source=ast.Zip(inputs=(one, one))))
    >>> [read.data for read in readers_of(made)]
    ['range(4)', 'range(4)-2']
    >>> turns = ast.InterleaveDatasets(inputs=(one,), choices=one)
    >>> with_sources_read(ast.Pipeline(source=turns)).source.choices.source
    Range(stop=4)
    """
    numbers: Counter[Part] = Counter()
    shared: dict[str, Part] = {}

    def read(part: Part) -> Part:
        if isinstance(part, ast.Values):
            part = ast.Range(stop=len(part.values))
        if isinstance(part, ast.Range | ast.Counter):
            numbers[part] += 1
            return part.as_read(numbers[part])
        if isinstance(part, ast.Choosing):
            return replace(part, inputs=tuple(map(whole, part.inputs)))
        if not isinstance(part, ast.Shared):
            return part.mapped(whole)
        if part.label not in shared:
            shared[part.label] = part.mapped(whole)
        return shared[part.label]

    def whole(pipeline: ast.Pipeline) -> ast.Pipeline:
        source, *stages = map(read, (pipeline.source, *pipeline.stages))
        return ast.Pipeline(source=cast(Source, source), stages=tuple(cast(list[Stage], stages)))

    return whole(pipeline)


def with_seeds(pipeline: ast.Pipeline) -> ast.Pipeline:
    """Return a pipeline whose shuffles and mixtures without a seed have 1, 2, ... for theirs.

    What is shared is one object, whose seed is the same wherever it stands.

    >>> stages = (ast.Shuffle(buffer=9), ast.Shuffle(buffer=9, seed=7))
    >>> with_seeds(ast.Pipeline(stages=stages)).stages
    (Shuffle(buffer=9, seed=1, reshuffle=None), Shuffle(buffer=9, seed=7, reshuffle=None))
    """
    seeds = count(1)
    shared: dict[str, Part] = {}

    def part(given: Part) -> Part:
        if isinstance(given, ast.Shared):
            # The first use is the one that got seeds (inner parts come first); all others are made
            # it.
            return shared.setdefault(given.label, given)
        if isinstance(given, ast.Shuffle | ast.SampleFromDatasets) and given.seed is None:
            return replace(given, seed=next(seeds))
        return given

    return with_changed(pipeline, part=part)


def options_of(pipeline: ast.Pipeline) -> ast.WithOptions:
    """Return the options in force: those of all its stages and inputs, later ones first.

    >>> from shardctl.stages.stages import Repeat
    >>> stages = (ast.WithOptions(fusion=False), Repeat(), ast.WithOptions(deterministic=True))
    >>> options_of(ast.Pipeline(stages=stages)).fusion
    False
    """
    merged: dict[str, bool] = {}
    for part in as_built(pipeline):
        if isinstance(part, ast.WithOptions):
            given = {field.name: getattr(part, field.name) for field in fields(part)}
            # Later in the order of the script, later in the dict: a value that is set wins over
            # earlier ones.
            merged |= {name: value for name, value in given.items() if value is not None}
    return ast.WithOptions(**merged)


@dataclass(frozen=True, kw_only=True)
class OpenStage:
    """A stage that makes the order nondeterministic, and why, a sentence without its full stop."""

    stage: Part
    reason: str


def open_stages(pipeline: ast.Pipeline, *, global_seed: int | None = None) -> tuple[OpenStage, ...]:
    """Return the stages that make the order nondeterministic, in the order of the script.

    >>> from shardctl.stages.stages import Map
    >>> stages = (ast.Shuffle(buffer=9), Map(), ast.Filter())
    >>> [each.stage.name for each in open_stages(ast.Pipeline(stages=stages), global_seed=1)]
    ['filter']
    """
    deterministic = options_of(pipeline).deterministic
    found = ((part, part.why_open(deterministic, global_seed)) for part in as_built(pipeline))
    return tuple(OpenStage(stage=stage, reason=reason) for stage, reason in found if reason)


def extent(pipeline: ast.Pipeline, sizes: Mapping[ast.Read, int]) -> tuple[float, float]:
    """Return upper bounds: of the examples that are yielded, and of those in one element."""
    # Floats, so that "without end" is inf and products cannot overflow.
    source, examples, width = pipeline.source, inf, 1.0
    if isinstance(source, ast.Read):
        examples = sizes[source]
    elif isinstance(source, ast.Padding):
        examples = source.count
    elif source.fed_by:
        several, widths = zip(*(extent(one, sizes) for one in source.fed_by), strict=True)
        examples, width = sum(several), sum(widths)
        if isinstance(source, ast.InterleaveDatasets):
            examples = inf if examples else 0  # it may open them again and again
    for stage in pipeline.stages:
        match stage:
            case ast.Repeat():
                often = inf if stage.count is None else stage.count
                examples = examples * often if examples else 0
            case ast.Batch():
                width *= stage.size
            case ast.Window():
                # An element is in as many windows as begin within one.
                examples *= -(-stage.span // (stage.shift or stage.size)) if examples else 1
                width *= stage.size
            case ast.GroupByWindow() | ast.FlatMap():  # of which the data decides
                # Groups hold each example once.
                is_more = examples and isinstance(stage, ast.FlatMap)
                examples, width = (inf if is_more else examples), INT64_MAX
            # A negative count takes all. `take` counts elements, which hold `width` examples at
            # most.
            case ast.Take() if stage.count >= 0:
                examples = min(examples, stage.count * width)
            case ast.Concatenate():
                others, other_width = extent(stage.other, sizes)
                examples, width = examples + others, max(width, other_width)
    return examples, width
