"""Any answer has the pictures of its drawer, or none."""

from __future__ import annotations

import shardctl
from shardctl.draw.drawers import pictures_of


def test_an_answer_is_drawn_by_the_drawer_of_its_class() -> None:
    answer = shardctl.simulate("mnist", "train", {"batch": 4})
    assert [picture.name for picture in pictures_of(answer)] == ["strips"]


def test_an_answer_without_a_drawer_has_no_pictures() -> None:
    assert pictures_of(shardctl.plan("mnist")) == ()
