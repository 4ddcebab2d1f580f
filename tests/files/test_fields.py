"""Fields of documents that nobody trusts: taken as their kind, or refused in a line."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import strategies as st

from shardctl.base.arguments import Name, Whole
from shardctl.base.tfds_rules import FILE_FORMATS, RECORD_FORMATS
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError, UsageError
from shardctl.files import fields
from tests.cases import FUZZ, check_cases
from tests.golden import assert_evaluated
from tests.strategies import error_line

number_texts = (
    st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
    | st.none()
    | st.integers().map(str)
    | st.floats().map(str)
    | st.text("0123456789+-_.eE xXinfa٣\t", max_size=6)
    | st.sampled_from([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, "9" * 19, "1e18", "1e19"])
)


@functools.cache
def reads_decimals() -> bool:
    """Return whether protobuf reads "1e3", as that beside TensorFlow 2.20 and newer does."""
    from google.protobuf import json_format
    from tensorflow_datasets.core.proto import dataset_info_pb2

    try:
        json_format.Parse('{"shardLengths": ["1e3"]}', dataset_info_pb2.SplitInfo())
    except json_format.ParseError:
        return False
    return True


def check_number(value: Any) -> None:
    """One number in a repeated int64 field; a null there is refused by both."""
    from google.protobuf import json_format
    from tensorflow_datasets.core.proto import dataset_info_pb2

    text = json.dumps({"shardLengths": [value]})
    line = error_line(lambda: fields.proto_int64(value, "length"))
    try:
        split = json_format.Parse(text, dataset_info_pb2.SplitInfo())
    except json_format.ParseError:
        decimal = isinstance(value, str) and not {*value}.isdisjoint(".eE")
        assert line is not None or (decimal and not reads_decimals())
    else:
        assert fields.proto_int64(value, "length") == split.shard_lengths[0]


@pytest.mark.parametrize("num_cases", [200, pytest.param(FUZZ, marks=pytest.mark.fuzz)])
def test_numbers_read_as_protobuf_reads_them(num_cases: int) -> None:
    check_cases(number_texts, check_number, num_cases)


def test_fields_are_shown_taken_and_refused_by_name_and_value() -> None:
    assert_evaluated(globals(), "fields")


@pytest.mark.parametrize(
    ("take", "value"),
    [
        (fields.name, "train"),
        (fields.name, "x" * 255),
        (fields.text, ""),
        (fields.text, "\x1b" * 999),
        (fields.items, [1, None]),
        (fields.mapping, {"a": None}),
        (fields.flag, False),
        (fields.count, 0),
        (fields.count, 2**63 - 1),
        (fields.proto_int64, -(2**63)),
    ],
)
def test_what_is_of_its_kind_is_taken_as_it_is(
    take: Callable[[object, str], object], value: object
) -> None:
    assert take(value, "field") is value


def test_a_key_that_is_not_known_is_refused_with_those_that_are() -> None:
    fields.only_keys({"a": 1}, ("a", "b"), "a layout")
    line = error_line(lambda: fields.only_keys({"c\x1b": 1}, ("a", "b"), "a layout"))
    assert line == "unknown key 'c\\x1b' in a layout; there are: a, b"


def test_a_split_name_holds_a_letter_or_digit() -> None:
    assert fields.split_name("train-1") == "train-1"
    for value in ("-", "..", "--_"):
        line = error_line(functools.partial(fields.split_name, value))
        assert line == f"split name '{value}' holds no letter or digit"


def test_a_file_format_is_one_of_those_of_tfds_or_one_that_is_counted() -> None:
    from tensorflow_datasets.core import file_adapters

    assert sorted(form.value for form in file_adapters.FileFormat) == sorted(FILE_FORMATS)
    counted = {"mds", "webdataset", "arrow", "litdata", "text", "csv", "fixed_length"}
    assert set(RECORD_FORMATS) == {*FILE_FORMATS, *counted}
    nearest = {"MDS": "mds", "webdatase": "webdataset"}
    for take, known, lead in (
        (
            lambda value: fields.file_format(value, FILE_FORMATS, "TFDS has"),
            FILE_FORMATS,
            "; TFDS has: ",
        ),
        (fields.file_format, RECORD_FORMATS, "; there are: "),
    ):
        assert [take(name) for name in known] == [*known]
        for value in ("TFRecord", "MDS", "webdatase", "zip", None, 7, ["tfrecord"]):
            said = str(error_line(functools.partial(take, value))).partition(lead)[2].split(", ")
            assert sorted(said) == sorted(known)
            first = nearest.get(str(value), "tfrecord")  # the nearest, else the first
            assert said[0] == (first if first in known else "tfrecord")


def test_errors_say_which_source_they_are_about() -> None:
    def nested() -> None:
        with fields.said_about("layout.yaml"), fields.said_about("split 'train'"):
            fields.count(-1, "length")

    assert error_line(nested) == "layout.yaml: split 'train': length -1 is negative"
    with pytest.raises(UsageError, match=r"^no file$"), fields.said_about("layout.yaml"):
        raise UsageError("no file")


@dataclass(frozen=True)
class _Part:
    name: Name
    size: int
    shift: Whole = -1


@dataclass(frozen=True)
class _Whole:
    parts: tuple[_Part, ...]
    kind: Literal["a", "b"]
    share: float | None
    keys: tuple[int | str, ...] = ()


WHOLE = {"parts": [{"name": "p", "size": 3}, ["q", 4, -5]], "kind": "a", "share": 1, "more": 0}


def test_a_frozen_value_is_read_by_the_annotations_of_its_fields() -> None:
    found = fields.record(_Whole, WHOLE)
    assert found == _Whole((_Part("p", 3), _Part("q", 4, -5)), "a", 1.0)
    assert fields.record(_Whole, {**WHOLE, "keys": [3, "train:3"]}).keys == (3, "train:3")
    assert fields.record(_Whole, WHOLE, kind="b").kind == "b"


TEMPLATED = ShardFiles(data_dir="/d", pattern="{a}-\0-of-00002", num_shards=2)
NAMED = ShardFiles(data_dir=None, num_shards=2, names=("b", "sub/a"))


@pytest.mark.parametrize(
    ("parts", "folder", "field"),
    [
        ((), None, None),
        ((TEMPLATED,), "/d", "{{a}}-{SHARD_INDEX}-of-00002"),
        (
            (TEMPLATED,),
            "/e",
            [{"template": "{{a}}-{SHARD_INDEX}-of-00002", "num_shards": 2, "data_dir": "/d"}],
        ),
        ((NAMED,), None, [{"names": ["b", "sub/a"]}]),
        ((NAMED,), "/d", [{"names": ["b", "sub/a"], "data_dir": None}]),
    ],
)
def test_a_field_says_all_parts(
    parts: tuple[ShardFiles, ...], folder: str | None, field: object
) -> None:
    assert fields.files_field(parts, folder) == field
    assert tuple(fields.files_of_field(field, 2, folder)) == parts
    for wrong in (3, [3], [{"template": 3, "num_shards": 1}], [{"names": [1]}]):
        with pytest.raises(DatasetError):
            list(fields.files_of_field(wrong, 2))
