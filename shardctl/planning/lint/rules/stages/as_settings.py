"""What the rules about settings find where a pipeline is written as stages that no settings mean.

Each function belongs to a rule that has the code and the story; see where it is called.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from shardctl.core.stages.part import Stage
from shardctl.core.stages.stages import Batch, Map, Read, Repeat, Shuffle, WithOptions
from shardctl.core.stages.text import text_of_part
from shardctl.core.tfds_rules import WHOLE_DATASET
from shardctl.planning.lint.chains import Chain, repeats, reshuffles, shuffles
from shardctl.planning.lint.context import LintContext
from shardctl.planning.lint.rule import Violation

_STAGES = ("stages",)


def one_order(context: LintContext) -> Iterator[Violation]:
    """Find chains that hand out every epoch in one order (SC001)."""
    for chain, who, stages in _readers(context):
        several = any(map(repeats, stages)) or context.settings.pass_index > 0
        if not several or any(map(reshuffles, stages)) or _shuffles_files(chain, context):
            continue
        first = next((index for index, stage in enumerate(stages) if shuffles(stage)), None)
        if first is not None and any(map(repeats, stages[:first])):
            continue  # one stream of all epochs, whose random numbers go on
        fixed = first is not None
        yield Violation(
            why=f"{who}: the examples come in the same order in every epoch, since "
            + ("its buffer is shuffled the same way each time" if fixed else "nothing shuffles it"),
            fix="leave out reshuffle=False" if fixed else context.shuffle_to_add,
            settings=_STAGES,
        )


def no_shuffle(context: LintContext) -> Iterator[Violation]:
    """Find chains that are read once, or as often as a script says, without any shuffle (SC017)."""
    if context.dataset.ordered or context.settings.pass_index:
        return
    for chain, who, stages in _readers(context):
        if any(isinstance(stage, Shuffle) or repeats(stage) for stage in stages):
            continue
        if not _shuffles_files(chain, context):
            yield Violation(
                why=f"{who}: nothing shuffles it, so examples come in the order of storage",
                fix=context.shuffle_to_add,
                settings=_STAGES,
            )


def _readers(context: LintContext) -> Iterator[tuple[Chain, str, tuple[Stage, ...]]]:
    """Yield the chains that read for training, their names and all stages behind them."""
    for chain in context.stage_chains:
        source = chain.pipeline.source
        if not isinstance(source, Read) or not context.trained:
            continue
        spec = source.spec or context.trained[0].spec
        read = spec if source.data is None else f"{spec} of {source.data}"
        who = f"{read} ({chain.place})" if chain.place else read
        if not context.is_evaluated(source):
            yield chain, who, chain.pipeline.stages + chain.behind


def _shuffles_files(chain: Chain, context: LintContext) -> bool:
    source = chain.pipeline.source
    return isinstance(source, Read) and context.reshuffles_files_of(source)


def buffer_of_one(context: LintContext) -> Iterator[Violation]:
    """Find shuffles that hold one element (SC005)."""
    for here, shuffle in shuffles_of(context):
        if shuffle.buffer == 1:
            yield Violation(
                why=f"{here}, {text_of_part(shuffle)}, leaves every element where it is",
                fix="a larger buffer, or no shuffle",
                settings=_STAGES,
            )


def shuffles_of(context: LintContext) -> Iterator[tuple[str, Shuffle]]:
    """Yield the shuffles among the stages, each with its place."""
    for chain in context.stage_chains:
        for here in chain.stages(lambda read: None):
            if isinstance(here.stage, Shuffle):
                yield here.place, here.stage


def not_deterministic(context: LintContext) -> Iterator[Violation]:
    """Find maps and options that hand out what is ready first (SC007)."""
    places = []
    for chain in context.stage_chains:
        for here in chain.stages(lambda read: None):
            stage = here.stage
            if not isinstance(stage, Map | WithOptions) or stage.deterministic is not False:
                continue
            if isinstance(stage, Map) and stage.calls in (None, 1):
                continue  # one at a time is in order
            places.append(f"{here.place}, {text_of_part(stage)}")
    if places:
        yield Violation(
            why=f"{'; '.join(places)}: elements come as they are ready, in another order each "
            "run, whatever the seeds",
            fix="leave out deterministic=False",
            settings=_STAGES,
        )


def extra_iterator(context: LintContext) -> Iterator[Violation]:
    """Find later passes behind a repeat that is parted from its shuffle (SC015)."""
    pass_index = context.settings.pass_index
    if not pass_index or context.settings.loop != "python":
        return
    for chain in context.stage_chains:
        for here in chain.stages(lambda read: None):
            repeat, before = here.stage, here.before
            if not isinstance(repeat, Repeat) or repeat.count is None or repeat.count < 2:
                continue
            parted = bool(before) and not isinstance(before[-1], Shuffle)
            if parted and any(map(reshuffles, before)):
                yield Violation(
                    why=f"{here.place}, {text_of_part(repeat)}, makes {repeat.count + 1:,} "
                    f"iterators of the shuffle, which {text_of_part(before[-1])} parts it from: "
                    f"pass {pass_index:,} begins {pass_index:,} orders later",
                    fix="iterate the dataset once an epoch, or count so when you compare",
                    settings=("pass", "stages"),
                )


def buffer_never_fills(context: LintContext) -> Iterator[Violation]:
    """Find buffers for the whole of what has no end (SC009)."""
    for read in context.staged_reads[:1]:
        for here in context.stages_at(read):
            endless = here.num_elements == math.inf
            if endless and isinstance(here.stage, Shuffle) and here.stage.buffer == WHOLE_DATASET:
                yield Violation(
                    why=f"{here.place}, {text_of_part(here.stage)}, waits for the end of what has "
                    "none, and memory runs out",
                    fix="a buffer of a number, or the shuffle before what repeats",
                    settings=_STAGES,
                )


def dropped_in_evaluation(context: LintContext) -> Iterator[Violation]:
    """Find evaluation examples that a batch among the stages drops (SC051)."""
    if not context.stage_chains:
        return
    for read in context.evaluated:
        for here in context.stages_at(read):
            batch, count = here.stage, here.num_elements
            if not isinstance(batch, Batch) or not batch.drop_remainder:
                continue
            if count is None or math.isinf(count) or not count % batch.size:
                continue
            yield Violation(
                why=f"{read.spec}: {int(count) % batch.size:,} of {int(count):,} elements fill no "
                f"{text_of_part(batch)} and are never evaluated",
                fix="pad the last batch and mask it, as shardctl.tfds.evaluation does",
                specs=(read.spec,),
                settings=_STAGES,
            )
