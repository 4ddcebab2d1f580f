"""Which settings are in force, and who says so."""

from __future__ import annotations

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.config.answer import Origin, lint_in_force
from shardctl.verbs.config.view import origin_words
from shardctl.verbs.lint.context import Usage


def test_the_settings_of_lint_have_the_defaults_of_the_dataset() -> None:
    splits = (Split.even(name="test", num_examples=9, num_shards=1),)
    dataset = Dataset(name="d", splits=splits, file_format="array_record")
    settings = ReadSettings()
    found = lint_in_force({"ignore": ("SC001",)}, Usage(hosts=4), settings, dataset)
    assert (found["specs"], found["hosts"], found["as_data_source"]) == (["test"], 4, True)
    assert (found["ignore"], found["select"], found["eval"]) == (["SC001"], [], [])
    assert (found["fail_on"], found["autocache"]) == ("notice", True)
    unknown = lint_in_force({"hosts": 4}, Usage(hosts=4), settings, None)
    assert (unknown["specs"], unknown["hosts"], unknown["as_data_source"]) == (None, 4, None)


def test_where_a_spec_has_to_be_chosen_there_is_none() -> None:
    splits = tuple(Split.even(name=name, num_examples=9, num_shards=1) for name in ("a", "b"))
    dataset = Dataset(name="d", splits=splits)
    assert lint_in_force({}, Usage(), ReadSettings(), dataset)["specs"] is None


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        (Origin(source="file", file="/p/shardctl.yaml"), "../shardctl.yaml"),
        (Origin(source="argument", by="buffer"), "argument buffer="),
        (Origin(source="implied"), "follows from the others"),
    ],
)
def test_an_origin_in_words(origin: Origin, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getcwd", lambda: "/p/a")
    assert origin_words(origin) == words
