"""The help page of a command: what it is for, its options in panels, and examples.

At least as wide as a screen of 60 columns, names stand beside what they mean; a narrower page has
what they mean below them. A terminal may get boxes, a pipe has titles alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from shardctl.rendering.text.tables import WIDEST, Look, styled

_SIDE_BY_SIDE = 60  # columns from which names have what they mean beside them
_MOST_FOR_NAMES = 24

# What stands behind a sentence: the name in TFDS or tf.data, and the default.
_QUIET = re.compile(r"(?: \((?:[^()]|\([^()]*\))*\))?(?: \[(?:default: [^\]]*|required)\])?$")
_BREAKS = re.compile(r"[^./|_]*[./|_]*")  # where a word that fills a line may be broken
_WORD = r"(?:[^\s'\"]|'[^']*'|\"[^\"]*\")+"
_SHELL_WORDS = re.compile(_WORD)
_SHELL_UNITS = re.compile(rf"(?:--?[\w-]+ (?=[^-]))?{_WORD}")  # an option with its value


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """An option, an argument or a command: its names, each on a line, and what it means."""

    names: tuple[str, ...]
    meaning: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """Entries under a title."""

    title: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class HelpPage:
    """What a page says, from top to bottom; of `examples` those with `#` are words."""

    usage: str
    paragraphs: tuple[str, ...]
    panels: tuple[Panel, ...]
    examples: tuple[str, ...] = ()
    closing: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Paper:
    """What a page is written on: how wide it is, in colour or not, with boxes or without."""

    width: int = 80
    color: bool = False
    boxes: bool = False


def help_text(page: HelpPage, paper: Paper) -> str:
    """Return a page as text, no line of it wider than the paper.

    >>> entry = Entry(names=("-d, --dataset REF",), meaning="Which one [default: mnist]")
    >>> panels = (Panel(title="Dataset", entries=(entry,)),)
    >>> page = HelpPage(usage="shardctl plan", paragraphs=("Resolve.",), panels=panels)
    >>> print(help_text(page, Paper()), end="")
    Usage: shardctl plan
    <BLANKLINE>
      Resolve.
    <BLANKLINE>
    Dataset:
      -d, --dataset REF  Which one [default: mnist]
    """
    return "".join(f"{line.rstrip()}\n" for line in _lines(page, paper))


def _lines(page: HelpPage, paper: Paper) -> Iterator[str]:
    width = min(paper.width, WIDEST)
    first, *others = _wrapped(f"Usage: {page.usage}".split(), width - 2)
    yield first
    yield from (f"  {line}" for line in others)
    for paragraph in page.paragraphs:
        yield ""
        yield from _indented(_wrapped(paragraph.split(), width - 2))
    entries = [entry for panel in page.panels for entry in panel.entries]
    names = [name for entry in entries for name in _name_lines(entry, _MOST_FOR_NAMES)]
    column = max((len(name) for name in names if len(name) <= _MOST_FOR_NAMES), default=0)
    boxed = paper.boxes and width >= _SIDE_BY_SIDE
    for number, panel in enumerate(page.panels):
        if not boxed or number == 0:
            yield ""
        inner = width - (4 if boxed else 2)
        rows = (
            line
            for entry in panel.entries
            for line in _entry(entry, column if width >= _SIDE_BY_SIDE else None, inner, paper)
        )
        yield from _box(panel.title, rows, width, paper) if boxed else _plain(panel, rows, paper)
    if page.examples:
        yield ""
        yield _styled("Examples:", "bold", paper)
        for example in page.examples:
            lines = example_lines(example, width - 2)
            quiet = example.startswith("#")
            yield from _indented(_styled(line, "quiet", paper) if quiet else line for line in lines)
    for paragraph in page.closing:
        yield ""
        yield from _indented(_wrapped(paragraph.split(), width - 2))


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _plain(panel: Panel, rows: Iterable[str], paper: Paper) -> Iterator[str]:
    yield _styled(f"{panel.title}:", "bold", paper)
    yield from _indented(rows)


def _box(title: str, rows: Iterable[str], width: int, paper: Paper) -> Iterator[str]:
    edge = _styled("│", "quiet", paper)
    dashes = "─" * (width - len(title) - 5)
    yield (
        f"{_styled('╭─', 'quiet', paper)} {_styled(title, 'bold', paper)} "
        f"{_styled(f'{dashes}╮', 'quiet', paper)}"
    )
    for row in rows:
        yield f"{edge} {row}{' ' * (width - 4 - _shown_width(row))} {edge}"
    yield _styled(f"╰{'─' * (width - 2)}╯", "quiet", paper)


def _entry(entry: Entry, column: int | None, width: int, paper: Paper) -> Iterator[str]:
    """Yield the lines of an entry; `column` is the width of names beside their meaning."""
    if column is None:
        names = _wrapped(", ".join(entry.names).split(), width)
        yield from (_styled(line, "bold", paper) for line in names)
        yield from (f"    {line}" for line in _meaning(entry.meaning, width - 4, paper))
        return
    meaning = _meaning(entry.meaning, width - column - 2, paper)
    for name in _name_lines(entry, column):
        if len(name) > column:  # alone on its line
            yield from (_styled(line, "bold", paper) for line in _wrapped(name.split(), width))
        else:
            blanks = " " * (column - len(name) + 2)
            yield f"{_styled(name, 'bold', paper)}{blanks}{next(meaning, '')}"
    yield from (" " * (column + 2) + line for line in meaning)


def _name_lines(entry: Entry, width: int) -> list[str]:
    """Return the names on one line where they fit, else each on its own."""
    together = ", ".join(entry.names)
    return [together] if len(together) <= width else together.replace(", -", ",\n-").split("\n")


def _meaning(text: str, width: int, paper: Paper) -> Iterator[str]:
    """Yield the lines of a meaning, quiet where the sentence is at its end."""
    text = " ".join(text.split())
    quiet = _QUIET.search(text)
    at = quiet.start() if quiet else len(text)
    loud_words, quiet_words = text[:at].rstrip(".").split(), text[at:].split()
    num_loud, num_before = len(loud_words), 0
    for line in _wrapped([*loud_words, *quiet_words], width):
        words = line.split()
        loud, soft = words[: max(num_loud - num_before, 0)], words[max(num_loud - num_before, 0) :]
        num_before += len(words)
        parts = [" ".join(loud), _styled(" ".join(soft), "quiet", paper)]
        yield " ".join(part for part in parts if part)


def example_lines(example: str, width: int) -> Iterator[str]:
    r"""Yield the lines of an example; a command that is too long goes on after a backslash.

    A word of it that is too long stays whole, since the command would be another.

    >>> list(example_lines("shardctl plan 'train[44%:45%]' -d imagenet2012", 40))
    ["shardctl plan 'train[44%:45%]' \\", '    -d imagenet2012']
    """
    if example.startswith("#"):
        yield from (f"# {line}" for line in _wrapped(example[1:].split(), width - 2))
        return
    units = _SHELL_UNITS.findall(example)
    words = [
        word
        for unit in units
        for word in ([unit] if len(unit) <= width - 6 else _SHELL_WORDS.findall(unit))
    ]
    *lines, last = _wrapped(words, width - 6, breaks=False)
    for number, line in enumerate(lines):
        yield f"{'    ' * bool(number)}{line} \\"
    yield f"{'    ' * bool(lines)}{last}"


def _wrapped(words: Sequence[str], width: int, *, breaks: bool = True) -> list[str]:
    """Return words as lines of at most `width` columns; a longer word is broken at its signs.

    It is alone on its line, and wider, where nothing breaks it.
    """
    lines = [""]
    for word in words:
        pieces = _pieces(word, width) if breaks and len(word) > width else [word]
        for number, piece in enumerate(pieces):
            between = " " if lines[-1] and not number else ""
            if lines[-1] and len(lines[-1]) + len(between) + len(piece) > width:
                lines.append(piece)
            else:
                lines[-1] += between + piece
    return lines


def _pieces(word: str, width: int) -> list[str]:
    parts = _BREAKS.findall(word)
    return [part[at : at + width] for part in parts for at in range(0, len(part), width)]


def _styled(text: str, look: Look, paper: Paper) -> str:
    return styled(text, look) if paper.color else text


def _shown_width(text: str) -> int:
    return len(re.sub("\x1b\\[[0-9;]*m", "", text))
