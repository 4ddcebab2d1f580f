"""The kinds of findings about files."""

from __future__ import annotations

from typing import get_args

from shardctl.dataset.dataset import DEADLY, FileFinding, FindingKind


def test_what_tensorflow_does_not_survive_is_a_kind_of_finding() -> None:
    assert set(DEADLY) < set(get_args(FindingKind))


def test_a_finding_of_another_number_needs_no_more_than_the_numbers() -> None:
    finding = FileFinding(filename="b", expected=4, found=2)
    assert (finding.kind, finding.record, finding.byte) == ("count", None, None)
