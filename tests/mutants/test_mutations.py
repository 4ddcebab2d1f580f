"""What a mutant is, what is left alone, and which test notices it."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.mutations import chosen, mutants
from tests.mutants.planted import environment


def faults_of(tmp_path: Path, source: str) -> list[str]:
    file = tmp_path / "toy.py"
    file.write_text(source, encoding="utf-8")
    found = mutants(file)
    for one in found:
        compile(one.tree(), "toy.py", "exec")
    return [f"{one.before} -> {one.after}" for one in found]


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        ("a < b", ["a < b -> a <= b"]),
        ("a == b is c", ["a == b is c -> a != b is c", "a == b is c -> a == b is not c"]),
        ("a * b", ["a * b -> a // b"]),
        ("a | None", []),
        ("'a' % b", []),
        ("a and b", ["a and b -> a or b"]),
        ("not a", ["not a -> a"]),
        ("-a", ["-a -> a"]),
        ("3", ["3 -> 4", "3 -> 2"]),
        ("True", ["True -> False"]),
        ("'text'", []),
        ("min", ["min -> max"]),
        ("a[b:]", ["b: -> :"]),
        ("f(a, b)", ["f(a, b) -> pass", "f(a, b) -> f(b, a)"]),
        ("a = f(*b, c)", []),
        ("raise a", ["raise a -> pass"]),
        ("a = b", []),
        ("a = b\na = c", ["a = c -> pass"]),
        ("a.b = c", ["a.b = c -> pass"]),
        ("a += b", ["a += b -> pass", "a += b -> a -= b"]),
        ("def f():\n  return a", ["return a -> return None"]),
        ("for a in b:\n  break", ["break -> continue"]),
        ("while a: continue", ["continue -> break", "a -> False"]),
        ("a = b if c else d", ["c -> False", "c -> True"]),
        ("a = [b for b in c if b]", ["b -> False", "b -> True"]),
    ],
)
def test_faults_of_a_kind(tmp_path: Path, source: str, faults: list[str]) -> None:
    assert sorted(faults_of(tmp_path, source)) == sorted(faults)


@pytest.mark.parametrize(
    "source",
    [
        "'''3'''",
        "def f(a: Literal[3]) -> Literal[4]: '''5'''",
        "@f(3)\nclass A: b: Literal[3]",
        "__all__ = ['a'] * 2",
        "if TYPE_CHECKING: f(3)",
        "assert a < 3",
        "a = cast(b, c)",
        "a = f'{b:>3}'",
        "a = zip(b, strict=True)",
    ],
)
def test_what_is_left_alone(tmp_path: Path, source: str) -> None:
    assert faults_of(tmp_path, source) == []


def test_a_fault_is_at_one_point_and_the_lines_stay(tmp_path: Path) -> None:
    source = "def f(a):\n    if (a\n            > 1):\n        return a + 1\n    return a - 1\n"
    faults_of(tmp_path, source)
    found = mutants(tmp_path / "toy.py")
    for one in found:
        tree = one.tree()
        changed = ast.unparse(tree).replace(one.after, one.before, 1)
        assert changed.count("\n") == ast.unparse(ast.parse(source)).count("\n")
        assert ast.unparse(tree) != ast.unparse(ast.parse(source))
    of_test = next(one for one in found if one.before == "a > 1")
    assert of_test.line == 2


def test_mutants_are_the_same_for_a_seed_and_as_many_of_each_room(tmp_path: Path) -> None:
    rooms = [tmp_path / name for name in "abc"]
    for room in rooms:
        room.mkdir()
        for number in range(5):
            (room / f"m{number}.py").write_text("a = b + 1 < c and d[:2]\n" * 5)
    found = chosen(rooms, 31, "seed")
    assert found == chosen(rooms, 31, "seed") != chosen(rooms, 31, "another")
    assert sorted([one.path.parent for one in found].count(room) for room in rooms) == [10, 10, 11]
    assert len(set(found)) == 31


_TOY = """
STEP = 2
FIRST = [""][0]

def stepped(number):
    return number + STEP if number > 10 else max(number, 0, 0 + 0)
"""
_TESTS = """
import subprocess, sys

def test_below():
    from toy import stepped
    assert (stepped(-3), stepped(3)) == (0, 3)

def test_above():
    command = [sys.executable, "-c", "import toy; print(toy.stepped(10), toy.stepped(20))"]
    assert subprocess.check_output(command, text=True) == "10 22\\n"
"""


@pytest.mark.slow
def test_mutants_die_by_the_test_that_sees_them(tmp_path: Path) -> None:
    for name, text in {"toy.py": _TOY, "test_toy.py": _TESTS, "pytest.ini": "[pytest]\n"}.items():
        (tmp_path / name).write_text(text)
    words = ["toy.py", "--count", "99", "--tests", "test_toy.py", "--json", "told"]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.mutants", *words],
        cwd=tmp_path,
        env=environment(None),
        capture_output=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (1, b"")
    told = [json.loads(line) for line in (tmp_path / "told").read_text().splitlines()]
    died = {f"{one['mutant']['before']} -> {one['mutant']['after']}": one["died"] for one in told}
    below, above = "test_toy.py::test_below", "test_toy.py::test_above"
    assert died["max -> min"] == died["0 -> 1"] == below  # of the index, at import, too
    assert died["2 -> 3"] == died["number + STEP -> number - STEP"] == above  # in its child alone
    assert died["number > 10 -> number >= 10"] == above
    assert died["0 + 0 -> 0 - 0"] == ""
