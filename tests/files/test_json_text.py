"""JSON is read as TFDS's own parser reads it, and whatever else comes is one line of error."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.errors import DatasetError
from shardctl.files.parse import parse_json, read_json
from tests.cases import FUZZ, check_cases, few_or_many
from tests.strategies import damaged, error_line

VALID = b'{"name": "mnist", "splits": [{"name": "train", "shardLengths": ["60000", 1]}]}'


def error_of(data: bytes) -> str:
    with pytest.raises(DatasetError) as caught:
        parse_json(data, source="info.json")
    return str(caught.value)


def check_bytes(data: bytes) -> None:
    """A value, or an error that is one printable line."""
    line = error_line(lambda: parse_json(data, source="info.json"))
    assert line is None or line.startswith("info.json")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "line 1, column 1 is not JSON: expecting value"),
        (b'{"a": 1,\n "b" 2}', "line 2, column 6 is not JSON: expecting ':' delimiter"),
        (b'{"a": 1} x', "line 1, column 10 is not JSON: extra data"),
        (b'{"a": 1, "a": 2}', "key 'a' is there twice"),
        (b'{"\\u001b[31m": 1, "\\u001b[31m": 2}', "key '\\x1b[31m' is there twice"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": -Infinity}', "-Infinity is not a JSON number"),
        (b"[" * 200_000, "JSON nested too deeply"),
        (b'{"a": ' * 200_000, "JSON nested too deeply"),
        (b"[" + b"9" * 5000 + b"]", "a number with too many digits"),
        (b'{\n"a": "\xff"}', "line 2 is not UTF-8 text (byte 0xff)"),
        (b'{"a"\n: "\0"}', "line 2 holds a NUL character; it is not a text file"),
        ('{"a": 1}'.encode("utf-16"), "line 1 is not UTF-8 text (byte 0xff)"),
    ],
)
def test_what_is_not_json_is_refused_with_its_place(data: bytes, said: str) -> None:
    assert error_of(data) == f"info.json: {said}"


def test_a_byte_order_mark_does_not_matter() -> None:
    assert parse_json(b"\xef\xbb\xbf" + VALID, source="x") == json.loads(VALID)


def test_bytes_give_a_value_or_one_line_of_error() -> None:
    strategy = st.binary(max_size=60) | st.text(max_size=60).map(
        lambda text: text.encode("utf-8", "surrogatepass")
    )
    check_cases(strategy | damaged(VALID), check_bytes, 200)


@pytest.mark.fuzz
def test_any_bytes_give_a_value_or_one_line_of_error() -> None:
    strategy = st.binary(max_size=200) | damaged(VALID)
    check_cases(strategy, check_bytes, FUZZ, fuzz=True)


@few_or_many(30, 80)
def test_json_values_read_as_pythons_json_reads_them(num_cases: int) -> None:
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )

    def check(value: Any) -> None:
        try:
            text = json.dumps(value, allow_nan=False).encode()
        except ValueError:  # infinity
            return
        assert parse_json(text, source="x") == json.loads(text)

    check_cases(values, check, num_cases)


class TestFiles:
    def test_a_missing_file_is_said_to_be_missing(self, tmp_path: Path) -> None:
        with pytest.raises(DatasetError, match="no such file"):
            read_json(tmp_path / "nothing.json")

    def test_a_folder_is_not_a_file(self, tmp_path: Path) -> None:
        with pytest.raises(DatasetError, match="is a folder; a file is needed here"):
            read_json(tmp_path)

    def test_a_pipe_is_refused_and_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(DatasetError, match="it must be a file"):
            read_json(tmp_path / "pipe")

    @pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
    def test_a_device_is_refused(self, device: str) -> None:
        with pytest.raises(DatasetError, match="it must be a file"):
            read_json(Path(device))

    @pytest.mark.parametrize("name", ["a\0b", "x" * 5000, "a\x1b[31m"])
    def test_impossible_names_are_one_printable_line(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(DatasetError) as caught:
            read_json(tmp_path / name)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 400

    def test_a_loop_of_links_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "loop").symlink_to(tmp_path / "loop")
        with pytest.raises(DatasetError, match="cannot read"):
            read_json(tmp_path / "loop")

    def test_a_file_without_permission_says_so(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise PermissionError(13, "Permission denied")

        (tmp_path / "a.json").write_bytes(VALID)
        monkeypatch.setattr(Path, "open", refuse)  # tests may run as root, whom no mode stops
        with pytest.raises(DatasetError, match="permission denied"):
            read_json(tmp_path / "a.json")


def test_more_values_than_any_dataset_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardctl.files.parse.MAX_VALUES", 5)
    assert parse_json(b"[1, 2, [3]]", source="x") == [1, 2, [3]]
    for data in (b"[1, 2, 3, 4, 5, 6]", b'{"a": [[[[[]]]]]}', b"[{}, {}, {}]"):
        assert error_of(data) == "info.json: more than 5 values"


_KEYS = st.sampled_from(["a", "b", '\\":', "a:", "\\u0061"])
_BLANKS = st.sampled_from(["", " ", "\n\t"])


def _mappings(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(_KEYS, _BLANKS, inner).map(lambda parts: '"{}"{}: {}'.format(*parts))
    return st.lists(pair, max_size=3).map(lambda pairs: f"{{{', '.join(pairs)}}}")


def test_keys_that_are_there_twice_are_refused_wherever_they_are() -> None:
    def law(text: str) -> None:
        twice = False

        def mapping_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            nonlocal twice
            twice = twice or len(dict(pairs)) < len(pairs)
            return dict(pairs)

        value = json.loads(text, object_pairs_hook=mapping_of)
        if twice:
            assert "is there twice" in error_of(text.encode())
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
