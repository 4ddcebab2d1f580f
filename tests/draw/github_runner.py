"""What the runner of GitHub makes of a line."""

from __future__ import annotations


def as_github_reads(line: str) -> tuple[str, dict[str, str], str]:
    """Return level, properties and message of a workflow command, as actions/runner parses it."""
    assert line.startswith("::")
    head, _, data = line[2:].rstrip("\n").partition("::")
    level, _, listed = head.partition(" ")
    pairs = [item.partition("=") for item in listed.split(",")]

    def plain(text: str, *, prop: bool) -> str:
        for code, char in [("%3A", ":"), ("%2C", ",")] if prop else []:
            text = text.replace(code, char)
        for code, char in (("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
            text = text.replace(code, char)
        return text

    return level, {k: plain(v, prop=True) for k, _, v in pairs}, plain(data, prop=False)
