"""The developer's map, shardctl/README.md, is true: its paths exist, and no room is left out."""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path

_REPOSITORY = Path(__file__).parents[1]
_PACKAGE = _REPOSITORY / "shardctl"
_MAP = (_PACKAGE / "README.md").read_text("utf-8")

# Files and folders: `base/text.py`, `spec/`, `pyproject.toml`.
_PATH = re.compile(r"[\w.]+(?:/[\w.]+)*(?:/|\.(?:py|md|json|txt|toml|yaml))")
# Files of users, which are not in the repository.
_OF_USERS = {"shardctl.yaml"}
_BESIDE = {"README.md", "CHANGELOG.md", "pyproject.toml"}


def section(heading: str) -> str:
    """Return the text under a heading, up to the next one."""
    _, _, rest = _MAP.partition(f"\n## {heading}\n")
    assert rest, f"no section {heading}"
    return rest.partition("\n## ")[0]


def tree() -> dict[str, str]:
    """Return path and description of each line of the tree, rooms with a slash at their end."""
    block = section("Rooms").split("```")[1]
    rooms: list[str] = []
    found = {}
    for line in block.splitlines()[1:]:
        depth = len(list(takewhile(str.isspace, line))) // 2
        name, _, description = line.strip().partition(" ")
        path = "".join(rooms[:depth]) + name
        rooms[depth:] = [name]
        assert path not in found
        found[path] = description.strip()
    return found


def rooms() -> set[str]:
    """Return the folders of the package that hold files, as the tree writes them."""
    return {
        f"{folder.relative_to(_PACKAGE).as_posix()}/"
        for folder in _PACKAGE.rglob("*")
        if folder.is_dir() and folder.name != "__pycache__" and any(folder.glob("*.*"))
    }


def quoted_paths() -> set[str]:
    """Return what is in back quotes and looks like a path."""
    return {word for word in re.findall(r"`([^`\n]+)`", _MAP) if _PATH.fullmatch(word)}


def place_of(path: str) -> Path:
    """Return where a path of the map leads: tests and pages beside the package, else into it."""
    beside = path.startswith(("tests/", "completions/", ".")) or path in _BESIDE
    return (_REPOSITORY if beside else _PACKAGE) / path


def exists(path: str) -> bool:
    """Return whether there is such a file or, for a path that ends with a slash, such a folder."""
    place = place_of(path)
    return place.is_dir() if path.endswith("/") else place.is_file()


_DEFINED = re.compile(r"^(?:(?:class|def) )?(\w+)(?=[(:\[]| = )", re.MULTILINE)


def defined_names() -> set[str]:
    """Return the classes, functions and type aliases at the top of each module of the package."""
    names = set()
    for file in _PACKAGE.rglob("*.py"):
        names |= set(_DEFINED.findall(file.read_text("utf-8")))
    return names


def test_the_tree_names_every_room_and_nothing_else() -> None:
    shown = {path for path in tree() if path.endswith("/")}
    assert shown == rooms()
    assert [path for path in tree() if not exists(path)] == []
    assert [path for path, description in tree().items() if len(description) < 10] == []


def test_every_path_exists() -> None:
    paths = quoted_paths()
    assert len(paths) > 60  # the pattern finds them
    assert sorted(path for path in paths - _OF_USERS if not exists(path)) == []


def test_each_of_fifteen_changes_says_which_files_and_which_tests() -> None:
    assert not exists("core/nowhere.py")
    text = section("Fifteen usual changes")
    headings = re.findall(r"^\*\*([^*]+?)\.?\*\*", text, re.MULTILINE)
    changes = re.split(r"^\*\*[^*]+\*\*", text, flags=re.MULTILINE)[1:]
    assert len(set(headings)) == len(changes) == 15
    for change in changes:
        steps = "\n".join(re.findall(r"^\d\. (.*)$", change, re.MULTILINE))
        assert any(_PATH.fullmatch(path) for path in re.findall(r"`([^`\n]+)`", steps)), change
        assert re.search(r"^- tests: .*`tests/", change, re.MULTILINE), change


def test_every_word_of_a_glossary_of_forty_is_explained_once() -> None:
    rows = re.findall(r"^\| (.+?) \| (.*?) ?\| (.+) \|$", section("Glossary"), re.MULTILINE)[1:]
    words = [word for row in rows for word in row[0].split(", ")]
    assert len(words) == len(set(words)) <= 40
    names = {name for row in rows for name in re.findall(r"`(\w+)`", row[1])}
    assert len(names) > 15
    assert sorted(names - defined_names()) == []


def test_the_map_is_read_in_some_minutes() -> None:
    assert len(_MAP.encode()) < 12_000
