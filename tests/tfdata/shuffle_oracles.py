"""What TensorFlow's own shuffles yield, and slow answers that share no formula with the code."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from shardctl.base.tfds_rules import PHILOX_KEY_STEPS, PHILOX_MULTIPLIERS, PHILOX_ROUNDS
from shardctl.tfdata.shuffle_seeds import KernelSeeds, ScriptSeeds, SeedGenerator

EDGE_SEEDS = [0, 1, -1, 2**31 - 2, 2**31 - 1, 2**31, 1 - 2**31, 2 * (2**31 - 1), 7 * (2**31 - 1)]
EDGE_SEEDS += [2**32, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, -(10**31), 10**400]


@contextmanager
def global_seed(seed: int | None) -> Iterator[None]:
    """Set TensorFlow's global seed for a while."""
    import tensorflow as tf

    tf.random.set_seed(seed)
    try:
        yield
    finally:
        tf.random.set_seed(None)


def tf_order(
    num_elements: int,
    buffer_size: int,
    op_seed: int | None,
    *,
    reshuffle: bool | None = False,
    iterator_index: int = 0,
    stop: int | None = None,
) -> list[int]:
    """Return what iterator `iterator_index` of a shuffled range hands out."""
    import tensorflow as tf

    dataset = tf.data.Dataset.range(num_elements).shuffle(
        buffer_size, seed=op_seed, reshuffle_each_iteration=reshuffle
    )
    if stop is not None:
        dataset = dataset.take(stop)
    dataset = dataset.batch(min(max(num_elements, 1), 1 << 16))
    for _ in range(iterator_index):
        iter(dataset)
    return [element for batch in dataset for element in batch.numpy().tolist()]


def iterator_seeds(
    op_seed: int | None,
    global_seed: int | None,
    reshuffle: bool | None,
    iterator_index: int,
    *,
    op_index: int = 0,
) -> KernelSeeds:
    """Return the seeds that an iterator of a shuffle draws from."""
    script = ScriptSeeds(global_seed)
    for _ in range(op_index):
        script.kernel(None)
    generator = SeedGenerator(script.kernel(op_seed), reshuffle, stage="shuffle")
    return generator.seeds_of(iterator_index)


def philox_block(seed: int, seed2: int, block: int) -> tuple[int, int, int, int]:
    """Return the four 32-bit samples of one block, in plain Python.

    The key is `seed` and the counter is (block, seed2), each 64 bits with the low word first, as
    TensorFlow sets them (tsl/lib/random/philox_random.h).

    >>> [f"{sample:08x}" for sample in philox_block(0, 0, 0)]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    seed, seed2, block = int(seed), int(seed2), int(block)
    key_0, key_1 = seed & 0xFFFFFFFF, seed >> 32
    x0, x1, x2, x3 = block & 0xFFFFFFFF, block >> 32, seed2 & 0xFFFFFFFF, seed2 >> 32
    (multiplier_0, multiplier_1), (step_0, step_1) = PHILOX_MULTIPLIERS, PHILOX_KEY_STEPS
    for _ in range(PHILOX_ROUNDS):
        low, high = x0 * multiplier_0, x2 * multiplier_1
        x0, x1 = (high >> 32) ^ x1 ^ key_0, high & 0xFFFFFFFF
        x2, x3 = (low >> 32) ^ x3 ^ key_1, low & 0xFFFFFFFF
        key_0, key_1 = (key_0 + step_0) & 0xFFFFFFFF, (key_1 + step_1) & 0xFFFFFFFF
    return x0, x1, x2, x3


def interleave_by_hand(lengths: Sequence[int], cycle: int, block: int) -> list[tuple[int, int]]:
    """Return the (shard, offset) that an interleave yields, by playing the machine.

    >>> interleave_by_hand([2, 1], 2, 1)
    [(0, 0), (1, 0), (0, 1)]
    """
    waiting = deque(
        deque((shard, offset) for offset in range(length)) for shard, length in enumerate(lengths)
    )
    slots: list[deque[tuple[int, int]] | None] = [None] * cycle
    order = []
    turn = 0
    while waiting or any(contents is not None for contents in slots):
        if slots[turn] is None and waiting:
            slots[turn] = waiting.popleft()
        contents = slots[turn]
        if contents is not None:
            for _ in range(block):
                if not contents:
                    slots[turn] = None
                    break
                order.append(contents.popleft())
        turn = (turn + 1) % cycle
    return order
