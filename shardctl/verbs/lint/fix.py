"""What has one right answer, written into shardctl.yaml: lines are edited, all else stays."""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from shardctl.errors import ShardctlError, UsageError
from shardctl.files.parse import decode
from shardctl.metadata.project_file import Project, project_of
from shardctl.settings.names import main_name
from shardctl.verbs.lint.answer import Finding, Lint

Change = Mapping[str, int | None]


def fixed(
    project: Project, found: Lint, again: Callable[[Project], Lint], by_option: Collection[str]
) -> tuple[Project, Lint]:
    """Return a project with the changes of findings made, and what is found in it then.

    again: looks at a changed project. A change is made where its finding is gone then, and no error
        has come instead. What options set is left alone.
    """
    for finding in found.findings:
        # An option overrides the file, so editing the file would change nothing.
        if not finding.change or not finding.change.keys().isdisjoint(by_option):
            continue
        try:
            changed = edited(project, finding.change)
            left = again(changed)
        except ShardctlError:  # another setting needs the one that would go
            continue
        kind = _kind(finding)
        old, new = (Counter(map(_kind, one.findings)) for one in (found, left))
        # Fewer findings of this kind, and no new error: keep the change, and begin again with what
        # is found in the changed file.
        if new[kind] < old[kind] and not any(severity == "error" for _, severity in new - old):
            return fixed(changed, left, again, by_option)
    return project, found


def _kind(finding: Finding) -> tuple[str, str]:
    return finding.rule.code, finding.severity


def edited(project: Project, change: Change) -> Project:
    """Return a project whose file has other values under `read:`, or no longer some settings.

    Raises:
        UsageError: the text cannot be edited so that all else stays.
    """
    assert project.path is not None
    text = decode(project.text, source=project.shown_path)
    for name, value in change.items():
        text = _with_setting(text, name, value)
    # Decoding takes a byte order mark off; the edited file keeps it.
    mark = codecs.BOM_UTF8 if project.text.startswith(codecs.BOM_UTF8) else b""
    # The edited text is read again, and must hold what was wanted, and all else as before. This
    # finds edits that YAML reads differently, as with anchors or merged keys.
    made = project_of(mark + text.encode(), project.path)
    wanted: dict[str, object] = {}
    for key, old in project.read.items():
        new = change.get(main_name(key), old)
        if new is not None or main_name(key) not in change:
            wanted[key] = new
    if replace(made, text=b"") != replace(project, read=wanted, text=b""):
        raise UsageError(f"{project.shown_path} cannot be edited line by line; change it by hand")
    return made


def _with_setting(text: str, name: str, value: int | None) -> str:
    """Return a text with another value of a setting under `read:`, or without it."""
    import yaml

    # Nodes of YAML know where they stand in the text. The parser in C is faster, if it is there.
    root: Any = yaml.compose(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    section: Any = next((node for key, node in root.value if key.value == "read"), None)
    pairs = [] if section is None else section.value
    for index, (key, node) in enumerate(pairs):
        if main_name(str(key.value)) != name:
            continue
        start, stop = key.start_mark.index, _end(node)
        if value is not None:
            return f"{text[: node.start_mark.index]}{value}{text[stop:]}"
        if not section.flow_style:  # the line, with what is said of it
            start = text.rfind("\n", 0, start) + 1
            stop = text.find("\n", stop) + 1 or len(text)
        elif index + 1 < len(pairs):
            # In `{a: 1, b: 2}`: up to the next key.
            stop = pairs[index + 1][0].start_mark.index
        elif index and "#" not in text[_end(pairs[index - 1][1]) : start]:
            # The last one: from the end of the value before it, unless a comment lies between.
            start = _end(pairs[index - 1][1])
        return text[:start] + text[stop:]
    return text


def _end(node: Any) -> int:
    """Return where a value ends: that of a block ends with its last part, not at the next key."""
    if isinstance(node.value, list) and not node.flow_style and node.value:
        # A pair in a mapping, a node in a list.
        last = node.value[-1]
        return _end(last[-1] if isinstance(last, tuple) else last)
    end: int = node.end_mark.index
    return end
