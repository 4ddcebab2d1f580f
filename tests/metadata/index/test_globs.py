"""Globs, braces and prefix@N mean what they mean in TensorFlow and in a shell."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from shardctl.errors import UsageError
from shardctl.metadata.index.name_words import expanded, path_regex, sharded_regex
from tests.cases import add_cases, some
from tests.golden import assert_answers


def test_names_match_as_in_a_shell() -> None:
    rng = random.Random(3)
    lines, cases = [], []
    for _ in range(600):
        glob = "".join(rng.choice("ab1-.[]!^*?a1") for _ in range(rng.randint(1, 7)))
        name = "".join(rng.choice("ab1-.]^") for _ in range(rng.randint(1, 5)))
        cases.append((glob, name))
        pattern = glob.replace("\\", "\\\\")
        lines.append(f"p='{pattern}'; case '{name}' in $p) echo 1;; *) echo 0;; esac")
    said = subprocess.run(
        ["bash"], input="\n".join(lines), capture_output=True, text=True, check=True,
        env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
    ).stdout.split()  # fmt: skip
    found = [
        (glob, name)
        for (glob, name), shell in zip(cases, said, strict=True)
        if bool(path_regex(glob).fullmatch(name)) != bool(int(shell))
    ]
    assert found == []
    add_cases(len(cases))


def test_a_part_and_a_whole_path() -> None:
    names = {
        "part": lambda glob, name: bool(path_regex(glob).fullmatch(name)),
        "whole": lambda glob, path: bool(path_regex(glob).fullmatch(path)),
    }
    path = Path(__file__).parent / "golden" / "globs.txt"
    assert_answers(path, lambda question: eval(question, names))


def test_braces_mean_what_they_mean_in_bash() -> None:
    rng = random.Random(5)
    pieces = ["{a,b}", "{1..3}", "{08..11}", "{3..1}", "x", "{,z}", "-"]
    pieces += ["{x}", "{-1..1}", "{01..3}", "{"]
    texts = ["".join(rng.choices(pieces, k=rng.randint(1, 4))) for _ in range(150)]
    # What follows an opening brace without an end is read in another way by each version of bash.
    texts = [text for text in texts if text.count("{") == text.count("}")]
    lines = [f"printf '%s ' {text}; echo" for text in texts]
    said = subprocess.run(
        ["bash"], input="\n".join(lines), capture_output=True, text=True, check=True
    )
    for text, line in zip(texts, said.stdout.splitlines(), strict=True):
        assert [word for word in expanded(text) if word] == line.split(), text
    add_cases(len(texts))


def test_what_is_not_expanded() -> None:
    assert list(expanded("a{b")) == ["a{b"]
    assert list(expanded("a{1..2")) == ["a{1..2"]
    with pytest.raises(UsageError, match="more than 10,000,000 paths"):
        list(expanded("a{0..10000000}"))
    with pytest.raises(UsageError, match=r"\[:digit:\] is not read; write \[0-9\]"):
        path_regex("[[:digit:]]x")


def test_prefix_at_n() -> None:
    found = some(sharded_regex("toy-train.tfrecord@8"))
    assert found[1] == 8
    assert found[0].fullmatch("toy-train.tfrecord-00003-of-00008")
    assert found[0].fullmatch("toy-train.tfrecord-3-of-8.gz")
    assert not found[0].fullmatch("toy-trainXtfrecord-00003-of-00008")
    assert not found[0].fullmatch("toy-train.tfrecord00003-of-00008")
    with_ending = some(sharded_regex("data_@*.parquet"))
    assert with_ending[1] is None
    assert with_ending[0].fullmatch("data_3-of-8.parquet")
    assert not with_ending[0].fullmatch("data_3-of-8.arrow")
    for other in ("a", "a@", "a@0", "a@b", "a@-1", "me@8/a"):
        assert sharded_regex(other.rpartition("/")[2]) is None
