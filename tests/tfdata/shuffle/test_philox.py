"""Philox: the published vectors, TensorFlow's own generator, and random access."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardctl.errors import UsageError
from shardctl.tfdata.philox import philox_samples
from tests.tfdata.shuffle.shuffle_oracles import philox_block

# Random123 1.14, tests/kat_vectors, "philox4x32 10": counter words, key words, result.
PUBLISHED = [
    ("00000000 " * 4, "00000000 " * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff " * 4, "ffffffff " * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        "243f6a88 85a308d3 13198a2e 03707344",
        "a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]

words_64 = st.one_of(
    st.sampled_from([0, 1, 2**32 - 1, 2**32, 2**64 - 1]), st.integers(0, 2**64 - 1)
)


def _words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


def _pair(low: int, high: int) -> int:
    return high << 32 | low


@pytest.mark.parametrize(("counter", "key", "result"), PUBLISHED)
def test_samples_are_those_published(counter: str, key: str, result: str) -> None:
    c, k = _words(counter), _words(key)
    seed, seed2, block = _pair(*k), _pair(*c[2:]), _pair(*c[:2])
    assert list(philox_block(seed, seed2, block)) == _words(result)
    assert philox_samples(seed, seed2, 4 * block, 4).tolist() == _words(result)


@settings(max_examples=60, deadline=None)
@given(words_64, words_64, st.integers(0, 2**64 - 100), st.integers(1, 300))
def test_samples_are_those_of_tensorflows_generator(
    seed: int, seed2: int, block: int, count: int
) -> None:
    import tensorflow as tf

    state = [word - (word >> 63 << 64) for word in (block, seed2, seed)]
    generator = tf.random.Generator.from_state(state, alg="philox")
    expected = generator.uniform_full_int([count], dtype=tf.uint32).numpy()
    assert philox_samples(seed, seed2, 4 * block, count).tolist() == expected.tolist()


@given(words_64, words_64, st.integers(0, 2**66 - 100), st.integers(0, 99))
def test_any_part_of_a_stream_is_its_blocks_cut(
    seed: int, seed2: int, start: int, count: int
) -> None:
    blocks = range(start // 4, (start + count) // 4 + 1)
    stream = [sample for block in blocks for sample in philox_block(seed, seed2, block)]
    samples = philox_samples(seed, seed2, start, count)
    assert samples.tolist() == stream[start % 4 : start % 4 + count]
    assert samples.dtype == "uint32"


def test_a_long_part_is_its_short_parts_joined() -> None:
    whole = philox_samples(5, 6, 3, 200_000)
    for start in (0, 65_532, 65_533, 131_069, 199_990):
        assert philox_samples(5, 6, 3 + start, 10).tolist() == whole[start : start + 10].tolist()


@pytest.mark.parametrize(
    ("seed", "seed2", "start", "count"),
    [(-1, 0, 0, 1), (0, 2**64, 0, 1), (0, 0, -1, 1), (0, 0, 0, -1), (0, 0, 2**66, 1)],
)
def test_what_is_outside_the_stream_is_refused(
    seed: int, seed2: int, start: int, count: int
) -> None:
    with pytest.raises(UsageError):
        philox_samples(seed, seed2, start, count)
