"""Grain's shuffle of an index, beside what the real one returned, and its inverse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.loaders.grain_shuffle import (
    block_bits,
    is_permutation,
    shuffled,
    unshuffled,
)
from tests.cases import counted

RECORDED = sorted(Path(__file__).parent.glob("recorded_*.json"))


def shuffles(file: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["shuffles"]
    return found


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_an_index_becomes_the_example_that_the_real_shuffle_returned(file: Path) -> None:
    for one in counted(shuffles(file)):
        indices, seeds = np.array(one["indices"]), np.array([one["seed"]])
        size = one["num_examples"]
        assert shuffled(indices, seeds, size).tolist() == one["examples"]
        each = np.repeat(seeds, len(indices))
        assert shuffled(indices, each, size).tolist() == one["examples"]


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_an_example_is_found_where_the_real_shuffle_has_it(file: Path) -> None:
    for one in counted(shuffles(file)):
        examples, seeds = np.array(one["examples"]), np.array([one["seed"]])
        query, found = unshuffled(examples, seeds, one["num_examples"])
        for number, index in enumerate(one["indices"]):
            assert index in found[query == number]
        again = shuffled(found, seeds, one["num_examples"])
        assert again.tolist() == examples[query].tolist()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100, 4095, 4096, 4097, 65535, 65536, 65538, 70000])
def test_all_indices_become_all_examples_and_back(size: int) -> None:
    seeds = np.array([20261122])
    there = shuffled(np.arange(size), seeds, size)
    assert is_permutation(size)
    assert np.array_equal(np.sort(there), np.arange(size))
    query, back = unshuffled(np.arange(size), seeds, size)
    assert np.array_equal(there[back], query)
    assert np.array_equal(np.sort(query), np.arange(size))


@pytest.mark.long
@pytest.mark.parametrize("size", [65537, 262145])
def test_the_last_of_4_to_the_k_and_1_examples_is_lost_and_the_first_comes_twice(size: int) -> None:
    seeds = np.array([7])
    there = shuffled(np.arange(size), seeds, size)
    assert not is_permutation(size)
    assert there[0] == there[-1]
    assert np.array_equal(np.unique(there), np.arange(size - 1))
    query, back = unshuffled(np.arange(size), seeds, size)
    assert size - 1 not in query
    assert sorted(back[query == there[0]].tolist()) == [0, size - 1]
    assert np.array_equal(there[back], query)
    assert len(back) == size


def test_each_query_may_have_a_seed_of_its_own() -> None:
    for size in (6, 5000, 65537):
        indices, seeds = np.arange(size)[-6:], np.array([3, 3, 9, 1, 9, 2**32 - 1])
        alone = [
            shuffled(indices[at : at + 1], seeds[at : at + 1], size).tolist()[0] for at in range(6)
        ]
        assert shuffled(indices, seeds, size).tolist() == alone
        query, back = unshuffled(np.array(alone), seeds, size)
        assert all(indices[at] in back[query == at] for at in range(6) if alone[at] < size)


def test_the_cipher_has_an_even_number_of_bits_16_at_least() -> None:
    sizes = (1, 2, 65536, 65537, 65538, 2**18, 2**18 + 1, 2**18 + 2, 10**9)
    assert [block_bits(size) for size in sizes] == [16, 16, 16, 16, 18, 18, 18, 20, 30]


def test_a_billion_examples_are_found_without_a_list_of_them() -> None:
    examples = np.array([0, 5, 10**9 - 1])
    query, back = unshuffled(examples, np.array([7]), 10**9)
    assert query.tolist() == [0, 1, 2]
    assert shuffled(back, np.array([7]), 10**9).tolist() == examples.tolist()
