"""SC011 to SC016: what seeds do not do, and which iterator of a shuffle a later pass reads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from shardctl.base.tfds_rules import SEED_MODULUS
from shardctl.errors import UnpredictableOrderError
from shardctl.stages import stages as ast
from shardctl.stages.text import text_of, text_of_part
from shardctl.tfdata.shuffle_seeds import iterators_per_pass
from shardctl.verbs.lint.chains import count_of, of_type, reshuffles, shuffles
from shardctl.verbs.lint.context import LintContext
from shardctl.verbs.lint.context import Read as LintRead
from shardctl.verbs.lint.rule import Violation, rule

_DIFFERENT = f"seeds from 0 to {SEED_MODULUS - 1}, all different"


@rule("SC011", "global_seed")
def global_seed(context: LintContext) -> Iterator[Violation]:
    """Find a global seed beside a shuffle seed."""
    # A pair of the kernel has the global seed in it.
    own = [one.name for one in context.seeded() if isinstance(one.seed, int)]
    if own and context.settings.global_seed is not None:
        named = " and ".join(dict.fromkeys(own))
        yield Violation(
            f"the order depends on --global-seed as well as on {named}: another "
            "tf.random.set_seed gives another order",
            "build the dataset before tf.random.set_seed, or fix that seed too",
        )


@rule("SC012", "seeds", for_data_source=True)
def equal_seeds(context: LintContext) -> Iterator[Violation]:
    """Find seeds that are one to TensorFlow."""
    yield from _equal_inputs(context)
    settings = context.settings
    for group in _alike(context.usage.seeds, settings.global_seed):
        why = f"seed {group[0]} is there {len(group)} times: these runs have one order"
        if len(set(group)) > 1:
            seeds = ", ".join(map(str, group))
            why = f"seeds {seeds} are one seed modulo {SEED_MODULUS}: their runs have one order"
        yield Violation(why, _DIFFERENT)
    both = (settings.shuffle_seed, settings.buffer_seed)
    if None in both or both[0] == both[1] or not settings.shuffles_files:
        return
    pair = [seed for seed in both if seed is not None]
    if list(_alike(pair, settings.global_seed)):
        seeded = f"--shuffle-seed {pair[0]} and --buffer-seed {pair[1]}"
        names = ("buffer_seed", "shuffle_seed")
        why = f"{seeded} are one seed modulo {SEED_MODULUS}: both shuffles draw the same numbers"
        yield Violation(why, _DIFFERENT, settings=names)


def _equal_inputs(context: LintContext) -> Iterator[Violation]:
    """Find inputs of a mixture that read the same in the same order."""
    for chain in context.chains:
        source = chain.pipeline.source
        if not isinstance(source, ast.SampleFromDatasets | ast.ChooseFromDatasets):
            continue
        seen: dict[ast.Pipeline, int] = {}
        for index, one in enumerate(source.inputs):
            if not any(map(shuffles, one.stages)) or not isinstance(one.source, ast.Read):
                continue
            first = seen.setdefault(one, index)
            seeded = all(stage.seed is not None for stage in of_type(one.stages, ast.Shuffle))
            if first != index and seeded:
                yield Violation(
                    f"inputs {first} and {index} of {source.name} are {text_of(one)} both: "
                    "their examples come twice, in one order",
                    "a seed of its own for each input",
                    settings=("stages",),
                )


def _alike(seeds: Sequence[int], global_seed: int | None) -> Iterator[list[int]]:
    if len(seeds) < 2:
        return
    from shardctl.tfdata.shuffle_seeds import shuffle_kernel_seeds  # loads numpy

    groups: dict[object, list[int]] = {}
    for seed in seeds:
        groups.setdefault(shuffle_kernel_seeds(seed, global_seed), []).append(seed)
    yield from (group for group in groups.values() if len(group) > 1)


@rule("SC013", "global_seed")
def drawn_seed(context: LintContext) -> Iterator[Violation]:
    """Find a shuffle whose seed depends on what was built before it."""
    unseeded = [one.fix for one in context.seeded() if one.seed is None]
    if unseeded and context.settings.global_seed is not None:
        yield Violation(
            "a seed is drawn from the global one: every random op built before the shuffle "
            "changes the order",
            " and ".join(unseeded),
        )


@rule("SC014", "loop")
def keras_pairs(context: LintContext) -> Iterator[Violation]:
    """Find Keras epochs over a shuffle that reshuffles."""
    if context.settings.loop == "keras-fit" and _reshuffles(context):
        yield Violation(
            "Keras makes two iterators an epoch, so epochs take every second order: those of a "
            "Python loop differ, and initial_epoch begins anew",
            "steps_per_epoch, --loop python, or --ignore SC014 where it is known",
        )


def _reshuffles(context: LintContext) -> bool:
    """Whether the shuffle on top gives each iterator an order, of a length that Keras knows.

    Where the length is unknown or has no end Keras makes an iterator an epoch.
    """
    pipeline = context.chains[0].pipeline
    read = next(iter(context.trained), None)
    count = count_of(pipeline, lambda source: context.count_of_read(source, read))
    if count is None or math.isinf(count):
        return False
    if any(map(reshuffles, pipeline.stages)):
        return True
    return context.reshuffles_files and not of_type(pipeline.stages, ast.Shuffle)


@rule("SC015", "pass", "epochs")
def extra_iterator(context: LintContext) -> Iterator[Violation]:
    """Find a later pass after a repeat that makes an iterator more, parted from its shuffle."""
    settings = context.settings
    if not settings.pass_index or settings.loop != "python":
        return
    for here in context.stages_at(None):
        repeat, before = here.stage, here.before
        if not isinstance(repeat, ast.Repeat) or repeat.count is None or repeat.count < 2:
            continue
        if any(map(reshuffles, before)) and not isinstance(before[-1], ast.Shuffle):
            what = f"the shuffle, which {text_of_part(before[-1])} parts it from"
        elif of_type(before, ast.Shuffle) or not context.reshuffles_files_of(here.source):
            continue
        else:
            what = "the file shuffle"
        who = f"{here}," if context.writes_stages else f"a pass of {repeat.count:,} epochs"
        index = settings.pass_index
        yield Violation(
            f"{who} makes {repeat.count + 1:,} iterators of {what}: pass {index:,} begins "
            f"{index:,} orders later",
            "iterate the dataset once an epoch, or count so when you compare",
        )


@rule("SC016", "epochs", "loop")
def racy_pass(context: LintContext) -> Iterator[Violation]:
    """Find later passes that no seed fixes."""
    settings = context.settings
    if not context.reshuffles_files:
        return
    if settings.is_endless:
        if settings.pass_index:
            yield Violation(
                "where the endless pass before was cut leaves the order of the files to timing",
                "build the dataset anew, which is pass 0",
                settings=("pass", "repeat_files"),
            )
        return
    for read in context.trained if settings.loop == "keras-fit" and context.knows_length else ():
        try:
            iterators_per_pass(
                settings.epochs,
                fused=False,
                loop=settings.loop,
                under_shuffle=settings.buffer is not None,
                partial_last_batch=_ends_in_part(context, read),
            )
        except UnpredictableOrderError:
            yield Violation(
                f"each Keras epoch repeats the dataset {settings.epochs:,} times, and from the "
                "second on timing decides the order of the files",
                "fit(epochs=k) in place of ds.repeat(k)",
                read,
            )


def _ends_in_part(context: LintContext, read: LintRead) -> bool:
    settings = context.settings
    if settings.batch is None or settings.drop_remainder:
        return False
    total = sum(piece.num_examples for piece in context.ranges_of_host(read))
    stride, phase = context.host_mode.stride_and_phase(context.host)
    return len(range(phase, total, stride)) * settings.epochs % settings.batch > 0
