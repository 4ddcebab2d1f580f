"""Settings of shardctl.yaml are found where an editor shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardctl.readers.config_lines import setting_lines

TEXT = """\
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
    path.write_text(TEXT)
    lines = setting_lines(path)
    assert lines == {"epochs": 4, "shuffle_seed": 6, "eval": 7, "hosts": 8}
    shown = TEXT.splitlines()
    assert all(name.replace("_", "-") in shown[line - 1] for name, line in lines.items())


@pytest.mark.parametrize("text", ["", "# nothing", "dataset: mnist", "read:\nlint:", "[]", "7"])
def test_a_file_without_settings_has_no_lines(tmp_path: Path, text: str) -> None:
    path = tmp_path / "shardctl.yaml"
    path.write_text(text)
    assert setting_lines(path) == {}
