"""What the rules about seeds find where a pipeline is written as stages that no settings mean.

Each function belongs to a rule that has the code and the story; see where it is called.
"""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.phrase import phrase
from shardctl.core.stages.stages import (
    ChooseFromDatasets,
    Opaque,
    Pipeline,
    Read,
    SampleFromDatasets,
    Shard,
    Shuffle,
)
from shardctl.core.stages.text import text_of, text_of_part
from shardctl.planning.lint.chains import of_type, shuffles
from shardctl.planning.lint.context import LintContext
from shardctl.planning.lint.rule import Violation
from shardctl.planning.lint.rules.stages.as_settings import shuffles_of

_STAGES = ("stages",)


def no_seed(context: LintContext) -> Iterator[Violation]:
    """Find shuffles and mixtures that the machine seeds (SC006)."""
    for here, shuffle in shuffles_of(context):
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


def global_seed(context: LintContext) -> Iterator[Violation]:
    """Find shuffles and mixtures whose seed counts together with the global one (SC011)."""
    seeded = [text_of_part(shuffle) for _, shuffle in shuffles_of(context) if _is_own(shuffle)]
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
        for _, shuffle in shuffles_of(context)
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


def equal_seeds(context: LintContext) -> Iterator[Violation]:
    """Find inputs of a mixture that read the same in the same order (SC012)."""
    for chain in context.stage_chains:
        source = chain.pipeline.source
        if not isinstance(source, SampleFromDatasets | ChooseFromDatasets):
            continue
        seen: dict[Pipeline, int] = {}
        for index, one in enumerate(source.inputs):
            if not any(map(shuffles, one.stages)) or not isinstance(one.source, Read):
                continue
            first = seen.setdefault(one, index)
            if first != index and all(
                stage.seed is not None for stage in of_type(one.stages, Shuffle)
            ):
                yield Violation(
                    why=f"inputs {first} and {index} of {source.name} are {text_of(one)} both: "
                    "their examples come twice, in one order",
                    fix="a seed of its own for each input",
                    settings=_STAGES,
                )
