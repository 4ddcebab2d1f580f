"""Paths behind a URL are as those of POSIX, and nothing takes them for paths of a disk."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import strategies as st

from shardctl.stores.stores import RemotePath, file_in, name_of, path_of, way_below
from tests.cases import check_cases
from tests.golden import assert_evaluated

_PARTS = st.lists(st.sampled_from(["a", "b.c", ".", "", "1.0.0", "x.tar.gz", "..b"]), max_size=6)


def test_what_is_behind_the_bucket_goes_by_the_rules_of_posix_paths() -> None:
    def law(parts: tuple[list[str], list[str]]) -> None:
        before, behind = ("/".join(some).lstrip("/") for some in parts)
        place, posix = RemotePath(f"gs://bucket/{before}"), PurePosixPath("/", before)
        if behind:
            place, posix = place / behind, posix / behind
        assert str(place) == f"gs://bucket{posix}".rstrip("/")
        assert (place.name, place.stem, place.suffix) == (posix.name, posix.stem, posix.suffix)
        assert str(place.parent) == f"gs://bucket{posix.parent}".rstrip("/")
        assert RemotePath(str(place)) == place
        assert hash(RemotePath(str(place))) == hash(place)

    check_cases(st.tuples(_PARTS, _PARTS), law, 300)


def test_an_address_of_the_web_writes_names_as_urls_do() -> None:
    place = RemotePath("https://host/data") / "a b%c?.json"
    assert str(place) == "https://host/data/a%20b%25c%3F.json"
    assert (place.name, place.suffix) == ("a b%c?.json", ".json")
    assert way_below(RemotePath("https://host/data"), place) == "a b%c?.json"


def test_it_is_no_path_of_a_disk_and_two_dots_do_not_leave_the_bucket() -> None:
    assert str(RemotePath("s3://bucket/a") / "../../../other") == "s3://bucket/other"
    assert RemotePath("s3://bucket").parent == RemotePath("s3://bucket")
    with pytest.raises(TypeError):
        os.stat(RemotePath("gs://bucket/a"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no URL"):
        RemotePath("/data")


def test_a_url_is_written_one_way_and_a_text_is_a_path_of_either_kind() -> None:
    assert_evaluated(globals(), "paths", Path)


def test_a_file_of_a_folder_has_no_more_to_show_than_the_folder() -> None:
    folder = path_of("https://me:pw@remote-path.org/data?sig=1")
    assert str(folder) == "https://remote-path.org/data"
    file = file_in("https://me:pw@remote-path.org/data", "x/a b")
    assert file == "https://remote-path.org/data/x/a%20b"
    assert name_of(file) == "a b"
    assert file_in("/data", "x/a b") == os.path.join("/data", "x/a b")


def test_the_way_from_a_folder_and_none_from_another_bucket() -> None:
    for folder in ("s3://b/tfds", "/tfds"):
        path = path_of(f"{folder}/mnist/3.0.1")
        assert way_below(path_of(folder), path) == "mnist/3.0.1"
    with pytest.raises(ValueError, match="is not below"):
        way_below(RemotePath("s3://a"), RemotePath("s3://b/x"))
