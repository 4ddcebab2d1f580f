"""The datasets and splits that are offered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.completion.conftest import Offered


def test_datasets_are_those_of_the_chosen_data_dir_and_the_catalog(
    offered: Offered, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "birds" not in offered("shardctl plan -d ")
    chosen = f"shardctl plan --data-dir {data_dir} -d "
    assert {"birds", "bits", "mnist"} <= set(offered(chosen))
    assert offered(f"{chosen}bi") == ["birds", "bits"]
    assert offered(f"{chosen}bird") == ["birds", "birds/blue", "birds/red"]
    assert offered(f"{chosen}birds/r") == ["birds/red"]
    assert offered(f"{chosen}bits:") == ["bits:2.0.0", "bits:2.1.0"]
    assert offered(f"{chosen}bits:2.0.0 ") == ["left", "right", "all"]
    monkeypatch.setenv("TFDS_DATA_DIR", str(data_dir))
    assert offered("shardctl plan -d bi") == ["birds", "bits"]
    monkeypatch.delenv("TFDS_DATA_DIR")
    Path("shardctl.yaml").write_text(f"data_dir: {data_dir}\n", encoding="utf-8")
    assert offered("shardctl plan -d bi") == ["birds", "bits"]
    assert offered("shardctl plan -d bits l") == ["left"]


def test_a_name_that_a_shell_or_a_terminal_would_act_on_is_not_offered(
    offered: Offered, data_dir: Path
) -> None:
    assert offered(f"shardctl plan --data-dir {data_dir} -d bad") == []


def test_a_broken_dataset_offers_nothing_in_silence(offered: Offered) -> None:
    Path("layout.yaml").write_text("splits: [\x00", encoding="utf-8")
    assert offered("shardctl plan -d layout.yaml ") == ["all"]
    Path("shardctl.yaml").write_text("dataset: [", encoding="utf-8")
    assert offered("shardctl plan ") == ["all"]
    assert "mnist" in offered("shardctl plan -d ")


HOSTILE = (
    *("--help", "-d", "--output=/tmp/x", "$(touch x)", "`touch x`", "a;touch x", "a'b", 'a"b'),
    *(
        "=ls",
        "~root",
        "{a,b}",
        "x[ab]",
        "^a^b",
        "!1",
        "a b",
        "a\\b",
        "#a",
        "*a",
        "a&b",
        "a|b",
        ">a",
    ),
)


def test_no_name_that_would_act_in_a_shell_is_offered(offered: Offered) -> None:
    splits = {
        name: {"shard_lengths": [1], "filepath_template": f"{index}-{{SHARD_INDEX}}"}
        for index, name in enumerate(("fine", *HOSTILE))
    }
    Path("l.json").write_text(json.dumps({"name": "x", "splits": splits}))
    assert offered("shardctl plan -d l.json ") == ["fine", "all"]
    assert offered("shardctl plan -d l.json train+") == ["train+fine", "train+all"]
    assert "--output=/tmp/x" not in offered("shardctl plan -d l.json --")
    assert offered("shardctl plan -d l.json -- --") == []


@pytest.mark.parametrize("name", HOSTILE)
def test_no_folder_of_a_name_that_would_act_is_offered(
    name: str, offered: Offered, tmp_path: Path
) -> None:
    for folder in (name.replace("/", "_"), "fine"):
        path = tmp_path / "dirs" / folder / "1.0.0"
        path.mkdir(parents=True)
        (path / "dataset_info.json").write_text("{}")
    chosen = f"shardctl plan --data-dir {tmp_path / 'dirs'} -d "
    assert set(offered(chosen)) - set(offered("shardctl plan -d ")) == {"fine"}
    assert not [word for word in offered(f"{chosen}-") if "tmp" in word]
