"""PyTorch's loaders: its generator, what ranks are dealt, and what each loader refuses."""

from __future__ import annotations

import random
from itertools import chain
from typing import Any

import numpy as np
import pytest

from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.loaders.loader import LOADERS
from shardctl.loaders.loader_sequence import Deal, Dealt, LoaderSequence
from shardctl.loaders.torch_generator import Generator, check_seed, num_draws
from tests.cases import counted
from tests.golden import assert_evaluated
from tests.loaders.agreement import check_agreement
from tests.loaders.recorded import config_of


def sequence(loader: str, version: str = "", **settings: Any) -> LoaderSequence:
    return LOADERS[loader].sequence(config_of(loader, {"n": 9, **settings}, version))


def order(loader: str, version: str = "", **settings: Any) -> list[int]:
    found = sequence(loader, version, **settings)
    indices: list[int] = found.indices_at(np.arange(found.num_examples)).tolist()
    return indices


def swapped_one_by_one(num_elements: int, seed: int, skip: int) -> list[int]:
    bits = np.random.MT19937()
    np.random.RandomState(bits).seed(seed & 0xFFFFFFFF)
    drawn = bits.random_raw(skip + num_elements).tolist()[skip:]
    order = list(range(num_elements))
    for place in range(num_elements - 1):
        other = place + drawn[place] % (num_elements - place)
        order[place], order[other] = order[other], order[place]
    return order


def test_the_first_draws_are_those_of_the_reference_implementation() -> None:
    """Of `init_genrand(5489)` in mt19937ar.c, whose 10,000th number is in the standard of C++."""
    assert Generator(5489).draws(0, 2).tolist() == [3499211612, 581869302]
    assert Generator(5489).draws(9999, 10000).tolist() == [4123659995]


def test_a_permutation_is_that_of_swaps_one_by_one() -> None:
    rng = random.Random(3)
    sizes = [0, 1, 2, 3, 4, 100, 32767, 32768, 32769, *(rng.randrange(5, 400) for _ in range(40))]
    for size in counted(sizes):
        seed, skip = rng.randrange(-(1 << 63), 1 << 64), rng.choice([0, 0, 1, 7, 3 * size])
        found = Generator(seed).seek(skip).randperm(size)
        assert found.tolist() == swapped_one_by_one(size, seed, skip)


def test_draws_are_the_same_in_whatever_order_they_are_asked_for() -> None:
    generator = Generator(7)
    drawn = generator.draws(0, 60).tolist()
    for start, stop in ((50, 60), (3, 5), (5, 5), (5, 9), (40, 41), (0, 60)):
        assert generator.draws(start, stop).tolist() == drawn[start:stop]


def test_a_number_of_64_bits_is_two_draws_the_first_of_them_on_top() -> None:
    high, low = Generator(9).draws(4, 6).tolist()
    assert Generator(9).seek(4).int64() == (high * 2**32 + low) % 2**63


def test_seeds_count_by_their_last_32_bits() -> None:
    orders = [Generator(seed).randperm(9).tolist() for seed in (-1, 2**32 - 1, 2**64 - 1)]
    assert orders[0] == orders[1] == orders[2] != Generator(1).randperm(9).tolist()
    assert check_seed(2**64 - 1, "it") == 2**64 - 1
    with pytest.raises(UsageError, match=f"^it is {2**64}, which torch refuses as a seed"):
        check_seed(2**64, "it")


def test_what_takes_too_much_memory_or_time_is_refused() -> None:
    with pytest.raises(UsageError, match=r"134,217,728 are refused; read fewer of them"):
        Generator(1).randperm((1 << 27) + 1)
    with pytest.raises(UsageError, match=r"more than a day is refused; ask for an earlier epoch"):
        Generator(1).draws(10**15, 10**15 + 1)
    assert num_draws(0) == num_draws(1) == 0


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


