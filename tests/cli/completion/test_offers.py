"""What is offered at the cursor, and what bash puts in place of the text there."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardctl.cli.completion import in_place_of, split_line
from tests.cli.completion.conftest import Offered
from tests.cli.conftest import Shardctl
from tests.golden import assert_evaluated


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


# fmt: off
HOSTILE = (
    "a b", "--help", "-d", "$(x)", "`x`", "a;x", "a'b", "=ls", "~root", "{a,b}", "x[ab]", "!1",
    "a|b", ">a", "a\\b", "#a", "*a", "a&b", "^a^b", "x\x1b[31m",
)
# fmt: on


def test_no_folder_of_a_name_that_would_act_is_offered(offered: Offered, tmp_path: Path) -> None:
    for folder in (*HOSTILE, "fine"):
        path = tmp_path / "dirs" / folder / "1.0.0"
        path.mkdir(parents=True)
        (path / "dataset_info.json").write_text("{}")
    chosen = f"shardctl plan --data-dir {tmp_path / 'dirs'} -d "
    assert set(offered(chosen)) - set(offered("shardctl plan -d ")) == {"fine"}
    assert not [word for word in offered(f"{chosen}-") if "tmp" in word]


@pytest.mark.parametrize("asked", [{"COMP_WORDS": "shardctl pl"}, {}])
def test_a_broken_request_gets_no_answer(
    asked: dict[str, str], shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"_SHARDCTL_COMPLETE": "complete_bash", **asked}.items():
        monkeypatch.setenv(name, value)
    ran = shardctl()
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "", "")


def test_bash_gets_what_belongs_in_place_of_its_text() -> None:
    def put(line: str, text: str, word: str) -> str | None:
        found = in_place_of(text, word, split_line(line)[-1], line)
        if found is not None:  # then the line reads as the word
            assert split_line(line.removesuffix(text) + found)[-1] == word
        return found

    assert_evaluated(globals(), "in_place", put)
