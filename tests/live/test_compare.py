"""The first difference between an order and what a loader hands out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shardctl.live.process import in_pieces
from shardctl.live.verify import first_difference
from shardctl.order.loader_order import LoaderOrder
from shardctl.order.plan_order import plan_order
from shardctl.verbs.verify.answer import FirstDifference
from tests.live import toy_loaders


def order_of(num_examples: int, **settings: Any) -> LoaderOrder:
    settings = {"loader": "torch", "loader_version": "2.13.0", **settings}
    order = plan_order("mnist", f"train[100:{100 + num_examples}]", settings).order
    assert isinstance(order, LoaderOrder)
    return order


def difference(
    order: LoaderOrder, toy: type, take: int | None = None, **more: Any
) -> FirstDifference | None:
    pieces = in_pieces(toy(order.loader).batches(order.config, range(order.config.num_examples)))
    return first_difference(order, pieces, take or order.num_examples, **more)


@pytest.mark.parametrize(
    "settings",
    [{}, {"batch": 4}, {"batch": 4, "drop_remainder": True, "epochs": 3}, {"epochs": 2}],
)
def test_an_order_that_is_as_predicted_has_none(settings: dict[str, Any]) -> None:
    order = order_of(10, **settings)
    assert difference(order, toy_loaders.InOrder) is None
    assert difference(order, toy_loaders.InOrder, 3) is None


def test_the_first_example_that_differs_is_named_by_its_id() -> None:
    name = "mnist-train.tfrecord-00000-of-00001__"
    assert difference(order_of(10), toy_loaders.Swapped) == FirstDifference(
        position=2,
        expected=102,
        found=103,
        expected_tfds_id=f"{name}102",
        found_tfds_id=f"{name}103",
        read="index ranges",
    )
    assert difference(order_of(10), toy_loaders.Swapped, 2) is None


def test_batches_of_another_size_differ_where_the_shorter_ends() -> None:
    found = difference(order_of(10, batch=4), toy_loaders.InOnes)
    assert found is not None
    assert (found.position, found.reason) == (1, "batch 0 has 1 example, and 4 were predicted")
    assert difference(order_of(10, batch=1), toy_loaders.InOnes) is None
    assert difference(order_of(10), toy_loaders.InOnes) is None  # nothing is said of batches


def test_an_order_that_goes_on_differs_at_its_end() -> None:
    found = difference(order_of(10, batch=4), toy_loaders.Endless)
    assert found is not None
    assert (found.position, found.expected, found.found) == (10, None, 100)
    assert difference(order_of(10, batch=4), toy_loaders.Endless, 9) is None


def test_an_order_that_ends_early_differs_there() -> None:
    found = difference(order_of(10, epochs=3), toy_loaders.Swapped, 1)
    assert found is None
    short = first_difference(order_of(10), in_pieces(iter([np.arange(9)])), 10)
    assert short is not None
    assert (short.position, short.expected, short.found) == (9, 109, None)


def test_where_a_library_gives_up_it_is_quoted() -> None:
    found = difference(order_of(10), toy_loaders.Raises)
    assert found is not None
    assert (found.position, found.expected, found.found) == (3, 103, None)
    assert found.reason == "no more"
    assert difference(order_of(10), toy_loaders.Raises, 3) is None


def test_a_record_that_is_another_one_is_said_to_be() -> None:
    pieces = in_pieces(iter([np.array([0, -1, 2])]))
    found = first_difference(order_of(3), pieces, 3)
    assert found is not None
    assert (found.position, found.expected, found.found) == (1, 101, "another record")


def test_examples_with_the_same_contents_are_not_told_apart() -> None:
    firsts = np.array([0, 1, 1, 3])
    pieces = in_pieces(iter([np.array([0, 2, 1, 3])]))
    assert first_difference(order_of(4), pieces, 4, canonical=lambda i: firsts[i]) is None
