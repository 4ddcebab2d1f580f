"""The datasets and splits that are offered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shardctl.verbs.lint.rules import LINT_RULES
from tests.cli.completion.conftest import Offered
from tests.cli.conftest import Shardctl


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


@pytest.fixture
def places(shardctl: object, tmp_path: Path) -> Path:
    """Layout files and folders in the working folder, among others."""
    for name in ("big.yaml", "big.yml", "mn.json", "notes.txt", "shardctl.yaml", ".hid.yaml"):
        Path(name).touch()
    for name in ("mnt/v1", "mnt/.git", "a b", "-d", "=x", "home"):
        Path(name).mkdir(parents=True)
    for name in ("mnt/-x.yaml", "mnt/l.yaml", "mnt/$(touch x).yaml", "mnt/notes", "--help.yaml"):
        Path(name).touch()
    (tmp_path / "home" / "far").mkdir()
    return Path.cwd()


@pytest.mark.parametrize("option", ["-d ", "--dataset ", "--dataset="])
@pytest.mark.parametrize(
    ("begun", "words"),
    [
        ("big", ["big.yaml", "big.yml"]),
        ("mn", ["mn.json", "mnist", "mnt/"]),
        ("mnt/", ["mnt/l.yaml", "mnt/v1/"]),
        ("mnt/l", ["mnt/l.yaml"]),
        ("./mnt/v", ["./mnt/v1/"]),
        ("./big.ya", ["./big.yaml"]),
        ("../cwd/mn", ["../cwd/mn.json", "../cwd/mnt/"]),
        ("{cwd}/mnt/v", ["{cwd}/mnt/v1/"]),
        ("~/f", ["~/far/"]),
        (".h", [".hid.yaml"]),
        ("mnt/.", ["mnt/.git/"]),
        ("a", None),
        ("-", []),
        ("=", []),
        ("nothere/", []),
        ("big.yaml/", []),
    ],
)
def test_folders_and_layout_files_are_offered_beside_names(
    option: str, begun: str, words: list[str] | None, places: Path, offered: Offered
) -> None:
    found = offered(f"shardctl plan {option}{begun.format(cwd=places)}")
    found = [word.removeprefix("--dataset=") for word in found]
    if words is None:
        assert "a b/" not in found
    else:
        assert sorted(found) == sorted(word.format(cwd=places) for word in words)


def test_record_files_are_offered_by_their_number_of_shards(
    tmp_path: Path, offered: Offered, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("train.tfrecord-0000{}-of-00002", "part-0000{}-of-00002.parquet", "x{}.tar"):
        for shard in range(2):
            (tmp_path / name.format(shard)).touch()
    (tmp_path / "notes.txt").touch()
    monkeypatch.chdir(tmp_path)
    found = {name for name in offered("shardctl plan -d ./") if not name.endswith("/")}
    assert {"./train.tfrecord@2", "./part@2.parquet", "./x0.tar", "./x1.tar"} == found
    for number in range(60):
        (tmp_path / f"many-{number}.tfrecord").touch()
    assert offered("shardctl plan -d ./m") == []
    (tmp_path / "dataset_info.json").touch()
    assert offered("shardctl plan -d ./t") == []


def test_nothing_hostile_is_offered_among_folders_and_files(places: Path, offered: Offered) -> None:
    words = {*offered("shardctl plan -d "), *offered("shardctl plan -d mnt/")}
    assert {"big.yaml", "mnt/", "mnist", "home/"} <= words
    assert not {"-d/", "=x/", "a b/", "shardctl.yaml", "notes.txt", "--help.yaml"} & words
    assert not [word for word in words if "touch" in word or "-x" in word]


def test_a_folder_of_many_files_is_looked_at_in_part(
    offered: Offered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shardctl.cli.completion._MOST_ENTRIES", 5)
    for number in range(20):
        Path(f"x{number}.yaml").touch()
    assert len(offered("shardctl plan -d x")) == 5


def test_codes_come_with_what_they_find(
    shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch, offered: Offered
) -> None:
    assert offered("shardctl lint --explain ") == [rule.code for rule in LINT_RULES]
    assert offered("shardctl lint --select SC001,") == [f"SC001,{r.code}" for r in LINT_RULES]
    titles = {rule.code: rule.title for rule in LINT_RULES}
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "shardctl lint --explain SC061")
    for shell, between in (("fish", "\t"), ("zsh", ":")):
        monkeypatch.setenv("_SHARDCTL_COMPLETE", f"complete_{shell}")
        assert shardctl().stdout == f"SC061{between}{titles['SC061']}\n"


def test_words_of_an_option_are_offered_once(offered: Offered) -> None:
    assert offered("shardctl resume --for ") == ["loop", "keras", "flax"]
    assert offered("shardctl resume --for k") == ["keras"]
    assert offered("shardctl resume --mode exact-") == ["exact-order"]


def test_stages_are_offered_behind_a_bar_and_sources_first(offered: Offered) -> None:
    begun = "shardctl simulate --stages "
    assert offered(f"{begun}'sh") == ["shared", "shuffle", "shard"]
    assert offered(f"{begun}'cache | sh") == ["cache | shuffle", "cache | shard"]
    assert offered(f"{begun}'cache|un") == ["cache|unbatch"]
    assert offered(f"{begun}'zip([ra") == ["zip([range"]
    every = offered(f"{begun}'cache | ")
    assert "cache | repeat" in every
    assert "cache | zip" not in every
    for nothing in ("'shuffle(", "'shuffle(10, s", "'train[:5] rep", "'x="):
        assert offered(f"{begun}{nothing}") == []
