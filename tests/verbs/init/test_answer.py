"""A shardctl.yaml as text: settings that are stated, and those that are comments."""

from __future__ import annotations

import yaml

from shardctl.verbs.init.answer import DraftSetting, ProjectDraft
from shardctl.verbs.init.view import project_text


def text_of(*read: DraftSetting) -> str:
    dataset = DraftSetting(name="dataset", value=["a b", "#c"], meaning="What.", stated=True)
    data_dir = DraftSetting(name="data_dir", value=None, meaning="Where.")
    return "".join(
        project_text(ProjectDraft(dataset=dataset, data_dir=data_dir, read=read, lint=()))
    )


def test_values_are_quoted_as_yaml_needs_them() -> None:
    settings = [
        DraftSetting(name=f"s{at}", value=value, meaning="A value.", stated=True)
        for at, value in enumerate(["0/8", "no", True, None, -(10**30), ["x: y", 'a"b'], "\x1b[1m"])
    ]
    document = yaml.safe_load(text_of(*settings))
    assert document["dataset"] == ["a b", "#c"]
    assert list(document["read"].values()) == [setting.value for setting in settings]
    assert text_of(*settings).replace("\n", "").isprintable()


def test_a_meaning_stands_behind_or_before_and_is_a_comment_in_any_case() -> None:
    short = DraftSetting(name="cycle", value=16, meaning="Files.", takes="N|auto")
    long = DraftSetting(name="block", value=4, meaning=f"{'word ' * 40}\nend: 3", stated=True)
    lines = text_of(short, long).splitlines()
    assert "  #cycle: 16                  # N|auto: Files." in lines
    at = lines.index("  block: 4")
    assert lines[at - 1].startswith("  # ")
    assert max(map(len, lines)) <= 100
    assert yaml.safe_load("\n".join(lines))["read"] == {"block": 4}
