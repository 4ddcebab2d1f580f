"""The settings in force as a table, a document and rows."""

from __future__ import annotations

import json

import pytest
import yaml

from shardctl.dataset.dataset import Dataset, Split
from shardctl.draw.tables import PLAIN
from shardctl.files.documents import to_csv, to_json, to_yaml
from shardctl.verbs.config.answer import Config, Origin, SettingInForce
from shardctl.verbs.config.view import (
    config_document,
    config_rows,
    config_table,
    origin_words,
)

CONFIG = Config(
    dataset=Dataset(name="toy", splits=(Split(name="train", shard_lengths=(3,)),), origin="made"),
    files=("/p/a/shardctl.yaml", "/p/shardctl.yaml"),
    settings=(
        SettingInForce(name="dataset", value=["a", "b"], given=["a", "b"]),
        SettingInForce(
            name="read.cycle",
            value=32,
            given="auto",
            origin=Origin(source="option", by="--cycle"),
        ),
        SettingInForce(
            name="read.shuffle_seed",
            value=None,
            given=7,
            origin=Origin(source="file", file="/p/a/shardctl.yaml", line=9),
        ),
        SettingInForce(name="read.reverse", value=False),
        SettingInForce(name="lint.seeds", value=[]),
    ),
)


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths as they are shown from /p/a."""
    monkeypatch.setattr("os.getcwd", lambda: "/p/a")


def test_a_table_shows_what_was_written_where_it_comes_to_something_else() -> None:
    assert "".join(config_table(CONFIG, PLAIN)) == (
        "toy (made)\n"
        "settings of shardctl.yaml\n"
        "not read, being farther up: ../shardctl.yaml\n"
        "\n"
        "setting            value         origin\n"
        "dataset            a, b          default\n"
        "read.cycle         32 (auto)     option --cycle\n"
        "read.shuffle_seed  7 (not read)  shardctl.yaml line 9\n"
        "read.reverse       false         default\n"
        "lint.seeds         none          default\n"
    )


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        (Origin(source="environment", by="SHARDCTL_DATASET"), "environment SHARDCTL_DATASET"),
        (Origin(source="file", file="/p/shardctl.yaml", line=2), "../shardctl.yaml line 2"),
        (Origin(source="file", file="/p/shardctl.yaml"), "../shardctl.yaml"),
        (Origin(source="folder"), "this folder"),
        (Origin(source="argument", by="buffer"), "argument buffer="),
        (Origin(source="implied", by="read.shuffle_seed"), "follows from read.shuffle_seed"),
        (Origin(source="implied"), "follows from the others"),
        (Origin(by="TFDS"), "default (TFDS's)"),
    ],
)
def test_an_origin_in_words(origin: Origin, words: str) -> None:
    assert origin_words(origin) == words


def test_documents_say_the_same_and_rows_have_values_as_yaml() -> None:
    document = config_document(CONFIG)
    assert json.loads("".join(to_json(document))) == yaml.safe_load("".join(to_yaml(document)))
    assert list(document)[:3] == ["format_version", "kind", "dataset"]
    assert document["settings"][2] == {
        "name": "read.shuffle_seed",
        "value": None,
        "given": 7,
        "origin": "file",
        "by": None,
        "file": "/p/a/shardctl.yaml",
        "line": 9,
    }
    lines = "".join(to_csv(config_rows(CONFIG))).splitlines()
    assert lines[0] == "name,value,given,origin,by,file,line"
    assert lines[1] == 'dataset,"[a, b]","[a, b]",default,,,'
    assert lines[3] == "read.shuffle_seed,,7,file,,/p/a/shardctl.yaml,9"
