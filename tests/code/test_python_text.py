"""Literals, calls, comments, imports, builders, hosts and settings as code."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import strategies as st

import shardctl
from shardctl.base.text import inert
from shardctl.code import reader
from shardctl.code.python_text import (
    HOST_CODE,
    HostCode,
    code_of_host,
    comment,
    literal,
    settings_code,
)
from shardctl.dataset.dataset import COUNTED_FILES, Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UsageError
from shardctl.metadata.reference import merge_datasets
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import HOST_MODES, Host, HostBy
from shardctl.stages.text import parse_stages
from tests.cases import check_cases

HOSTILE = [*"'\"\\#{}\0é\u202e\ud800", "'\"", '"""', "a\nb", "%s", "##[error]x", "\\##vso[task.x]"]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_stays_a_literal(text: str) -> None:
    source = literal(text)
    assert ast.literal_eval(source) == text
    assert source.isprintable()
    assert inert(source) == source
    assert all(inert(line) == line for line in comment(text))


def test_any_text_stays_a_literal_and_a_comment() -> None:
    def check(text: str) -> None:
        assert ast.literal_eval(literal(text)) == text
        for line in comment(text):
            assert line.startswith("# ")
            assert len(line.splitlines()) == 1

    check_cases(st.text(), check, 100)


def test_folders_are_read_in_their_order() -> None:
    def folder(data_dir: str | None, version: str) -> Dataset:
        files = ShardFiles(data_dir=data_dir, pattern="d-\0", num_shards=1)
        train = Split(name="train", shard_lengths=(3,), files=(files,))
        return Dataset(name="d", splits=(train,), data_dir=data_dir, version=version)

    merged = merge_datasets([folder("/monday", "1.0.0"), folder(None, "1.0.1")])
    assert list(reader.builder(merged)) == [
        "builder = tfds.builder_from_directories(",
        "    [",
        '        "/monday",',
        '        tfds.builder("d:1.0.1").data_dir,',
        "    ]",
        ")",
    ]


def test_counted_files_are_found_by_what_named_them() -> None:
    split = Split(name="train", shard_lengths=(2,))
    files = Dataset(name="d", splits=(split,), origin=COUNTED_FILES, reference="/data/t-*")
    lines = list(reader.builder(files))
    assert lines[1:] == ['builder = shardctl.tfds.record_files("/data/t-*")']
    assert list(reader.imports(lines)) == [reader.BRIDGE, reader.TFDS]
    other = replace(files, reference="/data/u@2", splits=(replace(split, name="test"),))
    both = merge_datasets([files, other])
    assert list(reader.builder(both))[1:] == [
        'builder = shardctl.tfds.record_files(["/data/t-*", "/data/u@2"])'
    ]
    with pytest.raises(UsageError, match="d: its files are GZIP, which TFDS does not read"):
        list(reader.builder(replace(files, compression="GZIP")))
    with pytest.raises(UsageError, match="d: no code finds its files; write them down with `shard"):
        list(reader.builder(replace(files, reference=None)))


@pytest.mark.parametrize(
    "settings",
    [
        ReadSettings(),
        ReadSettings(cycle="auto", cpus=4, shuffle_seed=-(2**70), reshuffle=False),
        ReadSettings(file_order=("it's", 'a"b'), host=Host(index=1, count=2), host_by="files"),
        ReadSettings(
            stages=parse_stages("cache | shuffle(3, seed=1) | batch(2)"), loop="keras-fit"
        ),
    ],
)
def test_it_makes_the_settings(settings: ReadSettings) -> None:
    names: dict[str, Any] = {"shardctl": shardctl}
    exec("\n".join(settings_code(settings)), names)
    assert names["settings"] == settings


def test_every_mode_has_code_that_says_which_host_reads() -> None:
    assert set(HOST_CODE) == set(HOST_MODES)
    for word in get_args(HostBy):
        code = code_of_host(ReadSettings(host=Host(index=1, count=3), host_by=word))
        assert any("host" in text and "num_hosts" in text for text in code)
        assert code_of_host(ReadSettings(host_by=word)) == HostCode()


def test_modules_are_imported_where_they_are_used() -> None:
    assert list(reader.imports(['x = "photos.tfrecord/os.py"', "# tf.random"])) == [reader.TFDS]
    assert list(reader.imports(["y = f(os.fspath(x))", "tf.random.set_seed(1)"])) == [
        "import os",
        "",
        reader.TENSORFLOW,
        reader.TFDS,
    ]
