"""What a rule of the linter is: a code, a story, and a small function that looks for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args

from shardctl.base.phrase import phrase
from shardctl.base.text import in_short
from shardctl.loaders.loader import READERS
from shardctl.verbs.lint.context import LintContext, Read

Severity = Literal["error", "warning", "notice"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)  # from the worst
DEFAULT_FAIL_ON: Severity = "notice"  # which is any finding
TFDS_ALONE: Collection[str] = ("tfds",)
EVERY_LOADER: Collection[str] = READERS


@dataclass(frozen=True)
class Violation:
    """Something a rule found: why it matters and what helps, each a line.

    read: what it is about, which `why` then begins with; `specs` are all that it is about.
    settings: the names of the settings behind it, the one to change first; those of the rule where
        there are none. severity: where it is not the rule's.
    change: settings under `read:` with the one value that cures it, None to leave a setting out;
        empty where several cures are as good, or where the value is for people to choose.
    """

    why: str
    fix: str
    read: Read | None = None
    specs: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    severity: Severity | None = None
    change: Mapping[str, int | None] = field(default_factory=dict)


Check = Callable[[LintContext], Iterable[Violation]]


@dataclass(frozen=True, kw_only=True)
class Story:
    """What a rule is about: what happens and why, where it was seen, what helps.

    `example` is a command line that shows the finding.
    """

    happens: str
    source: str
    fix: str
    example: str


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One kind of finding; its name, title and severity are in the heading of its story.

    severity: an "error" fails or gives wrong results, a "warning" does harm, a "notice" surprises.
    settings: the names of the settings behind it, where the check says no others.
    for_data_source: whether it also counts where `as_data_source` reads, without tf.data.
    loaders: the data loaders it is for, by the names of `ReadSettings.loader`.
    of_loaders: what looks in place of `check` where it is another loader than TFDS's.
    """

    code: str
    check: Check
    settings: tuple[str, ...] = ()
    for_data_source: bool = False
    loaders: Collection[str] = field(default=TFDS_ALONE, compare=False)
    of_loaders: Check | None = None

    @property
    def name(self) -> str:
        """What people may call it in place of its code."""
        return str(_told()[self.code][0]["name"])

    @property
    def title(self) -> str:
        """What is found, in a few words."""
        return str(_told()[self.code][0]["title"])

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        severity: Severity = _told()[self.code][0]["severity"]
        return severity

    @property
    def story(self) -> Story:
        """The text about it, whose arguments are marked."""
        _, happens, told = _told()[self.code]
        return Story(
            happens=phrase(happens),
            source=phrase(told["Where it was seen"]),
            fix=phrase(told["What helps"]),
            example=phrase(told["Example"]),
        )

    def __repr__(self) -> str:
        return in_short(self, self.code, self.name)

    def __reduce__(self) -> tuple[Callable[[str, str], Rule], tuple[str, str]]:
        # A function that its rule has replaced is not pickled; the rule is found again.
        return _found, (self.check.__module__, self.code)


def _found(module: str, code: str) -> Rule:
    import_module(module)
    return RULES[code]


_HEADING = re.compile(r"(?P<code>\S+) (?P<name>\S+) \((?P<severity>\w+)\): (?P<title>.*)")


@cache
def _told() -> Mapping[str, tuple[Any, str, Mapping[str, str]]]:
    """Return the text of each rule in `stories.md` by its code: heading, what happens, the rest."""
    text = Path(__file__).with_name("stories.md").read_text("utf-8")
    found = {}
    for section in text.split("\n## ")[1:]:
        head, *parts = (re.sub("(?<!\n)\n(?!\n)", " ", part) for part in section.split("\n### "))
        heading, _, happens = head.partition("\n\n")
        told = (part.partition("\n\n") for part in parts)
        heads = _HEADING.fullmatch(heading)
        assert heads is not None, heading
        rest = {title: body.strip() for title, _, body in told}
        found[heads["code"]] = heads, happens.strip(), rest
    return found


RULES: dict[str, Rule] = {}  # by their codes


def rule(code: str, *settings: str, **more: Any) -> Callable[[Check], Rule]:
    """Make a rule of the function below; `more` are other fields of it."""

    def made(check: Check) -> Rule:
        RULES[code] = Rule(code=code, check=check, settings=settings, **more)
        return RULES[code]

    return made
