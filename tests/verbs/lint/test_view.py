"""Findings as people, programs and GitHub read them."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
import yaml

from shardctl.draw.setting_origins import SettingOrigins
from shardctl.draw.tables import PLAIN, Screen
from shardctl.files.documents import to_csv, to_json, to_yaml
from shardctl.verbs.lint import view as rendering
from shardctl.verbs.lint.answer import Lint
from shardctl.verbs.lint.rules import LINT_RULES
from tests.draw.github_runner import as_github_reads
from tests.verbs.lint.rules.rule_cases import SEEDED, case

SETTLED = SettingOrigins(file="a/shardctl.yaml", lines={"epochs": 4, "hosts": 9})
GUIDE = Path(__file__).parents[3] / "shardctl" / "guide" / "lint.md"


def found() -> Lint:
    return case("train[:60%]", evaluated=("train[50%:]",), epochs=2).lint()


def test_people_read_what_it_is_why_it_matters_and_what_helps() -> None:
    assert "".join(rendering.lint_table(found(), SETTLED, PLAIN)) == (
        "train[:60%], train[50%:] (evaluation) in toy: 1 error, 1 warning\n"
        "\n"
        "SC041 error: evaluation examples that are trained on\n"
        "  why: train[:60%] trains on 640 examples (ids 3200 to 3839 of train) that train[50%:] "
        "evaluates on\n"
        "  fix: train on train[:3200]\n"
        "\n"
        "SC001 warning: several epochs in one order (a/shardctl.yaml:4)\n"
        "  why: train[:60%]: the examples come in the same order in every epoch, since nothing "
        "shuffles it\n"
        "  fix: --shuffle-seed N, or --buffer N with --buffer-seed N\n"
        "\n"
        "`shardctl lint --explain SC041` tells the whole story.\n"
    )


def test_a_finding_looks_like_its_severity_where_colour_is_shown() -> None:
    plain = "".join(rendering.lint_table(found(), SETTLED, PLAIN))
    shown = "".join(rendering.lint_table(found(), SETTLED, Screen(color=True)))
    assert re.sub(r"\x1b\[[\d;]*m", "", shown) == plain
    assert "\x1b[1;91mSC041 error: evaluation examples that are trained on\x1b[0m\n" in shown
    assert "\x1b[1;95mSC001 warning: several epochs in one order" in shown
    rules = "".join(rendering.rules_table(LINT_RULES, Screen(color=True)))
    assert "SC041  \x1b[1;91merror\x1b[0m     evaluation" in rules


def test_nothing_found_says_how_many_rules_looked() -> None:
    text = "".join(rendering.lint_table(case(**SEEDED).lint(), SETTLED, PLAIN))
    assert text == f"train in toy: nothing found by {len(LINT_RULES)} rules\n"


@pytest.mark.parametrize("width", [40, 60, 80])
def test_every_story_fits_the_screen(width: int) -> None:
    screen = Screen(width=width)
    texts = ["".join(rendering.lint_table(found(), SETTLED, screen))]
    texts += ["".join(rendering.story_text(rule, screen)) for rule in LINT_RULES]
    texts.append("".join(rendering.rules_table(LINT_RULES, screen)))
    for text in texts:
        assert max(map(len, text.splitlines())) <= width
        assert text.endswith("\n")
        assert not re.search(r" $", text, re.MULTILINE)


def test_the_list_of_rules_fits_a_terminal_in_one_line_each() -> None:
    lines = "".join(rendering.rules_table(LINT_RULES, Screen(width=80))).splitlines()
    assert len(lines) == len(LINT_RULES) + 1


def test_json_and_yaml_say_the_same() -> None:
    document = rendering.lint_document(found(), SETTLED)
    assert json.loads("".join(to_json(document))) == yaml.safe_load("".join(to_yaml(document)))
    assert list(document)[:3] == ["format_version", "kind", "dataset"]
    assert (document["format_version"], document["kind"]) == (1, "lint")
    assert document["rules"] == [rule.code for rule in LINT_RULES]
    assert [(f["code"], f["file"], f["line"]) for f in document["findings"]] == [
        ("SC041", None, None),
        ("SC001", "a/shardctl.yaml", 4),
    ]
    assert document["findings"][0]["specs"] == ["train[:60%]", "train[50%:]"]


def test_csv_has_a_row_a_finding() -> None:
    text = "".join(to_csv(rendering.lint_rows(found(), SETTLED)))
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["code"] for row in rows] == ["SC041", "SC001"]
    assert (rows[1]["file"], rows[1]["line"]) == ("a/shardctl.yaml", "4")
    assert rows[0]["specs"] == "train[:60%] train[50%:]"


def test_stories_are_in_the_document_of_the_rules() -> None:
    document = rendering.rules_document(LINT_RULES)
    assert list(document["rules"][0]) == [
        "code", "name", "severity", "title", "happens", "source", "fix", "example",
    ]  # fmt: skip
    assert len(document["rules"]) == len(LINT_RULES)


def test_github_gets_an_annotation_at_the_line_of_the_setting() -> None:
    lines = list(rendering.lint_annotations(found(), SETTLED))
    assert lines[1] == (
        "::warning file=a/shardctl.yaml,line=4,title=SC001::several epochs in one order: "
        "train[:60%25]: the examples come in the same order in every epoch, since nothing shuffles "
        "it%0Afix: --shuffle-seed N, or --buffer N with --buffer-seed N\n"
    )
    level, properties, message = as_github_reads(lines[0])
    assert (level, properties) == ("error", {"title": "SC041"})
    assert message.splitlines()[1] == "fix: train on train[:3200]"


def codes_in_markdown() -> str:
    """Return the table of the guide, which this test holds to the rules."""
    rows = [f"| `{rule.code}` | {rule.severity} | {rule.title} |\n" for rule in LINT_RULES]
    return "| code | severity | finding |\n|---|---|---|\n" + "".join(rows)


def test_the_guide_lists_every_code() -> None:
    assert codes_in_markdown() in GUIDE.read_text("utf-8"), (
        f"put this there:\n{codes_in_markdown()}"
    )
