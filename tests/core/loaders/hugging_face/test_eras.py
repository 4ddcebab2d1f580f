"""Which versions of `datasets` follow one rule."""

from __future__ import annotations

import pytest

from shardctl.core.loaders.hugging_face.eras import ERAS, era_of


@pytest.mark.parametrize(
    ("version", "since"),
    [
        ("3.6.0", "3.0.0"),
        ("4.3.0", "3.0.0"),
        ("4.4.2", "4.4.0"),
        ("4.8.2", "4.8.0"),
        ("4.8.10", "4.8.3"),
        ("5.0.1", "5.0.0"),
        ("5", "5.0.0"),
        ("10.0", "5.1.0"),
        ("2.21.0", "3.0.0"),
    ],
)
def test_the_newest_era_that_has_begun_counts(version: str, since: str) -> None:
    assert era_of(version).since == since


def test_eras_ascend() -> None:
    begins = [tuple(map(int, era.since.split("."))) for era in ERAS]
    assert begins == sorted(set(begins))
