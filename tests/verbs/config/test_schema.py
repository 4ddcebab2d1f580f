"""The JSON schema of shardctl.yaml takes what the reader takes, as jsonschema reads it."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from shardctl.errors import ShardctlError
from shardctl.metadata.project_file import PROJECT_KEYS, read_project
from shardctl.settings.names import SETTING_BY_ALIAS, SHARED_NAMES, settings_from_document
from shardctl.settings.table import SETTING_BY_NAME
from shardctl.verbs.config.schema import project_schema
from shardctl.verbs.lint.answer import LINT_KEYS, lint_arguments
from tests.cli.conftest import Shardctl
from tests.verbs.settings_options import settings_values

jsonschema = pytest.importorskip("jsonschema", reason="it comes with check-jsonschema")
SCHEMA = jsonschema.Draft202012Validator(project_schema())


def takes(document: object) -> bool:
    """Return whether the schema takes a document."""
    return bool(SCHEMA.is_valid(document))


def reads(document: dict[str, Any], folder: Path) -> bool:
    """Return whether shardctl reads a document as its file."""
    path = folder / "shardctl.yaml"
    path.write_text(yaml.safe_dump(document))
    try:
        project = read_project(path)
        settings_from_document(project.read)
        lint_arguments(project.lint)
    except ShardctlError:
        return False
    return True


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(project_schema())


def test_every_key_of_the_reader_is_in_it_and_no_other() -> None:
    assert {*PROJECT_KEYS} == {*project_schema()["properties"]}
    for key in PROJECT_KEYS:
        assert takes({key: None})
    for name in (*SETTING_BY_NAME, *SETTING_BY_ALIAS):
        value = "0/2" if name == "host" else None
        for written in (name, name.replace("_", "-")):
            assert takes({"read": {written: value}}) == (name not in ("repeat", "num_epochs"))
    for name in LINT_KEYS:
        assert takes({"lint": {name: None, name.replace("_", "-"): None}})


@pytest.mark.parametrize("name", [*SHARED_NAMES, "shufle_seed", "cycles", "Cycle", "cycle ", "x"])
def test_an_unknown_key_is_refused_by_both(name: str, tmp_path: Path) -> None:
    for document in ({name: 1}, {"read": {name: 1}}, {"lint": {name: 1}}):
        assert not takes(document)
        assert not reads(document, tmp_path)


@given(settings_values)
def test_settings_that_are_read_are_in_the_schema(values: dict[str, object]) -> None:
    listed = {"file_order": ["b", "a"]} if "file_order" in values else {}
    document = copy.deepcopy({**values, **listed})
    settings_from_document(document)
    assert takes({"dataset": "mnist", "read": document})


_ANY = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from(
        ["", "auto", "1/2", "a", "even", "grain", "5.2", "5.2+cpu", "keras-fit", "error", 1.5]
    ),
    st.integers(2**63 - 1, 2**63),
    st.lists(st.sampled_from(["a", "b", 1, ""]), max_size=2),
)


@given(st.sampled_from([*SETTING_BY_NAME]), _ANY)
def test_a_value_is_taken_by_both_or_by_none(name: str, value: object) -> None:
    if name == "stages":
        return  # the schema does not read what a text or its arguments say
    try:
        settings_from_document({name: value})
    except ShardctlError:
        assert not takes({"read": {name: value}})
    else:
        assert takes({"read": {name: value}})


@given(st.sampled_from(LINT_KEYS), _ANY)
def test_a_value_of_lint_is_taken_by_both_or_by_none(name: str, value: object) -> None:
    if name == "seeds" and isinstance(value, str):
        return  # numbers with commas, of which the schema sees a text
    try:
        lint_arguments({name: value})
    except ShardctlError:
        assert not takes({"lint": {name: value}})
    else:
        assert takes({"lint": {name: value}})


@pytest.mark.parametrize("document", [{"lint": {"specs": ""}}, {"dataset": ""}, {"dataset": [""]}])
def test_a_name_is_no_empty_text(document: dict[str, object]) -> None:
    assert not takes(document)


def test_stages_are_texts_or_calls_that_there_are() -> None:
    for stages in ("cache | repeat", ["cache", {"shuffle": {"buffer": 9}}, {"batch": 3}], []):
        assert takes({"stages": stages})
        assert takes({"read": {"stages": stages}})
    for wrong in (3, [{"shufle": 3}], [{"batch": 3, "repeat": 2}], [3]):
        assert not takes({"stages": wrong})


def test_init_writes_it_beside_the_file_that_names_it(shardctl: Shardctl) -> None:
    assert shardctl("init", "-d", "mnist", "--cycle", "3").exit_code == 0
    first = Path("shardctl.yaml").read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=shardctl.schema.json"
    assert json.loads(Path("shardctl.schema.json").read_text()) == project_schema()
    assert json.loads(shardctl("config", "--schema").stdout) == project_schema()
    text = Path("shardctl.yaml").read_text()
    with_defaults = re.sub(r"^( *)#(\w+: .*)$", r"\1\2", text, flags=re.M)
    for each in (text, with_defaults):
        assert takes(yaml.safe_load(each))
