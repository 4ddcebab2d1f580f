"""Lists that are read before the parser: the same values as PyYAML's."""

from __future__ import annotations

import random
from typing import Any

import pytest
import yaml

from shardctl.errors import DatasetError
from shardctl.files import yaml_text as yaml_lists
from shardctl.files.documents import to_yaml
from shardctl.files.yaml_text import cut_lists, parse_yaml
from tests.cases import counted

WORDS = (
    "a",
    "null",
    "Yes",
    "d-00001.tfrecord",
    "a/b c",
    "",
    "7",
    "é",
    "it's",
    "mtime:17",
    "n",
    "~",
)


@pytest.fixture(autouse=True)
def short_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut short lists too."""
    monkeypatch.setattr(yaml_lists, "_LONG", 3)


def document(seed: int) -> dict[str, Any]:
    draw = random.Random(seed)

    def items() -> list[Any]:
        size = draw.randrange(6)
        if draw.random() < 0.4:
            return [draw.choice((0, 7, 10**17, 10**18, -1)) for _ in range(size)]
        words = WORDS if draw.random() < 0.5 else WORDS[:4]
        return [draw.choice(words) for _ in range(size)]

    splits = [{"name": draw.choice(WORDS), "lengths": items(), "names": items()} for _ in range(2)]
    return {"kind": "index", "splits": splits, "note": draw.choice(WORDS)}


@pytest.mark.long
def test_values_are_those_of_the_parser() -> None:
    cut = 0
    for seed in counted(range(300)):
        text = "".join(to_yaml(document(seed))).encode()
        cut += len(cut_lists(text)[1])
        found = parse_yaml(text, source="f")
        assert found == yaml.safe_load(text) == document(seed)
    assert cut > 300


@pytest.mark.parametrize(
    "text",
    [
        "a: |\n  b: [1, 2, 3, 4]\n",
        "a: 'x\n  b: [1, 2, 3, 4]\n  '\n",
        "# about\nb: [1, 2, 3, 4]\n",
        "b: [1_000, 2_000]\n",
        "b: [01, 02, 03]\n",
        "b: [1,2,3,4]\n",
        "b: [a: b, c]\n",
        "b: ['a''b', 'c']\n",
        "b: ['a', '''b''']\n",
        "b: ['', 'a', 'b']\n",
        "b: ['a\xa0b', 'c d']\n",
        'a: "\\0list 0"\nb: [1, 2, 3, 4]\n',
        'a: "\\0list" # [1, 2, 3, 4]\n',
        'a: "\\x00list" # [1, 2, 3, 4]\n',
        "b: [1.5, 2.5]\n",
        "b: [&x a, *x]\n",
        "b: [[1, 2], [3, 4]]\n",
        "b: [yes, no, on]\n",
        "b: [a, 'null', null]\n",
        "b: [99999999999999999999, 1]\n",
    ],
)
def test_what_is_written_otherwise_is_left_to_the_parser(text: str) -> None:
    assert parse_yaml(text.encode(), source="f") == yaml.safe_load(text)


@pytest.mark.parametrize(
    "text",
    [
        "a: [1, 2, 3, 4]\n",
        "a: [b, 'c d', e]\n",
        "a:\n- 1\n- 2\n- 3\n",
        "a:\n  - {b: 1, c: u}\n  - {b: 2, c: v}\n  - {b: 3, c: w}\n",
    ],
)
def test_what_our_writers_write_is_taken_out(text: str) -> None:
    assert len(cut_lists(text.encode())[1]) == 1
    assert len(cut_lists(f"b: [1, 2, 3]\nc: [d, e]\n{text}".encode())[1]) == 3
    assert parse_yaml(text.encode(), source="f") == yaml.safe_load(text)


def test_a_character_that_yaml_does_not_allow_is_refused_in_a_list_too() -> None:
    for text in ("b: ['a\x07', 'c d']\n", "b: a\x07\n"):
        with pytest.raises(
            DatasetError, match=r"f: line 1 holds the character U\+0007, which YAML"
        ):
            parse_yaml(text.encode(), source="f")


def test_lines_keep_their_numbers() -> None:
    text = b"a: [1, 2, 3, 4]\nb: ['x', 'y']\nc: {\n"
    with pytest.raises(Exception, match="line 4 is not YAML"):
        parse_yaml(text, source="f")
