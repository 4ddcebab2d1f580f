"""What a rule of the linter is: a code, a story, and a small function that looks for it."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from shardctl.core.loaders.loader import READERS
from shardctl.core.phrase import phrase
from shardctl.core.text import in_short
from shardctl.planning.lint.context import LintContext

Severity = Literal["error", "warning", "notice"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)  # from the worst
DEFAULT_FAIL_ON: Severity = "notice"  # which is any finding
TFDS_ALONE: Collection[str] = ("tfds",)
EVERY_LOADER: Collection[str] = READERS


@dataclass(frozen=True, kw_only=True)
class Violation:
    """Something a rule found: why it matters and what helps, each a line.

    `specs` are the specs it is about, none where it is about settings alone; `settings` the names
    of the settings behind it, the one to change first; `severity` where it is not the rule's.
    """

    why: str
    fix: str
    specs: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    severity: Severity | None = None


Check = Callable[[LintContext], Iterable[Violation]]


@dataclass(frozen=True, kw_only=True)
class Story:
    """The whole story of a rule: what happens and why, where it was seen, what helps.

    `example` is a command line that shows the finding.
    """

    happens: str
    source: str
    fix: str
    example: str


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One kind of finding.

    severity: an "error" fails or gives wrong results, a "warning" does harm, a "notice" surprises.
    for_data_source: whether it also counts where `as_data_source` reads, without tf.data.
    loaders: who reads where it counts, by the names of `ReadSettings.loader`.
    of_loaders: what looks in place of `check` where it is another loader than TFDS's.
    """

    code: str
    name: str
    title: str
    severity: Severity
    check: Check
    for_data_source: bool = False
    loaders: Collection[str] = field(default=TFDS_ALONE, compare=False)
    of_loaders: Check | None = None

    @property
    def story(self) -> Story:
        """The whole story, which `stories.md` tells."""
        return _stories()[self.code]

    def __repr__(self) -> str:
        return in_short(self, self.code, self.name)

    def __reduce__(self) -> tuple[Callable[[str, str], Rule], tuple[str, str]]:
        # The name of its function is the rule's own, see `rule`: pickled, it is found again by it.
        return _found, (self.check.__module__, self.check.__qualname__)


@cache
def _stories() -> Mapping[str, Story]:
    """Return the story of each rule by its code; the arguments that it names are marked."""
    text = Path(__file__).with_name("stories.md").read_text("utf-8")
    stories = {}
    for section in text.split("\n## ")[1:]:
        head, *parts = (re.sub("(?<!\n)\n(?!\n)", " ", part) for part in section.split("\n### "))
        code, _, happens = head.partition("\n\n")
        told = {
            title: body.strip() for title, _, body in (part.partition("\n\n") for part in parts)
        }
        stories[code] = Story(
            happens=phrase(happens.strip()),
            source=phrase(told["Where it was seen"]),
            fix=phrase(told["What helps"]),
            example=phrase(told["Example"]),
        )
    return stories


def _found(module: str, name: str) -> Rule:
    found: Rule = getattr(importlib.import_module(module), name)
    return found


def rule(
    code: str,
    name: str,
    severity: Severity,
    title: str,
    *,
    for_data_source: bool = False,
    loaders: Collection[str] = TFDS_ALONE,
    of_loaders: Check | None = None,
) -> Callable[[Check], Rule]:
    """Make a rule of the function below."""

    def made(check: Check) -> Rule:
        return Rule(
            code=code,
            name=name,
            title=title,
            severity=severity,
            check=check,
            for_data_source=for_data_source,
            loaders=loaders,
            of_loaders=of_loaders,
        )

    return made
