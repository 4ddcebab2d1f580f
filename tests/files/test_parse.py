"""JSON and YAML are read as their parsers read them, within bounds, or are one line of error."""

from __future__ import annotations

import json
import math
from functools import partial
from typing import Any

import pytest
import yaml
from hypothesis import strategies as st

from shardctl.errors import DatasetError, ShardctlError
from shardctl.files.parse import parse_json, parse_yaml
from tests.cases import FUZZ, check_cases, few_or_many
from tests.golden import assert_evaluated
from tests.strategies import damaged, error_line

VALID = b"""\
name: toy  # a comment
splits: &splits
  train: {shard_lengths: [1_000, 0x10, 3], num_bytes: 12}
  test:
    shard_lengths:
    - 5
    - 6
again: 1:30
"""
VALID_JSON = b'{"name": "mnist", "splits": [{"name": "train", "shardLengths": ["60000", 1]}]}'


def error_of(parse: Any, source: str, data: bytes) -> str:
    with pytest.raises(DatasetError) as caught:
        parse(data, source=source)
    return str(caught.value)


json_error = partial(error_of, parse_json, "info.json")
yaml_error = partial(error_of, parse_yaml, "layout.yaml")


def check_bytes(data: bytes) -> None:
    """A value, or an error that is one printable line."""
    for parse in (parse_json, parse_yaml):
        line = error_line(lambda parse=parse: parse(data, source="file"))  # type: ignore[misc]
        assert line is None or line.startswith("file")


def test_bytes_give_a_value_or_one_line_of_error() -> None:
    texts = st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass"))
    strategy = st.binary(max_size=60) | texts | damaged(VALID) | damaged(VALID_JSON)
    check_cases(strategy, check_bytes, 200)


def test_what_is_read_and_what_is_refused_with_its_place() -> None:
    assert_evaluated(globals(), "parsed")


def test_keys_of_one_hash_are_refused_before_each_is_compared_with_all() -> None:
    """Python takes a number modulo 2**61 - 1 for its hash."""
    keys = [number * (2**61 - 1) for number in range(1, 200_000)]
    assert len(set(map(hash, keys[:1000]))) == 1
    data = "".join(f"{key}: 1\n" for key in keys).encode()
    assert yaml_error(data).startswith("layout.yaml: line 101: more than 100 number keys with one")
    assert parse_yaml(data[: data.index(b"\n")], source="x") == {2**61 - 1: 1}


@pytest.mark.parametrize(("lead", "digit", "most"), [("", "9", 4300), ("0x", "f", 400)])
def test_so_many_digits_a_number_may_have(lead: str, digit: str, most: int) -> None:
    text = lead + digit * (most - len(lead))
    assert parse_yaml(text.encode(), source="x") == yaml.safe_load(text)
    assert "line 1: a number with too many digits" in yaml_error(f"{text}{digit}".encode())


def test_a_long_text_of_digits_and_more_is_text() -> None:
    for text in ("1" * 5000 + "a", "1:" * 5000, "0x" + "g" * 5000):
        assert parse_yaml(f"a: '{text}'\nb: {text}x".encode(), source="x") == {
            "a": text,
            "b": f"{text}x",
        }


@few_or_many(40, 120)
def test_dumped_values_read_back(num_cases: int) -> None:
    scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
    names = st.text().filter(lambda text: not text.strip("-").isdigit())  # no key twice in JSON
    values = st.recursive(
        scalars,
        lambda inner: st.lists(inner) | st.dictionaries(names | st.integers(), inner),
        max_leaves=10,
    )

    def check(value: Any) -> None:
        if not any("\ud800" <= char <= "\udfff" for char in repr(value)):  # none are in YAML
            text = yaml.safe_dump(value).encode("utf-8", "surrogatepass")
            assert parse_yaml(text, source="x") == value
        text = json.dumps(value).encode()
        if b"Infinity" not in text:
            assert parse_json(text, source="x") == json.loads(text)

    check_cases(values, check, num_cases)


