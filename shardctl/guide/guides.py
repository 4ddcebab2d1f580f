"""The guides by subject: their questions and their text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

# What to read about a command; the guide of its own name, where there is one, is it.
GUIDE_OF_COMMAND = {
    **dict.fromkeys(("layout", "list"), "datasets"),
    **dict.fromkeys(("simulate", "locate"), "orders"),
    **dict.fromkeys(("snapshot", "diff"), "snapshots-in-ci"),
    **dict.fromkeys(("init", "config"), "settings"),
    "demo": "questions",
    "plan": "subsplits",
    "eval": "evaluation",
    "quality": "shuffling",
    "index": "bare-files",
    "inspect": "own-script",
    "help": "questions",
    "completion": "install",
    **{name: name for name in ("audit", "resume", "rehearse", "hosts", "report", "lint", "verify")},
}

# A block that is a file has its name in a comment, which is a line of it, but not of a JSON file.
FILE_BLOCK = re.compile(
    r"^```\w+\n(?P<head># (?P<name>\w[\w./-]*\.(?:yaml|json|py|txt))\b[^\n]*\n)(?P<rest>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_SAVED_BY_READERS = "shardctl.yaml"  # which has another text in each guide

FOLDER = Path(__file__).parent  # importlib.resources would take 4 ms to import


@dataclass(frozen=True, kw_only=True)
class Guide:
    """A guide: its subject, and its text in Markdown, which begins with the question it answers."""

    subject: str
    text: str

    @property
    def question(self) -> str:
        """The heading of the guide, which says what it answers.

        >>> Guide(subject="seeds", text="# Which seed?\\n\\nAny.\\n").question
        'Which seed?'
        """
        return self.text.partition("\n")[0].removeprefix("# ")


def guide_questions() -> dict[str, str]:
    """Return the subjects that have a guide, sorted, each with the question it answers."""
    subjects = sorted(path.stem for path in FOLDER.glob("*.md"))
    return {subject: read_guide(subject).question for subject in subjects}


def read_guide(subject: str) -> Guide:
    """Return the guide of a subject, one of `guide_questions`.

    >>> read_guide("resume").question
    'From where does an interrupted job resume?'
    """
    return Guide(subject=subject, text=(FOLDER / f"{subject}.md").read_text("utf-8"))


def guide_files() -> dict[str, str]:
    """Return the files that guides show, by their names, but those called shardctl.yaml.

    >>> guide_files()["small.yaml"].splitlines()[0]
    '# small.yaml'
    """
    return {
        found["name"]: ("" if found["name"].endswith(".json") else found["head"]) + found["rest"]
        for subject in guide_questions()
        for found in FILE_BLOCK.finditer(read_guide(subject).text)
        if found["name"] != _SAVED_BY_READERS
    }
