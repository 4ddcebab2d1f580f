"""Dataset names and versions: read as TFDS reads them."""

from __future__ import annotations

import pytest

from shardctl.metadata.names import (
    DatasetName,
    newest_version,
    parse_dataset_name,
    version_key,
)


@pytest.mark.parametrize(
    ("text", "name", "config", "version"),
    [
        ("mnist", "mnist", None, None),
        ("mnist:3.0.1", "mnist", None, "3.0.1"),
        ("mnist:3.*.*", "mnist", None, "3.*.*"),
        ("coco/2017", "coco", "2017", None),
        ("coco/2017:1.1.0", "coco", "2017", "1.1.0"),
        ("coco/2017/1.1.0", "coco", "2017", "1.1.0"),
        ("wiki/20230601.en+x-y", "wiki", "20230601.en+x-y", None),
        # Of two parts the second may be a config; `readings` has the version too.
        ("mnist/3.0.1", "mnist", "3.0.1", None),
        ("FashionMNIST", "fashion_mnist", None, None),
        ("Imagenet2012", "imagenet2012", None, None),
        ("D4rlAdroitDoor", "d4rl_adroit_door", None, None),
    ],
)
def test_a_name_has_a_config_and_a_version_where_they_are_given(
    text: str, name: str, config: str | None, version: str | None
) -> None:
    found = parse_dataset_name(text)
    assert found == DatasetName(name=name, config=config, version=version)


@pytest.mark.parametrize("text", ["mnist", "FashionMNIST", "D4rlAdroitDoor", "SVHNCropped", "aB1C"])
def test_camel_case_becomes_the_snake_case_of_tfds(text: str) -> None:
    from tensorflow_datasets.core import naming

    found = parse_dataset_name(text)
    assert found is not None
    assert found.name == naming.camelcase_to_snakecase(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "1mnist", "a-b", "mn ist", "mnist\n", "mnist/", "/mnist", "a/b/c", "gs://b/x"),
        *("mnist:", "mnist:3", "mnist:3.0", "mnist:1.0.0.0", "mnist:a.b.c"),
        *("a:1.0.0:1.0.0", "a/b:1.0.0/c"),
    ],
)
def test_what_is_not_a_name_is_none(text: str) -> None:
    assert parse_dataset_name(text) is None


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("mnist/3.0.1", ["mnist/3.0.1", "mnist:3.0.1"]),
        ("coco/2017", ["coco/2017"]),
        ("coco/2017:1.1.0", ["coco/2017:1.1.0"]),
        ("mnist:3.0.1", ["mnist:3.0.1"]),
        ("mnist/3.*.*", []),
    ],
)
def test_a_config_that_looks_like_a_version_is_read_as_both(text: str, readings: list[str]) -> None:
    name = parse_dataset_name(text)
    assert ([] if name is None else [str(reading) for reading in name.readings()]) == readings


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("0.0.0", (0, 0, 0)),
        ("10.0.2", (10, 0, 2)),
        ("1.0", None),
        ("1.0.0.0", None),
        ("01.0.0", None),
        ("1.*.0", None),
        ("1.0.0rc1", None),
        ("", None),
        ("9" * 19 + ".0.0", None),
    ],
)
def test_a_version_is_three_numbers(text: str, key: tuple[int, int, int] | None) -> None:
    assert version_key(text) == key


@pytest.mark.parametrize(
    ("wanted", "newest"),
    [
        (None, "10.0.0"),
        ("3.*.*", "3.10.0"),
        ("3.9.*", "3.9.9"),
        ("*.0.0", "10.0.0"),
        ("3.9.0", "3.9.0"),
        ("4.*.*", None),
        ("3.9.1", None),
    ],
)
def test_the_newest_version_goes_by_numbers_and_not_by_text(
    wanted: str | None, newest: str | None
) -> None:
    versions = ["3.9.0", "3.10.0", "3.9.9", "10.0.0", "latest", "30.0"]
    assert newest_version(versions, wanted) == newest


def test_of_no_version_none_is_the_newest() -> None:
    assert newest_version([]) is None
    assert newest_version(["latest"], "*.*.*") is None