def check_against_pyyaml(data: bytes) -> None:
    """Where both read a text, they read the same; we refuse more (tags, duplicates, dates)."""
    try:
        ours = parse_yaml(data, source="layout.yaml")
    except ShardctlError:
        return
    if b"<<" in data or b"=" in data:  # merge keys and value keys are plain text to us
        return
    try:
        theirs = yaml.load(data.decode("utf-8-sig"), Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError):
        return  # a date that is none, which stays text here
    if not has_dates(theirs):
        assert same(ours, theirs)


def has_dates(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(has_dates, value)) or any(map(has_dates, value.values()))
    if isinstance(value, list):
        return any(map(has_dates, value))
    return hasattr(value, "isoformat")


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float) and math.isnan(theirs):
        return math.isnan(ours)
    return type(ours) is type(theirs) and repr(ours) == repr(theirs)


def test_texts_read_as_pyyaml_reads_them() -> None:
    alphabet = "ab01279._:-+[]{},&*!|>'\"#?% \n~eExXo"
    texts = st.text(alphabet, max_size=12).map(str.encode)
    check_cases(texts | damaged(VALID), check_against_pyyaml, 200)


@pytest.mark.fuzz
def test_any_bytes_read_as_pyyaml_reads_them() -> None:
    def check(data: bytes) -> None:
        check_bytes(data)
        check_against_pyyaml(data)

    check_cases(st.binary(max_size=200) | damaged(VALID), check, FUZZ)


def test_so_deep_a_document_may_be() -> None:
    assert parse_yaml(b"[" * 50 + b"]" * 50, source="x") == yaml.safe_load("[" * 50 + "]" * 50)
    assert "line 1: nested more than 50 deep" in yaml_error(b"[" * 51 + b"]" * 51)


def test_more_values_than_any_dataset_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardctl.files.parse.MAX_VALUES", 4)
    assert parse_json(b"[1, 2, [3]]", source="x") == [1, 2, [3]]
    for data in (b"[1, 2, 3, 4, 5, 6]", b'{"a": [[[[[]]]]]}', b"[{}, {}, {}]"):
        assert json_error(data) == "info.json: more than 4 values"
    monkeypatch.setattr("shardctl.files.parse.MAX_VALUES", 6)
    assert parse_yaml(b"a: [1, 2, {}]", source="x") == {"a": [1, 2, {}]}
    assert yaml_error(b"a: [1, 2, {},\n 3]") == "layout.yaml: line 2: more than 6 values"


_KEYS = st.sampled_from(["a", "b", '\\":', "a:", "\\u0061"])
_BLANKS = st.sampled_from(["", " ", "\n\t"])


def _mappings(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(_KEYS, _BLANKS, inner).map(lambda parts: '"{}"{}: {}'.format(*parts))
    return st.lists(pair, max_size=3).map(lambda pairs: f"{{{', '.join(pairs)}}}")


def test_a_key_that_is_there_twice_among_many_is_found_in_linear_time() -> None:
    keys = [str(number) for number in range(200_000)]  # by comparison of all: over a minute
    pairs = [f'"{key}": 0' for key in [*keys, keys[-1]]]
    text = "{" + ", ".join(pairs) + "}"
    assert "key '199999' is there twice" in json_error(text.encode())


def test_keys_that_are_there_twice_are_refused_wherever_they_are() -> None:
    def law(text: str) -> None:
        twice = False

        def mapping_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            nonlocal twice
            twice = twice or len(dict(pairs)) < len(pairs)
            return dict(pairs)

        value = json.loads(text, object_pairs_hook=mapping_of)
        if twice:
            assert "is there twice" in json_error(text.encode())
        else:
            assert parse_json(text.encode(), source="info.json") == value

    texts = st.recursive(
        st.sampled_from(["1", "null", '"x"', '"\\": :"', '":"']),
        lambda inner: st.one_of(
            _mappings(inner), st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        ),
        max_leaves=12,
    )
    check_cases(texts, law, 200)
