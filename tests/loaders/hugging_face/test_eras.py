"""Which versions of `datasets` follow one rule."""

from __future__ import annotations

import pytest

from shardctl.loaders.hugging_face_eras import ERAS, changed_between, era_of


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


@pytest.mark.parametrize(
    ("old", "new", "pipeline", "changes"),
    [
        ("4.8.0", "5.2.0", {}, ["5.0.0", "5.1.0"]),
        ("5.2.0", "4.8.5", {}, ["5.0.0", "5.1.0"]),
        ("3.6.0", "4.8.5", {}, []),
        ("3.6.0", "4.8.5", {"workers": 2}, ["4.4.0", "4.6.0"]),
        ("3.6.0", "4.8.5", {"pass": 1}, ["4.6.0"]),
        ("3.6.0", "4.8.5", {"host": "1/2"}, ["4.8.0", "4.8.3"]),
        ("5.1.0", "5.2.0", {"workers": 2, "pass": 1}, []),
        ("4.8.0", "5.2.0", {"shuffle_seed": None, "buffer": None, "streaming": True}, []),
        ("4.8.0", "5.2.0", {"buffer": None}, []),
    ],
)
def test_what_changed_is_said_where_a_pipeline_has_it(
    old: str, new: str, pipeline: dict[str, object], changes: list[str]
) -> None:
    stream = {"shuffle_seed": 3, "buffer": 16, "epochs": 1, "pass": 0, "host": None}
    said = changed_between(old, new, {**stream, **pipeline})
    assert [era.since for era in ERAS if era.since in said] == changes
