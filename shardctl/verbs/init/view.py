"""A shardctl.yaml as text: the settings given, and every default as a comment."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from shardctl.base.text import printable
from shardctl.files.documents import yaml_line
from shardctl.verbs.init.answer import DraftSetting, ProjectDraft

_LINE = 100  # characters
_COLUMN = 32  # where the meaning of a setting begins

_HEAD = """\
Settings of the shardctl commands in this folder and in those below it. Options override them.
A line "#name: value" shows a default: to change it, remove the # and change the value.
`shardctl config` shows every setting in force and its source.
"""
_READ = "In which order examples are read; each is an option of the commands too."
_LINT = "What `shardctl lint` checks in addition."


def project_text(draft: ProjectDraft) -> Iterator[str]:
    """Yield the file.

    >>> setting = DraftSetting(name="cycle", value=16, meaning="Files at a time.", takes="N|auto")
    >>> print(*_lines(setting, "  "))
      #cycle: 16                  # N|auto: Files at a time.
    """
    if draft.schema:
        yield f"# yaml-language-server: $schema={draft.schema}\n"
    yield from _remark(_HEAD)
    for setting in (draft.dataset, draft.data_dir):
        yield "\n"
        yield from _remark(setting.meaning)
        yield f"{_stated(setting)}\n"
    for key, remark, settings in (("read", _READ, draft.read), ("lint", _LINT, draft.lint)):
        yield "\n"
        yield from _remark(remark)
        yield f"{key}:\n"
        for setting in settings:
            for line in _lines(setting, "  "):
                yield f"{line}\n"


def _remark(text: str) -> Iterator[str]:
    for line in textwrap.wrap(printable(" ".join(text.split()), 2000), _LINE - 2):
        yield f"# {line}\n"


def _stated(setting: DraftSetting) -> str:
    return f"{'' if setting.stated else '#'}{setting.name}: {yaml_line(setting.value)}"


def _lines(setting: DraftSetting, indent: str) -> Iterator[str]:
    """Yield a setting with its meaning behind it, or before it where there is no room."""
    text = f"{indent}{_stated(setting)}"
    meaning = printable(": ".join(part for part in (setting.takes, setting.meaning) if part), 500)
    if len(text) < _COLUMN - 1 and _COLUMN + 2 + len(meaning) <= _LINE:
        yield f"{text:<{_COLUMN - 2}}# {meaning}"
        return
    for line in textwrap.wrap(meaning, _LINE - len(indent) - 2):
        yield f"{indent}# {line}"
    yield text
