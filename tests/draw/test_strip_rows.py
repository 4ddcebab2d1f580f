"""Names and hues of the shards that slots read, and where batches and epochs begin."""

from __future__ import annotations

from typing import Any

from shardctl.dataset.dataset import Dataset, Split
from shardctl.order.shard_map import Strips, strips
from shardctl.verbs.simulate.answer import Simulation, simulate
from shardctl.verbs.simulate.picture import epoch_starts, hues_of, shard_name, step_starts
from tests.cases import check_cases, few_or_many
from tests.draw.pictured import dataset, simulations


def visits(*lengths: int, **settings: Any) -> tuple[Strips, Simulation]:
    simulation = simulate(dataset(*lengths), "train", settings, take=None)
    return strips(simulation.order, 0, simulation.take), simulation


def test_a_shard_is_named_after_its_split_where_there_are_several() -> None:
    names = ("train", "a_split_with_a_long_name")
    files = Dataset(name="d", splits=tuple(Split(name=n, shard_lengths=(1,)) for n in names))
    found = strips(simulate(files, "+".join(names)).order, 0, 2)
    assert [shard_name(visit, found, 12) for visit in found.visits] == ["train:0", "a_split_w…:0"]
    alone = strips(simulate(files, "train").order, 0, 1)
    assert [shard_name(visit, alone, 12) for visit in alone.visits] == ["0"]


def test_a_shard_keeps_its_hue_and_a_new_one_differs_from_that_before_it() -> None:
    found, _ = visits(*[2] * 5, cycle=2, block=1)
    # Slot 0: shards 0 0 2 2 4 4; slot 1: 1 1 3 3. Shard 2 would have the hue of shard 0.
    order = [(visit.slot, visit.shard) for visit in found.visits]
    assert order == [
        *((0, 0), (1, 1), (0, 0), (1, 1)),
        *((0, 2), (1, 3), (0, 2), (1, 3)),
        *((0, 4), (0, 4)),
    ]
    assert hues_of(found.visits, 2) == [0, 1, 0, 1, 1, 0, 1, 0, 0, 0]


@few_or_many(25, 100)
def test_epochs_and_batches_begin_where_the_order_says(num_cases: int) -> None:
    def check(simulation: Simulation) -> None:
        order, start, stop = simulation.order, simulation.skip, simulation.skip + simulation.take
        found = strips(order, start, stop, most=100_000)
        if not found.visits:
            return
        epochs = order.epoch_of(range(start, stop)).tolist()
        begun = [
            (at, epochs[at - start])
            for at in range(start, stop)
            if at == start or epochs[at - start] != epochs[at - start - 1]
        ]
        assert epoch_starts(found.visits) == (begun if len(begun) > 1 else [])
        if not order.has_steps:
            assert step_starts(order, start, stop, 10) == []
            return
        steps, places = (column.tolist() for column in order.steps_of(range(start, stop)))
        if steps[-1] - steps[0] >= 10:
            assert step_starts(order, start, stop, 10) is None
        firsts = [
            (at, step)
            for at, step, place in zip(range(start, stop), steps, places, strict=True)
            if place == 0
        ]
        assert step_starts(order, start, stop, 10**6) == firsts

    check_cases(simulations(), check, num_cases)
