"""The guides by subject: their questions and their text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

# What to read about a command; the guide of its own name, where there is one, is it.
GUIDE_OF_COMMAND = {
    **dict.fromkeys(("layout", "list"), "datasets"),
    **dict.fromkeys(("simulate", "locate"), "orders"),
    **dict.fromkeys(("snapshot", "diff"), "snapshots-in-ci"),
    **dict.fromkeys(("init", "config"), "settings"),
    "plan": "subsplits",
    "eval": "evaluation",
    "quality": "shuffling",
    "index": "bare-files",
    "inspect": "pipeline",
    "help": "questions",
    "completion": "install",
    **{name: name for name in ("resume", "hosts", "report", "lint", "verify")},
}

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