@pytest.mark.parametrize(("start", "size", "batch"), [(3, 5, 2), (0, 4, None), (0, 0, None)])
def test_a_run_is_its_indices_in_each_epoch(start: int, size: int, batch: int | None) -> None:
    step = batch or size or 1
    ends = range(start, start + size, step)
    batches = [list(range(at, min(at + step, start + size))) for at in ends]
    deal = Deal(first=start, size=size)
    run = Dealt(12, deal, epochs=2, permutation=None, batch=batch)
    check_agreement(run, batches * 2, 12 if size else 0, batched=batch is not None)
    assert run.epochs_at(np.arange(size * 2)).tolist() == [0] * size + [1] * size


@pytest.mark.parametrize(
    "settings",
    [
        {"n": 11, "global_seed": 5, "shuffle": True},
        {"n": 11, "seed": 5},
        {"n": 11, "seed": 5, "shares": True, "host": 1, "num_hosts": 2},
    ],
)
def test_a_pass_of_several_epochs_is_those_epochs_one_after_the_other(settings: Any) -> None:
    single = [order("torch", **settings, first_epoch=epoch) for epoch in (1, 2, 3)]
    together = sequence("torch", **settings, first_epoch=1, epochs=3)
    assert order("torch", **settings, first_epoch=1, epochs=3) == [*chain(*single)]
    assert together.epoch_size == len(single[0])
    positions = np.arange(together.num_examples)
    assert together.epochs_at(positions).tolist() == np.repeat(range(3), len(single[0])).tolist()
    for workers in range(4):
        assert order("torch", **settings, workers=workers) == order("torch", **settings)


def test_whether_it_shuffles() -> None:
    assert sequence("torch", seed=5).is_uniform
    assert not sequence("torch", seed=5, shuffle=False).shuffles
    assert not sequence("torch", global_seed=5).shuffles


def test_the_default_of_the_trainer_is_said_and_that_of_accelerate_itself_is_torchs() -> None:
    (said,) = sequence("accelerate", batch=2, seed=1).assumptions
    assert "Accelerator() alone has another order, which --shuffle with --global-seed N" in said
    given: dict[str, Any] = {"batch": 2, "global_seed": 1, "shuffle": True, "epochs": 2}
    assert sequence("accelerate", **given).assumptions == ()
    assert order("accelerate", **given) == order("torch", **given)
    # What Accelerator.prepare yielded to two processes that torchrun started (torch 2.13.0).
    of_two: dict[str, Any] = {
        "n": 37,
        "batch": 4,
        "global_seed": 11,
        "shuffle": True,
        "shares": True,
    }
    ranks = [order("accelerate", **of_two, num_hosts=2, host=rank)[:6] for rank in range(2)]
    assert ranks == [[25, 35, 15, 29, 10, 19], [0, 4, 32, 9, 16, 6]]


@pytest.mark.parametrize(("epochs", "workers", "said"), [(1, 2, 0), (2, 2, 1), (2, 0, 0)])
@pytest.mark.parametrize("loader", ["torch", "stateful", "accelerate"])
def test_that_workers_end_is_assumed_where_it_counts(
    loader: str, epochs: int, workers: int, said: int
) -> None:
    given: dict[str, Any] = {
        "global_seed": 1,
        "shuffle": True,
        "batch": 3,
        "epochs": epochs,
        "workers": workers,
    }
    assert len(sequence(loader, **given).assumptions) == said
    for stays in (True, False) if workers else ():
        assert sequence(loader, **given, persistent_workers=stays).assumptions == ()


MOST = (1 << 64) - 1


def test_what_a_library_refuses_or_leaves_open_is_refused() -> None:
    assert_evaluated(globals(), "refused")
    for loader in ("torch", "stateful", "accelerate"):
        with pytest.raises(UnpredictableOrderError):
            sequence(loader, batch=2, shuffle=True)


def test_the_last_seed_that_torch_takes_is_taken() -> None:
    assert sequence("torch", seed=MOST - 1, shares=True, epochs=2).num_examples == 18
