"""A deal of places, beside one that counts them out."""

from __future__ import annotations

import random

import numpy as np

from shardctl.loaders.loader_sequence import Deal, Dealt
from tests.cases import counted
from tests.loaders.agreement import check_agreement


def counted_out(num_hosts: int, block: int, rounds: int) -> list[list[int]]:
    """Return the places of each process, given out block by block."""
    hands: list[list[int]] = [[] for _ in range(num_hosts)]
    for place in range(num_hosts * block * rounds):
        hands[place // block % num_hosts].append(place)
    return hands


def test_places_are_dealt_in_blocks_to_one_after_the_other() -> None:
    rng = random.Random(4)
    for _ in counted(range(100)):
        num_hosts, block, rounds = rng.randrange(1, 6), rng.randrange(1, 5), rng.randrange(4)
        for host, places in enumerate(counted_out(num_hosts, block, rounds)):
            deal = Deal(host=host, num_hosts=num_hosts, block=block, size=len(places))
            assert deal.places(np.arange(len(places))).tolist() == places
            everywhere = np.arange(num_hosts * block * (rounds + 1))
            which, positions = deal.positions(everywhere)
            assert which.tolist() == places
            assert positions.tolist() == list(range(len(places)))


def test_an_epoch_starts_over_where_it_is_too_short_for_the_deal() -> None:
    rng = random.Random(5)
    for _ in counted(range(100)):
        n, num_hosts, block = rng.randrange(1, 30), rng.randrange(1, 6), rng.randrange(1, 5)
        orders = [np.array(rng.sample(range(n), n)) for _ in range(2)]
        rounds = -(-n // (num_hosts * block))
        for host, places in enumerate(counted_out(num_hosts, block, rounds)):
            dealt = Dealt(
                n,
                Deal(host=host, num_hosts=num_hosts, block=block, size=len(places)),
                epochs=2,
                permutation=orders.__getitem__,
                batch=None,
            )
            indices = [[int(order[place % n])] for order in orders for place in places]
            check_agreement(dealt, indices, n, batched=False)
