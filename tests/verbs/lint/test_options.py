"""The options of `lint` go over `lint:` of a project, name by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardctl.errors import UsageError
from shardctl.metadata.project_file import Project
from shardctl.verbs.lint.command import LintOptions, usage_of

PROJECT = Project(
    path=Path("/p/shardctl.yaml"),
    lint={"hosts": 8, "eval": "test", "ignore": "SC001,SC002", "take": 5},
)


def test_an_option_replaces_what_the_project_says_under_its_name() -> None:
    assert LintOptions().arguments(PROJECT) == {
        "hosts": 8,
        "eval": ("test",),
        "ignore": ("SC001", "SC002"),
        "take": 5,
    }
    given = LintOptions(num_hosts=2, evaluated=["a", "b"], ignore=["SC003, SC004", "SC005"])
    assert given.arguments(PROJECT) == {
        "hosts": 2,
        "eval": ("a", "b"),
        "ignore": ["SC003", "SC004", "SC005"],
        "take": 5,
    }
    assert LintOptions().arguments(Project()) == {}


def test_what_is_given_keeps_false() -> None:
    assert LintOptions(autocache=False, seeds=(1, 2)).given() == {
        "autocache": False,
        "seeds": (1, 2),
    }


@pytest.mark.parametrize(
    ("options", "project", "said"),
    [
        (
            LintOptions(),
            Project(path=Path("/p/shardctl.yaml"), lint={"hots": 1}),
            "^/p/shardctl.yaml: hots: no such setting",
        )
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_its_place(
    options: LintOptions, project: Project, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        options.arguments(project)


def test_usage_has_the_defaults_of_tfds() -> None:
    usage = usage_of({"open_files": 7})
    assert (usage.hosts, usage.take, usage.seeds) == (None, None, ())
    assert (usage.assert_cardinality, usage.try_autocache) == (True, True)
    assert usage.max_open_files == 7
    assert usage_of({"autocache": False, "hosts": 3}).try_autocache is False
