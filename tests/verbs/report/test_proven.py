"""An order that is made again from a snapshot is the pinned one, or it is not shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardctl.base.tfds_rules import ORDER_RULES, RuleSet
from shardctl.order.plan_order import PlannedOrder
from shardctl.verbs.diff.answer import PinnedOrder
from shardctl.verbs.report import compare as proofs
from shardctl.verbs.report.compare import proven
from shardctl.verbs.report.shown import NotShown
from shardctl.verbs.snapshot.answer import snapshot
from tests.verbs.diff.diff_cases import dataset_of

OLDER = RuleSet(version=0, tensorflow="2.0", tensorflow_datasets="4.0")
LONG = dataset_of({"train": (9_000, 9_000)})


def pinned(*, tree_of: int, rules: RuleSet = ORDER_RULES) -> PinnedOrder:
    kept = snapshot(LONG, "train", {"cycle": 1}).snapshot
    other = snapshot(LONG, "train", {"cycle": tree_of}).snapshot
    return PinnedOrder(snapshot=replace(kept, tree=other.tree, rules=rules), label="kept")


@pytest.mark.parametrize("rules", [ORDER_RULES, OLDER])
def test_the_pinned_order_is_proven(rules: RuleSet) -> None:
    found = proven(pinned(tree_of=1, rules=rules))
    assert isinstance(found, PlannedOrder)
    assert found.order.num_examples == 18_000


@pytest.mark.parametrize("rules", [ORDER_RULES, OLDER])
def test_another_order_is_not_shown(rules: RuleSet) -> None:
    found = proven(pinned(tree_of=2, rules=rules))
    assert isinstance(found, NotShown)
    assert "another order today" in found.reason


def test_an_order_of_other_rules_that_is_too_long_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proofs, "_ALL", 17_999)
    found = proven(pinned(tree_of=1, rules=OLDER))
    assert isinstance(found, NotShown)
    assert "18,000 positions are too many" in found.reason
    assert isinstance(proven(pinned(tree_of=1)), PlannedOrder)


def test_what_is_known_needs_no_proof() -> None:
    taken = snapshot(LONG, "train", {"cycle": 1})
    known = PinnedOrder(snapshot=taken.snapshot, label="kept", live=taken.live)
    assert proven(known) is taken.live
