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


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "nothing"),
        (True, "true"),
        (False, "false"),
        ({"a": 1}, "a mapping"),
        ([1], "a list"),
        ((1,), "a list"),
        ("x", "'x'"),
        ("\x1b", "'\\x1b'"),
        (-7, "-7"),
        (1.5, "1.5"),
        (10**40, str(10**40)),
        (10**40 + 1, "a number of more than 40 digits"),
        (-(10**41), "a number of more than 40 digits"),
    ],
)
def test_a_value_is_shown_by_its_kind_where_it_may_be_long(value: object, said: str) -> None:
    assert fields.shown(value) == said


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


@pytest.mark.parametrize(
    ("take", "value", "said"),
    [
        (fields.name, 7, "field must be text, not 7"),
        (fields.name, "", "field is empty"),
        (fields.name, "x" * 256, "has 256 characters; a file name holds at most 255"),
        (fields.name, "a\nb", "field 'a\\nb' holds characters that cannot be printed"),
        (fields.text, None, "field must be text, not nothing"),
        (fields.items, "ab", "field must be a list, not 'ab'"),
        (fields.items, (1,), "field must be a list, not a list"),
        (fields.mapping, [], "field must be a mapping, not a list"),
        (fields.mapping, {1: 2}, "field: key 1 "),
        (fields.flag, 1, "field must be true or false, not 1"),
        (fields.flag, "true", "field must be true or false, not 'true'"),
        (fields.count, True, "field must be a whole number, not true"),
        (fields.count, 1.0, "field must be a whole number, not 1.0"),
        (fields.count, "1", "field must be a whole number, not '1'"),
        (fields.count, -1, "field -1 is negative"),
        (fields.count, 2**63, f"is more than an int64 holds, {2**63 - 1}"),
        (fields.proto_int64, "1" * 1001, "field must be a whole number"),
        (fields.proto_int64, float("inf"), "field must be a whole number, not inf"),
    ],
)
def test_what_is_of_another_kind_is_refused_with_field_and_value(
    take: Callable[[object, str], object], value: object, said: str
) -> None:
    line = error_line(lambda: take(value, "field"))
    assert line is not None
    assert said in line


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
    assert set(RECORD_FORMATS) == {*FILE_FORMATS, "mds", "webdataset", "arrow"}
    nearest = {"MDS": "mds", "webdatase": "webdataset"}
    for take, known, lead in (
        (fields.tfds_file_format, FILE_FORMATS, "; TFDS has: "),
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


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"parts": 3}, "parts must be a list, not 3"),
        ({"parts": [3]}, "parts[0] must be a mapping, not 3"),
        ({"parts": [{"name": "p"}]}, "parts[0] has no size"),
        ({"parts": [{"name": "p", "size": 1, "sise": 2}]}, "unknown key 'sise'"),
        ({"parts": [{"name": "p", "size": -1}]}, "parts[0].size -1 is negative"),
        ({"parts": [["p", 1, True]]}, "parts[0].shift must be a whole number, not true"),
        ({"parts": [["p", 1]]}, "parts[0] must be a mapping, not a list"),
        ({"parts": [["a\nb", 1, 2]]}, "parts[0].name 'a\\nb' holds characters"),
        ({"kind": "c"}, "kind 'c': there are a, b"),
        ({"kind": ["a"]}, "kind a list: there are a, b"),
        ({"share": "1"}, "share must be a number, not '1'"),
        ({"keys": [1, 1.5]}, "keys[1] must be a whole number, not 1.5"),
    ],
)
def test_a_wrong_field_of_a_frozen_value_is_named_by_its_path(
    change: dict[str, object], said: str
) -> None:
    with pytest.raises(DatasetError) as refused:
        fields.record(_Whole, {**WHOLE, **change})
    assert said in str(refused.value)


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
