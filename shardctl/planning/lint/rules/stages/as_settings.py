"""What the rules about settings find where a pipeline is written as stages that no settings mean.

Each function belongs to a rule that has the code and the story; see where it is called.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from shardctl.core.phrase import phrase
from shardctl.core.stages.stages import (
    Map,
    Opaque,
    Read,
    Repeat,
    SampleFromDatasets,
    Shard,
    Shuffle,
    Stage,
    WithOptions,
)
from shardctl.core.stages.text import text_of_part
from shardctl.planning.lint.chains import Chain, of_type, repeats, reshuffles, shuffles
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
    for here, shuffle in _shuffles(context):
        if shuffle.buffer == 1:
            yield Violation(
                why=f"{here}, {text_of_part(shuffle)}, leaves every element where it is",
                fix="a larger buffer, or no shuffle",
                settings=_STAGES,
            )


def no_seed(context: LintContext) -> Iterator[Violation]:
    """Find shuffles and mixtures that the machine seeds (SC006)."""
    for here, shuffle in _shuffles(context):
        if shuffle.seed is None and shuffle.buffer != 1:
            yield Violation(
                why=f"{here}, {text_of_part(shuffle)}, shuffles in another order in each run, "
                "which cannot be repeated or resumed",
                fix=f"shuffle({shuffle.buffer}, seed=N)",
                settings=_STAGES,
            )
    for name in _unseeded_mixtures(context):
        yield Violation(
            why=f"{name} chooses other inputs in each run, which cannot be repeated or resumed",
            fix="seed=N in it",
            settings=_STAGES,
        )


def _unseeded_mixtures(context: LintContext) -> Iterator[str]:
    for chain in context.stage_chains:
        source = chain.pipeline.source
        if isinstance(source, SampleFromDatasets) and source.seed is None:
            yield f"{source.name} of {chain.place}" if chain.place else source.name


def _shuffles(context: LintContext) -> Iterator[tuple[str, Shuffle]]:
    for chain in context.stage_chains:
        for here in chain.stages(lambda read: None):
            if isinstance(here.stage, Shuffle):
                yield here.place, here.stage


def not_deterministic(context: LintContext) -> Iterator[Violation]:
    """Find maps and options that hand out what is ready first (SC007)."""
    for chain in context.stage_chains:
        for here in chain.stages(lambda read: None):
            stage = here.stage
            if not isinstance(stage, Map | WithOptions) or stage.deterministic is not False:
                continue
            if isinstance(stage, Map) and stage.calls in (None, 1):
                continue  # one at a time is in order
            yield Violation(
                why=f"{here.place}, {text_of_part(stage)}: elements come as they are ready, in "
                "another order each run, whatever the seeds",
                fix="leave out deterministic=False",
                settings=_STAGES,
            )


def global_seed(context: LintContext) -> Iterator[Violation]:
    """Find shuffles and mixtures whose seed counts together with the global one (SC011)."""
    seeded = [text_of_part(shuffle) for _, shuffle in _shuffles(context) if _is_own(shuffle)]
    seeded += [
        chain.pipeline.source.name
        for chain in context.stage_chains
        if isinstance(chain.pipeline.source, SampleFromDatasets) and _is_own(chain.pipeline.source)
    ]
    if seeded:
        yield Violation(
            why=phrase(
                "the order depends on {global_seed} as well as on the seed of {}: another "
                "tf.random.set_seed gives another order",
                seeded[0],
            ),
            fix="build the dataset before tf.random.set_seed, or fix that seed too",
            settings=("global_seed",),
        )


def _is_own(seeded: Shuffle | SampleFromDatasets) -> bool:
    """Whether a seed is given as in the call; a pair of the kernel has the global one in it."""
    moves = not isinstance(seeded, Shuffle) or seeded.buffer != 1
    return moves and isinstance(seeded.seed, int)


def drawn_seed(context: LintContext) -> Iterator[Violation]:
    """Find shuffles and mixtures that draw their seed from the global one (SC013)."""
    drawn = [
        text_of_part(shuffle)
        for _, shuffle in _shuffles(context)
        if shuffle.seed is None and shuffle.buffer != 1
    ]
    drawn += _unseeded_mixtures(context)
    if drawn:
        yield Violation(
            why=f"the seed of {drawn[0]} is drawn from the global one: every random op built "
            "before it changes the order",
            fix="a seed of its own, seed=N",
            settings=("global_seed", "stages"),
        )


def keras_pairs(context: LintContext) -> Iterator[Violation]:
    """Find Keras epochs over a stage that reshuffles, where the length is known (SC014)."""
    for read in context.staged_reads[:1]:
        root = [here for here in context.stages_at(read) if " of " not in here.place]
        length = root[-1].num_left if root else None
        if length is not None and not math.isinf(length) and any(reshuffles(h.stage) for h in root):
            yield Violation(
                why="Keras makes two iterators an epoch, so epochs take every second order: those "
                "of a Python loop differ, and initial_epoch begins anew",
                fix=phrase("steps_per_epoch, {loop=python}, or {ignore=[SC014]} where it is known"),
                settings=("loop",),
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


def unshared_order(context: LintContext) -> Iterator[Violation]:
    """Find `shard` behind an order that hosts do not share (SC036)."""
    settings = context.settings
    for chain in context.stage_chains:
        source = chain.pipeline.source
        files = isinstance(source, Read) and settings.shuffles_files
        open_files = files and settings.shuffle_seed is None and settings.global_seed is None
        timed = settings.deterministic is False or (files and context.races)
        for here in chain.stages(lambda read: None):
            if not isinstance(here.stage, Shard) or here.stage.num_shards == 1:
                continue
            unseeded = [
                stage
                for stage in of_type(here.before, Shuffle)
                if stage.seed is None and stage.buffer != 1 and settings.global_seed is None
            ]
            opaque = of_type(here.before, Opaque)
            if unseeded or opaque or open_files or timed:
                causes = [*map(text_of_part, unseeded), *map(text_of_part, opaque)]
                cause = next(iter(causes), "the files")
                yield Violation(
                    why=f"{here.place}, {text_of_part(here.stage)}: each host has an order of its "
                    f"own behind {cause}, so some examples go to several hosts and others to none",
                    fix="shard before the shuffle, or one seed for all hosts",
                    settings=_STAGES,
                )
