"""Lengths and their checksums beside the definition of both."""

from __future__ import annotations

import random

from shardctl.records.tfrecord import NO_LENGTH, Lengths
from tests.cases import counted
from tests.record_files import header


def lengths_of_all_sizes(rng: random.Random) -> list[int]:
    edges = [2**bits + more for bits in range(1, 64) for more in (-1, 0, 1)]
    return [0, *edges, 2**64 - 1, *(rng.randrange(2 ** rng.randrange(1, 65)) for _ in range(300))]


def test_a_header_holds_the_length_that_was_written() -> None:
    rng, lengths = random.Random(1), Lengths()
    for length in counted(lengths_of_all_sizes(rng)):
        written = header(length)
        for _ in range(2):  # as it is verified, and as it is known
            assert lengths[written] == length
        damaged = bytearray(written)
        damaged[rng.randrange(12)] ^= 1 << rng.randrange(8)
        assert lengths[bytes(damaged)] == NO_LENGTH
        assert lengths[written[: rng.randrange(12)]] == NO_LENGTH


def test_few_headers_are_kept(monkeypatch: object) -> None:
    lengths = Lengths()
    for length in range(20_000):
        crc = lengths[header(length)] if length % 100 == 0 else length
        assert crc == length
    assert len(lengths) == 200
    lengths.update({str(number).encode(): 0 for number in range(20_000)})
    num_known = len(lengths)
    assert lengths[header(12_345_678)] == 12_345_678
    assert len(lengths) == num_known
