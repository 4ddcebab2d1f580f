"""What a snapshot pins of an order."""

from __future__ import annotations

import hashlib

from shardctl.base.tfds_rules import ORDER_RULES
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.snapshot.answer import snapshot
from tests.cases import check_cases
from tests.verbs.diff.diff_cases import Pipeline, dataset_of, pairs


def hashed(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:16]


def test_the_tree_is_over_the_ids_in_the_order_they_are_read() -> None:
    # Read one after the other: ids 0 to 8,999, in cells of 4,096.
    pinned = snapshot(dataset_of({"train": (4000, 5000)}), "train", ReadSettings(cycle=1)).snapshot
    cells = [
        hashed(f"runs {stop - start} train\n".encode() + start.to_bytes(8, "little"))
        for start, stop in [(0, 4096), (4096, 8192), (8192, 9000)]
    ]
    assert pinned.tree.leaves == tuple(cells)
    assert pinned.tree.root == hashed(b"node" + hashed(b"node" + cells[0] + cells[1]) + cells[2])


def test_the_version_of_a_loader_is_pinned_where_nobody_names_one() -> None:
    dataset = dataset_of({"train": (4, 5)})
    for settings in ({"loader": "torch"}, {"loader": "torch", "loader_version": "2.13.0"}):
        order = plan_order(dataset, "train", settings).order
        pinned = snapshot(dataset, "train", settings).snapshot
        assert order.settings.loader_version is not None
        assert pinned.pipeline["loader_version"] == order.settings.loader_version


def test_everything_that_fixes_the_order_is_pinned() -> None:
    """What a snapshot pins gives the order again."""

    def check(pair: tuple[Pipeline, Pipeline]) -> None:
        taken = pair[0].taken()
        if taken is None:
            return
        dataset, settings = taken.snapshot.dataset, taken.snapshot.settings()
        assert dataset is not None
        assert settings is not None
        again = snapshot(dataset, taken.snapshot.spec, settings)
        assert again.snapshot.tree == taken.snapshot.tree

    check_cases(pairs(), check, 40)


def test_an_order_without_examples_is_pinned_too() -> None:
    pinned = snapshot(dataset_of({"train": (0, 0)}), "train").snapshot
    assert (pinned.num_examples, pinned.first_ids, pinned.tree.leaves) == (0, (), ())
    assert pinned.rules == ORDER_RULES
