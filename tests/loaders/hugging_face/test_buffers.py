"""Shuffle buffers, beside the loops of the library that they stand for."""

from __future__ import annotations

from itertools import zip_longest
from random import Random

import numpy as np
import pytest

from shardctl.loaders.hugging_face import by_halves, in_turn, one_for_one


def replaced(stream: list[int], size: int, rng: np.random.Generator) -> list[int]:
    """`BufferShuffledExamplesIterable.__iter__` of datasets 4.8."""
    drawn: list[int] = []
    held: list[int] = []
    out: list[int] = []
    for example in stream:
        if len(held) < size:
            held.append(example)
            continue
        drawn = drawn or rng.integers(0, size, size=1000).tolist()
        place = drawn.pop(0)
        out.append(held[place])
        held[place] = example
    rng.shuffle(held)
    return out + held


def halved(blocks: list[list[int]], size: int, rng: np.random.Generator) -> list[int]:
    """`BufferShuffledExamplesIterable._iter_arrow` of datasets 5.2, a block a table."""
    held: list[int] = []
    out: list[int] = []
    for block in blocks:
        held += block
        if len(held) >= size:
            mixed = [held[place] for place in rng.permutation(len(held))]
            count = len(held) - size // 2
            out += mixed[:count]
            held = mixed[count:]
    return out + [held[place] for place in rng.permutation(len(held))] if held else out


@pytest.mark.parametrize("seed", range(40))
def test_buffers_do_what_the_loops_do(seed: int) -> None:
    random = Random(seed)
    stream = list(range(random.choice((0, 1, 2, 30, 999, 2500))))
    size = random.choice((1, 2, 3, 10, 100, 1000, 3000))
    expected = replaced(stream, size, np.random.default_rng(seed))
    assert one_for_one(np.array(stream), size, np.random.default_rng(seed)).tolist() == expected

    ends = sorted({*random.choices(range(1, len(stream) + 1), k=9), len(stream)} if stream else [])
    starts = [0, *ends[:-1]]
    blocks = [stream[start:end] for start, end in zip(starts, ends, strict=False)]
    lengths = np.array([len(block) for block in blocks], np.int64)
    for of_library, ours in ((blocks, lengths), ([[one] for one in stream], None)):
        expected = halved(of_library, size, np.random.default_rng(seed))
        found = by_halves(np.array(stream, np.int64), ours, size, np.random.default_rng(seed))
        assert found.tolist() == expected


@pytest.mark.parametrize("seed", range(20))
def test_streams_are_read_in_turn_until_all_have_ended(seed: int) -> None:
    random = Random(seed)
    block = random.choice((1, 2, 5, 100))
    streams = [[random.random() for _ in range(random.randrange(12))] for _ in range(seed % 5)]
    rounds = zip_longest(
        *([stream[at : at + block] for at in range(0, len(stream), block)] for stream in streams)
    )
    blocks = [piece for turn in rounds for piece in turn if piece]
    order, lengths = in_turn([np.array(stream) for stream in streams], block)
    assert order.tolist() == [example for piece in blocks for example in piece]
    assert lengths.tolist() == [len(piece) for piece in blocks]
