"""SC011 to SC013: what seeds do not do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardctl.core.phrase import Argument, Placeholder, listed, phrase
from shardctl.core.tfds_rules import SEED_MODULUS
from shardctl.planning.lint.context import LintContext
from shardctl.planning.lint.rule import Story, Violation, rule
from shardctl.planning.lint.rules.stages import as_seeds


@rule(
    "SC011",
    "global-seed",
    "warning",
    "a global seed that changes a seeded order",
    story=Story(
        happens="A shuffle draws from two seeds, its own and the global one, also where its own is "
        "given. tf.random.set_seed(N), and keras.utils.set_random_seed(N), which calls it, "
        "therefore change the order of a dataset with an explicit shuffle_seed: two programs that "
        "share the shuffle seed read in different orders when one of them seeds its model.\n\n"
        "The global seed counts at the moment when the dataset is built.",
        source="tensorflow/python/framework/random_seed.py, get_seed; "
        "tensorflow/python/data/util/random_seed.py.",
        fix=phrase(
            "Build the dataset before tf.random.set_seed, which then does not count (leave out "
            "{global_seed}); or keep the global seed fixed as carefully as the shuffle seed, and "
            "{ignore} this finding."
        ),
        example="shardctl lint --shuffle-seed 1 --global-seed 42 -d imagenet2012",
    ),
)
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
    "SC012",
    "equal-seeds",
    "warning",
    "seeds that are equal modulo 2^31 - 1",
    story=Story(
        happens=phrase(
            "TensorFlow takes seeds modulo 2^31 - 1 = 2147483647. Seeds that differ by a "
            "multiple of it are one seed: 0 and 2147483647, -1 and 2147483646. Runs that were "
            "meant to differ then read in the same order. Seeds made from hashes or from the "
            "clock can meet.\n\n"
            "The seeds of several runs are named with {seeds}, or `seeds:` under `lint:` in "
            "shardctl.yaml; a file seed and a buffer seed are compared as well."
        ),
        source="tensorflow/python/framework/random_seed.py, _truncate_seed. 0/15,504 orders over "
        "seeds up to 10^30 differed from this rule.",
        fix="Take seeds from 0 to 2147483646, all different.",
        example="shardctl lint --shuffle-seed 1 --seeds 0,1,2147483647 -d imagenet2012",
    ),
    for_data_source=True,
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


@rule(
    "SC013",
    "drawn-seed",
    "notice",
    "a shuffle whose seed is drawn from the global one",
    story=Story(
        happens="A shuffle without a seed of its own, after tf.random.set_seed, takes the next "
        "number of a generator that every random op without a seed shares. One more such op built "
        "before it, a tf.random.uniform or another shuffle in a library, gives the dataset "
        "another order.",
        source="tensorflow/python/eager/context.py, _internal_operation_seed: Python's generator, "
        "one randint(0, 2^31 - 1) an op.",
        fix=phrase("Give the shuffle its own seed: {shuffle_seed=N}, {buffer_seed=N}."),
        example="shardctl lint --buffer 50000 --global-seed 42 -d imagenet2012",
    ),
)
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
