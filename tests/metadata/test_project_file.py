"""shardctl.yaml is found from any folder below it, and no typo in it passes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import strategies as st

from shardctl.errors import DatasetError
from shardctl.metadata.project_file import PROJECT_KEYS, find_project
from tests.cases import check_cases, few_or_many, some
from tests.golden import assert_answers
from tests.strategies import damaged, documents, error_line

TEXT = b"dataset: mnist\ndata_dir: data\nread: {cycle: 4}\nlint: {ignore: [SC001]}\n"


def test_the_nearest_file_is_taken(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "shardctl.yaml").write_bytes(TEXT)
    project = find_project(inner)
    assert project.path == tmp_path / "shardctl.yaml"
    assert project.dataset == ("mnist",)
    assert project.data_dir == str(tmp_path / "data")
    assert dict(project.read) == {"cycle": 4}
    assert dict(project.lint) == {"ignore": ["SC001"]}
    (tmp_path / "a" / "shardctl.yaml").write_text("dataset: [x, ../y]")
    nearer = find_project(inner)
    assert nearer.dataset == ("x", "../y")
    assert nearer.path == tmp_path / "a" / "shardctl.yaml"


def test_a_file_too_large_for_settings_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    (tmp_path / "shardctl.yaml").write_bytes(b"lint: {ignore: [" + b"SC001, " * 300_000 + b"]}")
    with pytest.raises(DatasetError, match="2,100,018 bytes; at most 2,097,152 are read"):
        find_project(tmp_path)


def test_stages_may_be_beside_the_settings_or_among_them(tmp_path: Path) -> None:
    path = tmp_path / "shardctl.yaml"
    path.write_text("read: {cycle: 4}\nstages: [cache, take: 3]\n")
    assert find_project(tmp_path).read == {"cycle": 4, "stages": ["cache", {"take": 3}]}
    assert find_project(tmp_path).setting_lines() == {"cycle": 1, "stages": 2}
    path.write_text("read:\n  cycle: 4\n  stages: cache | take(3)\n")
    assert find_project(tmp_path).read == {"cycle": 4, "stages": "cache | take(3)"}
    assert find_project(tmp_path).setting_lines() == {"cycle": 2, "stages": 3}
    path.write_text("stages:\nread: {stages: cache}\n")
    assert find_project(tmp_path).read == {"stages": "cache"}
    path.write_text("stages: cache\nread: {stages: cache}\n")
    with pytest.raises(DatasetError, match=r"stages and read\.stages are one setting; keep one"):
        find_project(tmp_path)


def test_a_broken_file_is_refused_by_name_line_and_rule(tmp_path: Path) -> None:
    def answer(question: str) -> str:
        (tmp_path / "shardctl.yaml").write_text(ast.literal_eval(question))
        return some(error_line(lambda: find_project(tmp_path))).replace(f"{tmp_path}/", "")

    assert_answers(Path(__file__).parent / "golden" / "project_files.txt", answer)


@few_or_many(80, 400)
def test_nonsense_gives_settings_or_one_line_of_error(tmp_path: Path, num_cases: int) -> None:
    import yaml

    def check(data: bytes) -> None:
        (tmp_path / "shardctl.yaml").write_bytes(data)
        error_line(lambda: find_project(tmp_path))

    values = documents(PROJECT_KEYS).map(lambda value: yaml.safe_dump(hex_free(value)).encode())
    check_cases(values | damaged(TEXT) | st.binary(), check, num_cases)


def hex_free(value: object) -> object:
    if isinstance(value, dict):
        return {key: hex_free(item) for key, item in value.items()}
    if isinstance(value, list):
        return [hex_free(item) for item in value]
    return 10**40 if isinstance(value, int) and abs(value) > 10**40 else value


LINES = """\
# how this project reads
dataset: mnist
read:
  epochs: 3   # all of them

  shuffle-seed: 1
lint: {eval: test,
       hosts: 8}
"""


def test_a_setting_is_at_the_line_of_its_name(tmp_path: Path) -> None:
    path = tmp_path / "shardctl.yaml"
    path.write_text(LINES)
    lines = find_project(tmp_path).setting_lines()
    assert lines == {"epochs": 4, "shuffle_seed": 6, "eval": 7, "hosts": 8}
    assert find_project(tmp_path).lines() == {
        "dataset": 2,
        "read": 3,
        "read.epochs": 4,
        "read.shuffle_seed": 6,
        "lint": 7,
        "lint.eval": 7,
        "lint.hosts": 8,
    }
    shown = LINES.splitlines()
    assert all(name.replace("_", "-") in shown[line - 1] for name, line in lines.items())


def test_a_setting_under_an_alias_is_there_under_both_names(tmp_path: Path) -> None:
    path = tmp_path / "shardctl.yaml"
    path.write_text("read:\n  interleave-cycle-length: 4\n  batch_size: 8\nlint: {take: 3}\n")
    lines = find_project(tmp_path).setting_lines()
    assert lines == {
        "interleave_cycle_length": 2,
        "cycle": 2,
        "batch_size": 3,
        "batch": 3,
        "take": 4,
    }
