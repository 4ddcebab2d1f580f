"""SC011 to SC013: what seeds do not do."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from shardctl.core.phrase import Argument, Placeholder, listed, phrase
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.shuffle.passes import iterators_per_pass
from shardctl.core.tfds_rules import SEED_MODULUS
from shardctl.errors import UnpredictableOrderError
from shardctl.planning.lint.chains import reshuffles
from shardctl.planning.lint.context import LintContext, Read
from shardctl.planning.lint.rule import Violation, rule
from shardctl.planning.lint.rules.stages import as_seeds, as_settings


@rule("SC011", "global-seed", "warning", "a global seed that changes a seeded order")
def global_seed(context: LintContext) -> Iterator[Violation]:
    """Find a global seed beside a shuffle seed."""
    settings = context.settings
    if settings.global_seed is None:
        return
    yield from as_seeds.global_seed(context)
    seeded = {
        "shuffle_seed": settings.shuffle_seed if settings.shuffles_files else None,
        "buffer_seed": settings.buffer_seed if settings.buffer not in (None, 1) else None,
    }
    own = [Argument(name) for name, seed in seeded.items() if seed is not None]
    if own:
        yield Violation(
            why=phrase(
                "the order depends on {global_seed} as well as on {}: another tf.random.set_seed "
                "gives another order",
                listed(own),
            ),
            fix="build the dataset before tf.random.set_seed, or fix that seed too",
            settings=("global_seed",),
        )


@rule(
    "SC012", "equal-seeds", "warning", "seeds that are equal modulo 2^31 - 1", for_data_source=True
)
def equal_seeds(context: LintContext) -> Iterator[Violation]:
    """Find seeds that are one to TensorFlow."""
    yield from as_seeds.equal_seeds(context)
    settings = context.settings
    for group in _alike(context.usage.seeds, settings.global_seed):
        several = len(set(group)) > 1
        listed = ", ".join(map(str, group))
        yield Violation(
            why=f"seeds {listed} are one seed modulo {SEED_MODULUS}: their runs have one order"
            if several
            else f"seed {group[0]} is there {len(group)} times: these runs have one order",
            fix=f"seeds from 0 to {SEED_MODULUS - 1}, all different",
            settings=("seeds",),
        )
    both = (settings.shuffle_seed, settings.buffer_seed)
    if None in both or both[0] == both[1] or not settings.shuffles_files:
        return
    pair = [seed for seed in both if seed is not None]
    if list(_alike(pair, settings.global_seed)):
        yield Violation(
            why=phrase(
                "{shuffle_seed=} and {buffer_seed=} are one seed modulo {}: both shuffles draw the "
                "same numbers",
                SEED_MODULUS,
                shuffle_seed=pair[0],
                buffer_seed=pair[1],
            ),
            fix=f"seeds from 0 to {SEED_MODULUS - 1}, all different",
            settings=("buffer_seed", "shuffle_seed"),
        )


def _alike(seeds: Sequence[int], global_seed: int | None) -> Iterator[list[int]]:
    if len(seeds) < 2:
        return
    from shardctl.core.shuffle.seeds import shuffle_kernel_seeds  # loads numpy

    groups: dict[object, list[int]] = {}
    for seed in seeds:
        groups.setdefault(shuffle_kernel_seeds(seed, global_seed), []).append(seed)
    yield from (group for group in groups.values() if len(group) > 1)


@rule("SC013", "drawn-seed", "notice", "a shuffle whose seed is drawn from the global one")
def drawn_seed(context: LintContext) -> Iterator[Violation]:
    """Find a shuffle whose seed depends on what was built before it."""
    settings = context.settings
    if settings.global_seed is None:
        return
    yield from as_seeds.drawn_seed(context)
    unseeded = []
    if settings.shuffles_files and settings.shuffle_seed is None:
        unseeded.append(Argument("shuffle_seed", Placeholder("N")))
    if settings.buffer not in (None, 1) and settings.buffer_seed is None:
        unseeded.append(Argument("buffer_seed", Placeholder("N")))
    if unseeded:
        yield Violation(
            why="a seed is drawn from the global one: every random op built before the shuffle "
            "changes the order",
            fix=listed(unseeded),
            settings=("global_seed",),
        )


# SC014 to SC016: which iterator of a shuffle an epoch or a later pass reads.


@rule("SC014", "keras-pairs", "notice", "Keras epochs that skip every second order")
def keras_pairs(context: LintContext) -> Iterator[Violation]:
    """Find Keras epochs over a shuffle that reshuffles."""
    settings = context.settings
    if settings.loop == "keras-fit" and _reshuffles(context):
        yield Violation(
            why="Keras makes two iterators an epoch, so epochs take every second order: those of "
            "a Python loop differ, and initial_epoch begins anew",
            fix=phrase("steps_per_epoch, {loop=python}, or {ignore=[SC014]} where it is known"),
            settings=("loop",),
        )


def _reshuffles(context: LintContext) -> bool:
    """Whether the shuffle on top gives each iterator an order, of a length that Keras knows.

    Where the length is unknown or has no end Keras makes an iterator an epoch.
    """
    if context.stage_chains and context.buffers:
        every = (here for read in context.staged_reads[:1] for here in context.stages_at(read))
        root = [here for here in every if " of " not in here.place]
        is_known = bool(root) and root[-1].num_left not in (None, math.inf)
        return is_known and any(reshuffles(here.stage) for here in root)
    if context.repeats_files() or not context.knows_length:
        return False
    buffer = context.buffers and context.settings.buffer_reshuffle is not False
    return buffer or (context.reshuffles_files and context.settings.buffer is None)


@rule("SC015", "extra-iterator", "notice", "a later pass that begins an order late")
def extra_iterator(context: LintContext) -> Iterator[Violation]:
    """Find a later pass after a repeat that makes an iterator more."""
    if context.stage_chains:
        yield from as_settings.extra_iterator(context)
        return
    settings = context.settings
    if not settings.pass_index or settings.epochs < 2 or context.repeats_files():
        return
    if settings.loop == "python" and settings.buffer is None and context.reshuffles_files:
        iterators = _of_files_per_pass(settings, partial=False)
        yield Violation(
            why=f"a pass of {settings.epochs:,} epochs makes {iterators:,} iterators of the file "
            f"shuffle: pass {settings.pass_index:,} begins {settings.pass_index:,} later",
            fix="iterate the dataset once an epoch, or count so when you compare",
            settings=("pass", "epochs"),
        )


def _of_files_per_pass(settings: ReadSettings, *, partial: bool) -> int:
    return iterators_per_pass(
        settings.epochs,
        fused=False,
        loop=settings.loop,
        under_shuffle=settings.buffer is not None,
        partial_last_batch=partial,
    )


@rule("SC016", "racy-pass", "warning", "later passes whose order timing decides")
def racy_pass(context: LintContext) -> Iterator[Violation]:
    """Find later passes that no seed fixes."""
    settings = context.settings
    if context.repeats_files():
        if settings.pass_index and context.reshuffles_files:
            yield Violation(
                why="where the endless pass before was cut leaves the order of the files to timing",
                fix="build the dataset anew, which is pass 0",
                settings=("pass", "repeat_files"),
            )
        return
    if settings.loop != "keras-fit" or not (context.knows_length and context.reshuffles_files):
        return
    for read in context.trained:
        try:
            _of_files_per_pass(settings, partial=_ends_in_part(context, read))
        except UnpredictableOrderError:
            yield Violation(
                why=f"{read.spec}: each Keras epoch repeats the dataset {settings.epochs:,} times, "
                "and from the second on timing decides the order of the files",
                fix="fit(epochs=k) in place of ds.repeat(k)",
                specs=(read.spec,),
                settings=("epochs", "loop"),
            )


def _ends_in_part(context: LintContext, read: Read) -> bool:
    settings = context.settings
    if settings.batch is None or settings.drop_remainder:
        return False
    total = sum(piece.num_examples for piece in context.ranges_of_host(read))
    stride, phase = context.host_mode.stride_and_phase(context.host)
    return len(range(phase, total, stride)) * settings.epochs % settings.batch > 0
