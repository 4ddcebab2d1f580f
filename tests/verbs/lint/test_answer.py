"""What lint finds, and what it leaves alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import COUNTED_LAYOUT, Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.draw.tables import PLAIN
from shardctl.errors import ShardctlError, UsageError
from shardctl.files.documents import to_json
from shardctl.metadata.project_file import SettingOrigins
from shardctl.settings.names import settings_from_document
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.verbs.lint import rules
from shardctl.verbs.lint import view as rendering
from shardctl.verbs.lint.answer import (
    Lint,
    chosen_rules,
    lint,
    lint_arguments,  # noqa: F401  # of the answers on file
)
from shardctl.verbs.lint.context import Usage
from shardctl.verbs.lint.rules import LINT_RULES
from tests.cases import FUZZ, check_cases
from tests.golden import assert_evaluated
from tests.strategies import datasets
from tests.verbs.lint.lint_cases import codes, dataset, linted
from tests.verbs.settings_options import settings_values

CODES = [rule.code for rule in LINT_RULES]
FEW: dict[str, Any] = {"usage": {"hosts": 4}, "layout": {"num_bytes": 1000}}
ORDERED: dict[str, Any] = {"usage": {"hosts": 8}, "layout": {"ordered": True}}


def test_a_retired_code_is_ignored_as_before_and_not_selected() -> None:
    assert chosen_rules(ignore=["SC075", "sc017"]) == chosen_rules(ignore=["SC017"])
    with pytest.raises(UsageError, match="no finding has this code"):
        chosen_rules(["SC075"])


def evaluates(folder: str, names: list[str]) -> bool:
    files = ShardFiles(num_shards=len(names), names=tuple(names))
    split = Split(name="files", shard_lengths=(20,) * len(names), files=(files,))
    data = Dataset(name=folder, splits=(split,), data_dir=f"/data/{folder}", origin=COUNTED_LAYOUT)
    found = lint(data, "files", {"cycle": 1}, select=["SC017"])
    (read,) = found.context.reads
    assert bool(found.findings) is not read.evaluates
    return read.evaluates


def test_codes_are_stable_numbers_in_groups_of_ten() -> None:
    assert sorted(CODES) == CODES
    assert len(set(CODES)) == len(CODES)
    assert all(re.fullmatch(r"SC0[0-9][1-9]", code) for code in CODES)
    names = [rule.name for rule in LINT_RULES]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in names)


def test_every_story_is_that_of_a_rule() -> None:
    stories = Path(rules.__file__).parents[1].joinpath("stories.md").read_text("utf-8")
    assert re.findall(r"^## (\S+)", stories, re.MULTILINE) == CODES
    assert set(re.findall(r"^### (.*)$", stories, re.MULTILINE)) == {
        *("What helps", "Where it was seen", "Example")
    }


@pytest.mark.parametrize("rule", LINT_RULES, ids=CODES)
def test_a_story_is_whole_sentences_and_an_example(rule: Any) -> None:
    story = rule.story
    for text in (*story.happens.split("\n\n"), story.source, story.fix):
        assert text.endswith((".", ")")), text
        assert text.isascii()
        assert "  " not in text
    assert len(story.happens) > 150
    assert story.example.startswith("shardctl lint ")
    assert rule.title[0] not in "AEIOU"
    assert len(f"{rule.code}  {rule.severity:8}  {rule.title}") <= 80


def test_the_default_is_train_and_what_is_evaluated() -> None:
    def reads(found: Lint) -> list[tuple[str, bool]]:
        return [(read.spec, read.evaluates) for read in found.context.reads]

    assert reads(lint(dataset())) == [("train", False)]
    assert reads(lint(dataset(), evaluated="test")) == [("train", False), ("test", True)]
    assert reads(lint(dataset(), (), evaluated=["test"])) == [("test", True)]
    assert reads(lint(dataset(), ["test", "train+test"])) == [("test", True), ("train+test", False)]


def test_hosts_are_named_once_or_alike() -> None:
    settings = ReadSettings(host=Host(index=1, count=8))
    assert lint(dataset(), settings=settings, usage=Usage(hosts=8)).context.num_hosts == 8
    with pytest.raises(UsageError, match=r"--host 1/8 and --hosts 4: two numbers of hosts"):
        lint(dataset(), settings=settings, usage=Usage(hosts=4))


def chosen(select: list[str], ignore: list[str]) -> list[str]:
    return [rule.code for rule in chosen_rules(select, ignore)]


def test_what_is_chosen_and_given_is_on_file() -> None:
    assert_evaluated(globals(), "arguments", codes, linted)


numbers = st.sampled_from([1, 2, 3, 7, 16, 40, 1000, 2**62])
flags: st.SearchStrategy[bool | None] = st.sampled_from([None, True, False])


# A list of files is of one dataset; other loaders refuse what they do not have.
any_settings = settings_values.filter(lambda values: "loader" not in values).map(
    lambda values: ReadSettings(
        **settings_from_document({k: v for k, v in values.items() if k != "file_order"})
    )
)


@st.composite
def anything(draw: st.DrawFn) -> tuple[Any, ...]:
    """A dataset, specs of it, settings and a usage."""
    found = draw(datasets(max_shards=6))
    names = [split.name for split in found.splits]
    parts = ["", "[:50%]", "[1%:99.5%]", "[:0shard]", "[:1shard]", "[-1shard:]", "[5%:]", "[:1]"]
    specs = st.lists(st.sampled_from([*(n + p for n in names for p in parts), "all"]), max_size=3)
    usage = Usage(
        hosts=draw(st.none() | st.integers(1, 9)),
        take=draw(st.none() | numbers),
        as_data_source=draw(flags),
        assert_cardinality=draw(st.booleans()),
        try_autocache=draw(st.booleans()),
        seeds=tuple(draw(st.lists(st.integers(), max_size=3))),
        max_open_files=draw(st.none() | numbers),
    )
    sums = draw(specs.map(lambda some: ["+".join(some)] if some else None) | specs)
    return found, sums, draw(specs), draw(any_settings), usage


def report_or_error(case: tuple[Any, ...]) -> str | None:
    """Check the report of a case and return None, or the error that there is in its place."""
    found, specs, evaluated, settings, usage = case
    try:
        report = lint(found, specs, settings, evaluated=evaluated, usage=usage)
    except ShardctlError as error:
        return str(error)
    for finding in report.findings:
        assert finding.rule in report.rules
        for text in (finding.why, finding.fix):
            assert text.isprintable()
            assert text
            # But for a split of that name.
            assert "None" not in text or any("None" in split.name for split in found.splits)
        assert set(finding.specs) <= {read.spec for read in report.context.reads}
    origins = SettingOrigins(lines={})
    assert "".join(rendering.lint_table(report, origins, PLAIN))
    assert "".join(to_json(rendering.lint_document(report, origins)))
    annotations = list(rendering.lint_annotations(report, origins))
    assert len(annotations) == len(report.findings)
    assert all(line.count("\n") == 1 for line in annotations)
    return None


REFUSALS = (
    "two numbers of hosts",
    "no split given",
    "is outside",
    "is too many",
    "'all' takes no slice",
)


def never_fails(case: tuple[Any, ...]) -> None:
    refusal = report_or_error(case)
    assert refusal is None or any(words in refusal for words in REFUSALS), refusal


@pytest.mark.long
def test_whatever_the_settings_are_there_is_a_report() -> None:
    check_cases(anything(), never_fails, 25)


@pytest.mark.fuzz
def test_whatever_the_settings_are_there_is_a_report_fuzzed() -> None:
    check_cases(anything(), never_fails, FUZZ)
