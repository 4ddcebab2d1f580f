"""Man pages, made of the same guides and option help that a terminal shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import shardctl
from shardctl.guide.guides import Guide
from shardctl.rendering.guide.roff import bold, escaped, roff


@dataclass(frozen=True, kw_only=True)
class CommandHelp:
    """What the help page of a command says: `options` are titled groups of options with words."""

    name: str
    usage: str
    summary: str
    paragraphs: tuple[str, ...]
    options: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


def man_page(
    command: CommandHelp | None, guide: Guide | None, others: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Yield the man page of a command, of a guide, or of a command with its guide.

    Commands are in section 1, guides alone in section 7. `others` are the guides there are, each
    with its question, which the page of `shardctl` itself lists.
    """
    subject = command.name if command is not None else guide.subject if guide is not None else ""
    title = f"shardctl-{subject}" if subject else "shardctl"
    section = 7 if command is None else 1
    manual = "Guides of shardctl" if command is None else "User Commands"
    yield f'.TH "{title.upper()}" {section} "" "shardctl {shardctl.__version__}" "{manual}"\n'
    if command is not None:
        summary = command.summary.rstrip(".")
    else:
        summary = guide.question if guide is not None else ""
    yield f".SH NAME\n{escaped(title, code=True)} \\- {escaped(summary)}\n"
    if command is not None:
        yield from _options(command)
    if others:
        yield ".SH GUIDES\n"
        for other, question in others.items():
            yield f".TP\n{bold(f'shardctl help {other}')}\n{escaped(question)}\n"
    if guide is not None:
        from rich.markdown import Markdown

        from shardctl.rendering.guide.markdown import resolve_links

        tokens = resolve_links(Markdown(guide.text))
        if tokens[3].type != "heading_open":  # words before the first section
            yield f".SH {'GUIDE' if command is not None else 'DESCRIPTION'}\n"
        yield roff(tokens)


def _options(command: CommandHelp) -> Iterator[str]:
    yield f".SH SYNOPSIS\n{escaped(command.usage, code=True)}\n.SH DESCRIPTION\n"
    for paragraph in command.paragraphs:
        yield f".PP\n{escaped(paragraph)}\n"
    for title, options in command.options:
        yield f'.SH "{escaped(title.upper())}"\n'
        for names, words in options:
            yield f".TP\n{bold(names)}\n{escaped(words)}\n"
