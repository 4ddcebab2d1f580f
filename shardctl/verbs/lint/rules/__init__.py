"""The rules of the linter: one kind of finding, one small pure function."""

from __future__ import annotations

from shardctl.verbs.lint.rule import RULES, Rule
from shardctl.verbs.lint.rules import hosts, loaders, reader, shuffling, stages, subsplits  # noqa: F401  # each puts its rules into `RULES`

LINT_RULES: tuple[Rule, ...] = tuple(RULES[code] for code in sorted(RULES))
