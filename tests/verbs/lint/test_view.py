"""Findings as people, programs and GitHub read them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from shardctl.draw.tables import PLAIN, Screen
from shardctl.files.documents import to_csv, to_json, to_yaml
from shardctl.metadata.project_file import SettingOrigins
from shardctl.verbs.lint import view
from shardctl.verbs.lint.rules import LINT_RULES
from tests.draw.github_runner import as_github_reads
from tests.golden import assert_golden
from tests.verbs.lint.lint_cases import SEEDED, linted

SETTLED = SettingOrigins(file="a/shardctl.yaml", lines={"epochs": 4, "hosts": 9})
GUIDE = Path(__file__).parents[3] / "shardctl" / "guide" / "lint.md"


def test_findings_are_those_on_file() -> None:
    """As a table, a document but for its rules, rows and annotations."""
    found = linted("train[:60%]", evaluated=("train[50%:]",), epochs=2)
    document = json.loads("".join(to_json(view.lint_document(found, SETTLED))))
    assert document == yaml.safe_load("".join(to_yaml(view.lint_document(found, SETTLED))))
    assert document.pop("rules") == [rule.code for rule in LINT_RULES]
    annotations = list(view.lint_annotations(found, SETTLED))
    level, properties, message = as_github_reads(annotations[0])
    assert (level, properties) == ("error", {"title": "SC041"})
    assert message.splitlines()[1] == "fix: train on train[:3200]"
    plain = "".join(view.lint_table(found, SETTLED, PLAIN))
    shown = "".join(view.lint_table(found, SETTLED, Screen(color=True)))
    assert re.sub(r"\x1b\[[\d;]*m", "", shown) == plain
    parts = [plain, shown.replace("\x1b", "\\e"), *to_yaml(document)]
    parts += [*to_csv(view.lint_rows(found, SETTLED)), *annotations]
    assert_golden(Path(__file__).with_name("golden") / "views.txt", "".join(parts))


def test_rules_and_a_story_are_those_on_file() -> None:
    rules = [rule for rule in LINT_RULES if rule.code in ("SC007", "SC041")]
    parts = [
        *view.rules_table(rules, PLAIN),
        *view.rules_table(rules, Screen(width=60, color=True), stories=True),
        *to_yaml(view.rules_document(rules)),
        *to_csv(view.rules_rows(rules)),
    ]
    text = "".join(parts).replace("\x1b", "\\e")
    assert_golden(Path(__file__).with_name("golden") / "rules.txt", text)


def test_nothing_found_says_how_many_checks_passed() -> None:
    text = "".join(view.lint_table(linted(**SEEDED), SETTLED, PLAIN))
    assert text == f"train in toy: {len(LINT_RULES)} checks passed\n"


@pytest.mark.parametrize("width", [40, 60, 80])
def test_every_story_fits_the_screen(width: int) -> None:
    screen = Screen(width=width)
    texts = ["".join(view.story_text(rule, screen)) for rule in LINT_RULES]
    texts.append("".join(view.rules_table(LINT_RULES, screen)))
    for text in texts:
        wrapped = [line for line in text.splitlines() if not line.startswith("  shardctl ")]
        assert max(map(len, wrapped)) <= width
        assert text.endswith("\n")
        assert not re.search(r" $", text, re.MULTILINE)
    assert width < 80 or texts[-1].count("\n") == len(LINT_RULES) + 1


def codes_in_markdown() -> str:
    """Return the table of the guide, which this test holds to the rules."""
    rows = [f"| `{rule.code}` | {rule.severity} | {rule.title} |\n" for rule in LINT_RULES]
    return "| code | severity | finding |\n|---|---|---|\n" + "".join(rows)


def test_the_guide_lists_every_code() -> None:
    assert codes_in_markdown() in GUIDE.read_text("utf-8"), (
        f"put this there:\n{codes_in_markdown()}"
    )
