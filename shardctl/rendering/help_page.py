"""The help page of a command: what it is for, its options in panels, and examples.

At least as wide as a screen of 60 columns, names stand beside what they mean; a narrower page has
what they mean below them. A terminal may get boxes, a pipe has titles alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_WIDEST = 120  # columns, beyond which lines are hard to follow
_SIDE_BY_SIDE = 60  # columns from which names have what they mean beside them
_MOST_FOR_NAMES = 24
_BOLD, _DIM, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"

# What stands behind a sentence: the name in TFDS or tf.data, and the default.
_QUIET = re.compile(r"(?: \((?:[^()]|\([^()]*\))*\))?(?: \[(?:default: [^\]]*|required)\])?$")
_BREAKS = re.compile(r"[^./|_]*[./|_]*")  # where a word that fills a line may be broken
# A word, or an option with its value.
_SHELL_WORDS = re.compile(r"(?:--?[\w-]+ (?=[^-]))?(?:[^\s'\"]|'[^']*'|\"[^\"]*\")+")


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
    width = min(paper.width, _WIDEST)
    first, *others = _wrapped(f"Usage: {page.usage}".split(), width - 2)
    yield first
    yield from (f"  {line}" for line in others)
    for paragraph in page.paragraphs:
        yield ""
        yield from _indented(_wrapped(paragraph.split(), width - 2))
    names = [f"{name}," for panel in page.panels for entry in panel.entries for name in entry.names]
    column = max((len(name) - 1 for name in names if len(name) <= _MOST_FOR_NAMES), default=0)
    boxed = paper.boxes and width >= _SIDE_BY_SIDE
    for panel in page.panels:
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
        yield _styled("Examples:", _BOLD, paper)
        for example in page.examples:
            yield from _indented(_example(example, width - 2, paper))
    for paragraph in page.closing:
        yield ""
        yield from _indented(_wrapped(paragraph.split(), width - 2))


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _plain(panel: Panel, rows: Iterable[str], paper: Paper) -> Iterator[str]:
    yield _styled(f"{panel.title}:", _BOLD, paper)
    yield from _indented(rows)


def _box(title: str, rows: Iterable[str], width: int, paper: Paper) -> Iterator[str]:
    edge = _styled("│", _DIM, paper)
    dashes = "─" * (width - len(title) - 5)
    yield (
        f"{_styled('╭─', _DIM, paper)} {_styled(title, _BOLD, paper)} "
        f"{_styled(f'{dashes}╮', _DIM, paper)}"
    )
    for row in rows:
        yield f"{edge} {row}{' ' * (width - 4 - _shown_width(row))} {edge}"
    yield _styled(f"╰{'─' * (width - 2)}╯", _DIM, paper)


def _entry(entry: Entry, column: int | None, width: int, paper: Paper) -> Iterator[str]:
    """Yield the lines of an entry; `column` is the width of names beside their meaning."""
    if column is None:
        names = _wrapped(", ".join(entry.names).split(), width)
        yield from (_styled(line, _BOLD, paper) for line in names)
        yield from (f"    {line}" for line in _meaning(entry.meaning, width - 4, paper))
        return
    together = ", ".join(entry.names)
    names = [together] if len(together) <= column else [f"{name}," for name in entry.names]
    names[-1] = names[-1].rstrip(",")
    meaning = list(_meaning(entry.meaning, width - column - 2, paper))
    while names and len(names[0]) > column:  # alone on its line
        yield from (_styled(line, _BOLD, paper) for line in _wrapped(names.pop(0).split(), width))
    for number in range(max(len(names), len(meaning))):
        name = names[number] if number < len(names) else ""
        said = meaning[number] if number < len(meaning) else ""
        yield f"{_styled(name, _BOLD, paper)}{' ' * (column - len(name))}  {said}"


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
        parts = [" ".join(loud), _styled(" ".join(soft), _DIM, paper)]
        yield " ".join(part for part in parts if part)


def _example(example: str, width: int, paper: Paper) -> Iterator[str]:
    """Yield the lines of an example; a command that is too long goes on after a backslash."""
    if example.startswith("#"):
        for line in _wrapped(example[1:].split(), width - 2):
            yield _styled(f"# {line}", _DIM, paper)
        return
    *lines, last = _wrapped(_SHELL_WORDS.findall(example), width - 6)
    for number, line in enumerate(lines):
        yield f"{'    ' * bool(number)}{line} \\"
    yield f"{'    ' * bool(lines)}{last}"


def _wrapped(words: Sequence[str], width: int) -> list[str]:
    """Return words as lines of at most `width` columns; a longer word is broken at its signs."""
    lines = [""]
    for word in words:
        pieces = [word] if len(word) <= width else _pieces(word, width)
        for number, piece in enumerate(pieces):
            between = " " if lines[-1] and not number else ""
            if lines[-1] and len(lines[-1]) + len(between) + len(piece) > width:
                lines.append(piece)
            else:
                lines[-1] += between + piece
    return lines


def _pieces(word: str, width: int) -> Iterator[str]:
    for part in filter(None, _BREAKS.findall(word)):
        yield from (part[start : start + width] for start in range(0, len(part), width))


def _styled(text: str, style: str, paper: Paper) -> str:
    return f"{style}{text}{_PLAIN}" if text and paper.color else text


def _shown_width(text: str) -> int:
    return len(re.sub("\x1b\\[[0-9;]*m", "", text))
