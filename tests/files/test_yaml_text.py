"""YAML is read as PyYAML's safe loader reads it, within bounds, or is one line of error."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml
from hypothesis import strategies as st

from shardctl.errors import DatasetError, ShardctlError
from shardctl.files.parse import parse_yaml
from tests.cases import FUZZ, check_cases, few_or_many
from tests.strategies import damaged, error_line

VALID = b"""\
name: toy  # a comment
splits: &splits
  train: {shard_lengths: [1_000, 0x10, 3], num_bytes: 12}
  test:
    shard_lengths:
    - 5
    - 6
again: *splits
"""


def error_of(data: bytes) -> str:
    with pytest.raises(DatasetError) as caught:
        parse_yaml(data, source="layout.yaml")
    return str(caught.value)


def check_bytes(data: bytes) -> None:
    """A value, or an error that is one printable line."""
    line = error_line(lambda: parse_yaml(data, source="layout.yaml"))
    assert line is None or line.startswith("layout.yaml")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a: 1\na: 2", "line 2: key 'a' is there twice"),
        (b"{a: 1, 'a': 2}", "line 1: key 'a' is there twice"),
        (b"a: &a [1, *a]", "line 1: alias 'a' lies inside its own value"),
        (b"&a a: 1\nb: *nothing", "line 2: alias 'nothing' has no anchor before it"),
        (b"a: !!python/object/apply:os.system [ls]", "line 1: tag 'tag:yaml.org,2002:python"),
        (b"a: !x 1", "line 1: tag '!x': tags are not read"),
        (b"a: !!int 1", "line 1: tag 'tag:yaml.org,2002:int': tags are not read"),
        (b"? [1]\n: 2", "line 1: a key must be text, not a list or a mapping"),
        (b"a: 1\n---\nb: 2", "line 2: a second document starts here; only one is read"),
        (b"[" * 100_000, "line 1"),
        (b"- " * 100_000 + b"a", "line 1"),
        (b"a: " + b"9" * 5000, "line 1: a number with too many digits"),
        (b"a: 0x_", "line 1: '0x_' is not a number"),
        (b"a: 1" + b":59" * 400 + b".5", "line 1: a number with too many digits"),
        (b"a: 1" + b":5" * 190 + b".5", "line 1: a number with too many digits"),
        (b"a: 1" + b":59" * 1_000_000, "line 1: a number with too many digits"),
        (b"a: 0x" + b"f" * 10_000, "line 1: a number with too many digits"),
        (b"a: 1." + b"0" * 5000, "line 1: a number with too many digits"),
        (b"%b: 1\n%b: 2" % (b"0x" + b"f" * 99, b"0x" + b"f" * 99), "line 2: key a number of"),
        (b"a: [1,\n2", "line 3 is not YAML: did not find expected ',' or ']'"),
        (b"a:\n\t- 1", "line 2 is not YAML: found character that cannot start any token"),
        (b"a: \xff", "line 1 is not UTF-8 text (byte 0xff)"),
        (b"a\nb: \0", "line 2 holds a NUL character; it is not a text file"),
        (b"a: '\x1b[31m'", "it is not YAML: unacceptable character #x001b: control"),
        (b'"\\x1b[31m": 1\n"\\x1b[31m": 2', "line 2: key '\\x1b[31m' is there twice"),
    ],
)
def test_what_is_refused_is_named_with_its_line(data: bytes, said: str) -> None:
    assert error_of(data).startswith(f"layout.yaml: {said}")


def test_plain_values_count_as_aliases_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardctl.files.parse.MAX_VALUES", 5)
    assert parse_yaml(b"[1, 2, [3]]", source="x") == [1, 2, [3]]
    for data in (b"[1, 2, 3, 4, 5]", b"{a: 1, b: 2, c: 3}", b"[[], [], [], [], []]"):
        said = "layout.yaml: line 1: more than 5 values with its aliases written out"
        assert error_of(data) == said


def test_keys_of_one_hash_are_refused_before_each_is_compared_with_all() -> None:
    """Python takes a number modulo 2**61 - 1 for its hash."""
    keys = [number * (2**61 - 1) for number in range(1, 200_000)]
    assert len(set(map(hash, keys[:1000]))) == 1
    data = "".join(f"{key}: 1\n" for key in keys).encode()
    assert error_of(data).startswith("layout.yaml: line 101: more than 100 number keys with one")
    assert parse_yaml(data[: data.index(b"\n")], source="x") == {2**61 - 1: 1}


@pytest.mark.parametrize(("lead", "digit", "most"), [("", "9", 4300), ("0x", "f", 400)])
def test_so_many_digits_a_number_may_have(lead: str, digit: str, most: int) -> None:
    text = lead + digit * (most - len(lead))
    assert parse_yaml(text.encode(), source="x") == yaml.safe_load(text)
    assert "line 1: a number with too many digits" in error_of(f"{text}{digit}".encode())


def test_a_long_text_of_digits_and_more_is_text() -> None:
    for text in ("1" * 5000 + "a", "1:" * 5000, "0x" + "g" * 5000):
        assert parse_yaml(f"a: '{text}'\nb: {text}x".encode(), source="x") == {
            "a": text,
            "b": f"{text}x",
        }


def test_an_alias_bomb_is_refused() -> None:
    """Ten lists of ten times the one before: 10 billion values in 500 bytes."""
    lines = ["l0: &l0 [lol]"]
    lines += [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]" for i in range(1, 11)]
    assert "values with its aliases written out" in error_of("\n".join(lines).encode())


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"", None),
        (b"# nothing", None),
        (b"\xef\xbb\xbfa: 1", {"a": 1}),
        (b"version: 3.0.1", {"version": "3.0.1"}),
        (b"version: 3.0", {"version": 3.0}),
        (b"day: 2020-01-01", {"day": "2020-01-01"}),
        (b"a: 010", {"a": 8}),
        (b"a: '10'", {"a": "10"}),
        (b"a: yes\nb: ~\nc: .5", {"a": True, "b": None, "c": 0.5}),
        (b'{"a": [1, 2.5, null, true]}', {"a": [1, 2.5, None, True]}),
        (b"a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        ("a: 1²\nb: ٣".encode(), {"a": "1²", "b": "٣"}),
    ],
)
def test_values_are_those_of_yaml_1_1_and_dates_stay_text(data: bytes, value: object) -> None:
    assert parse_yaml(data, source="x") == value


@few_or_many(40, 120)
def test_dumped_values_read_back(num_cases: int) -> None:
    scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
    values = st.recursive(
        scalars,
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
        max_leaves=10,
    )

    def check(value: Any) -> None:
        text = yaml.safe_dump(value)
        assert parse_yaml(text.encode("utf-8", "surrogatepass"), source="x") == value

    def storable(value: Any) -> bool:
        """YAML has no lone surrogates."""
        return not any("\ud800" <= char <= "\udfff" for char in repr(value))

    check_cases(values.filter(storable), check, num_cases)


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


def test_bytes_give_a_value_or_one_line_of_error() -> None:
    strategy = st.binary(max_size=60) | st.text(max_size=60).map(
        lambda text: text.encode("utf-8", "surrogatepass")
    )
    check_cases(strategy | damaged(VALID), check_bytes, 200)


def test_texts_read_as_pyyaml_reads_them() -> None:
    alphabet = "ab01279._:-+[]{},&*!|>'\"#?% \n~eExXo"
    texts = st.text(alphabet, max_size=12).map(str.encode)
    check_cases(texts | damaged(VALID), check_against_pyyaml, 200)


@pytest.mark.fuzz
def test_any_bytes_read_as_pyyaml_reads_them() -> None:
    def check(data: bytes) -> None:
        check_bytes(data)
        check_against_pyyaml(data)

    strategy = st.binary(max_size=200) | damaged(VALID)
    check_cases(strategy, check, FUZZ, fuzz=True)


@pytest.mark.parametrize("text", ["[{}]", "- {}"])
def test_a_hundred_thousand_numbers_read_back(text: str) -> None:
    joined = (", " if text[0] == "[" else "\n- ").join(map(str, range(100_000)))
    assert parse_yaml(text.format(joined).encode(), source="x") == list(range(100_000))


@pytest.mark.parametrize("length", [3, 40_000])
def test_long_lists_count_as_much_as_short_ones_also_as_aliases(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = f"a: &x [{', '.join(['1'] * length)}]\nb: *x\n".encode()
    # The mapping, two keys, and twice the list and its numbers.
    monkeypatch.setattr("shardctl.files.parse.MAX_VALUES", 2 * length + 5)
    assert parse_yaml(data, source="x") == {"a": [1] * length, "b": [1] * length}
    monkeypatch.setattr("shardctl.files.parse.MAX_VALUES", 2 * length + 4)
    assert "more than" in error_of(data)


@pytest.mark.parametrize(
    ("value", "num_values"), [("7", 1), ("w", 1), ("[7, 8]", 3), ("{k: 7}", 3)]
)
def test_an_alias_counts_as_much_as_what_it_stands_for(
    value: str, num_values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = f"[&x {value}, *x, *x]".encode()
    monkeypatch.setattr("shardctl.files.parse.MAX_VALUES", 1 + 3 * num_values)
    assert parse_yaml(data, source="x") == yaml.safe_load(data)
    monkeypatch.setattr("shardctl.files.parse.MAX_VALUES", 3 * num_values)
    assert "more than" in error_of(data)


@pytest.mark.parametrize(
    ("length", "said"), [(300, "is not a number"), (301, "a number with too many digits")]
)
def test_a_number_that_is_none_is_shown_where_it_is_short(length: int, said: str) -> None:
    assert said in error_of(b"0b" + b"_" * (length - 2))
