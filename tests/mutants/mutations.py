"""The small faults that a source file can be given, each at one point of its syntax tree.

Docstrings and other texts, annotations, decorators, assertions, `__all__` and what only type
checkers read stay as they are.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
_TWINS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_EITHER_WAY = {"min", "max", "isinstance", "gcd"}  # calls whose arguments are not swapped
_FOR_TYPES = {"cast", "TypeVar", "NewType", "ParamSpec"}  # calls that say a type, no more
_LEFT_ALONE = {
    "annotation",  # of arguments and variables
    "returns",
    "decorator_list",
    "format_spec",
}


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One fault of one file."""

    path: Path
    number: int  # among the faults that the file can be given
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.before} -> {self.after}"

    def tree(self) -> ast.Module:
        """Return the file's syntax tree with the fault, at the lines of the file."""
        tree = _parsed(self.path)
        list(_faults(tree))[self.number].plant()
        return ast.fix_missing_locations(tree)


@dataclass(frozen=True)
class _Fault:
    """A node that another takes the place of."""

    old: ast.AST
    new: ast.AST
    plant: Callable[[], None]
    statement: ast.stmt


def chosen(rooms: Sequence[Path], count: int, seed: str) -> list[Mutant]:
    """Return so many mutants, as many of each room (a folder or a file) as of any other."""
    found = []
    for number, room in enumerate(rooms):
        files = [room] if room.is_file() else sorted(room.glob("*.py"))
        possible = [mutant for file in files for mutant in mutants(file)]
        share = count * (number + 1) // len(rooms) - count * number // len(rooms)
        # A text as a seed gives the same numbers in every process, as a hash would not.
        rng = random.Random(f"{seed}:{room.as_posix()}")
        found += rng.sample(possible, min(share, len(possible)))
    return found


def mutants(path: Path) -> list[Mutant]:
    """Return every fault that a file can be given."""
    return [
        Mutant(
            path=path,
            number=number,
            line=fault.old.lineno if hasattr(fault.old, "lineno") else fault.statement.lineno,
            before=_text(fault.old),
            after=_text(fault.new),
        )
        for number, fault in enumerate(_faults(_parsed(path)))
    ]


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def _text(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 120 else f"{text[:117]}..."


def _faults(tree: ast.Module) -> Iterator[_Fault]:
    bound: set[str] = set()
    for statement in tree.body:
        yield from _of_statement(statement, tree, bound)


def _of_statement(statement: ast.stmt, parent: ast.AST, bound: set[str]) -> Iterator[_Fault]:
    """Yield the faults of a statement and of those in it; `bound` has the names known before."""
    if _is_left_alone(statement):
        return
    for new in _other_statements(statement, bound):
        yield _Fault(statement, new, _replacement(parent, statement, new), statement)
    inside: list[tuple[ast.stmt, ast.AST]] = []
    for field, value in ast.iter_fields(statement):
        if field in _LEFT_ALONE:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.stmt):
                inside.append((child, statement))
            elif isinstance(child, ast.ExceptHandler | ast.match_case):
                inside += [(one, child) for one in child.body]
            elif isinstance(child, ast.AST):
                for old, around in _expressions(child, statement):
                    for other in _other_expressions(old, around):
                        plant = _replacement(around, old, other)
                        yield _Fault(old, other, plant, statement)
    own = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
    names = {arg.arg for arg in ast.walk(statement) if isinstance(arg, ast.arg)}
    names = names if own else {*bound}
    for child, above in inside:
        yield from _of_statement(child, above, names)
    stored = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
    bound |= {node.id for node in stored if isinstance(node.ctx, ast.Store)}


def _is_left_alone(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assign):
        return any(isinstance(one, ast.Name) and one.id == "__all__" for one in statement.targets)
    if isinstance(statement, ast.If):
        return "TYPE_CHECKING" in ast.unparse(statement.test)
    return isinstance(statement, ast.Assert | ast.Import | ast.ImportFrom)


def _expressions(node: ast.AST, parent: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield a node and all below it, each with what it is in."""
    called = node.func if isinstance(node, ast.Call) else None
    if isinstance(called, ast.Name) and called.id in _FOR_TYPES:
        return
    if isinstance(node, ast.keyword) and node.arg == "strict":  # of `zip`: an assertion
        return
    yield node, parent
    for field, value in ast.iter_fields(node):
        if field not in _LEFT_ALONE:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _expressions(child, node)


def _replacement(parent: ast.AST, old: ast.AST, new: ast.AST) -> Callable[[], None]:
    ast.copy_location(new, old)

    def plant() -> None:
        for field, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, field, new)
            elif isinstance(value, list):
                value[:] = [new if one is old else one for one in value]

    return plant


def _other_statements(statement: ast.stmt, bound: set[str]) -> Iterator[ast.stmt]:
    match statement:
        case ast.Raise() | ast.Expr(value=ast.Call()):
            yield ast.Pass()
        case ast.Assign(targets=[target]) if not isinstance(target, ast.Name | ast.Tuple):
            yield ast.Pass()
        case ast.Assign(targets=[ast.Name(id=name)]) if name in bound:
            yield ast.Pass()
        case ast.AugAssign():
            yield ast.Pass()
            if type(statement.op) in _ARITHMETIC and not _is_text(statement.value):
                other = _ARITHMETIC[type(statement.op)]()
                yield ast.AugAssign(statement.target, other, statement.value)
        case ast.Return(value=ast.expr() as value) if _text(value) != "None":
            yield ast.Return(ast.Constant(None))
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()


def _other_expressions(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    if _decides(node, parent):
        yield ast.Constant(False)
        if not isinstance(parent, ast.While):
            yield ast.Constant(True)
    match node:
        case ast.Compare() | ast.BinOp() | ast.BoolOp() | ast.UnaryOp():
            yield from _other_operators(node)
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.Name(id=name) if name in _TWINS:
            yield ast.Name(_TWINS[name], ast.Load())
        case ast.Slice(lower, upper, step):
            if lower is not None:
                yield ast.Slice(None, upper, step)
            if upper is not None:
                yield ast.Slice(lower, None, step)
        case ast.Call() if _text(node.func) not in _EITHER_WAY:
            yield from _other_arguments(node)


def _other_operators(
    node: ast.Compare | ast.BinOp | ast.BoolOp | ast.UnaryOp,
) -> Iterator[ast.expr]:
    match node:
        case ast.Compare():
            for number, op in enumerate(node.ops):
                ops = [*node.ops[:number], _COMPARISONS[type(op)](), *node.ops[number + 1 :]]
                yield ast.Compare(node.left, ops, node.comparators)
        case ast.BinOp(left, op, right) if type(op) in _ARITHMETIC:
            if not _is_text(left) and not _is_text(right) and not _is_type(node):
                yield ast.BinOp(left, _ARITHMETIC[type(op)](), right)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield operand


def _other_arguments(call: ast.Call) -> Iterator[ast.expr]:
    """Yield a call with two neighbours among its arguments swapped."""
    args = call.args
    if any(isinstance(arg, ast.Starred) for arg in args):
        return
    for number, (one, other) in enumerate(pairwise(args)):
        if ast.dump(one) != ast.dump(other):
            swapped = [*args[:number], other, one, *args[number + 2 :]]
            yield ast.Call(call.func, swapped, call.keywords)


def _decides(node: ast.AST, parent: ast.AST) -> bool:
    """Return whether a node is the condition of what it is in."""
    if isinstance(parent, ast.comprehension):
        return node in parent.ifs
    return isinstance(parent, ast.If | ast.IfExp | ast.While) and node is parent.test


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _is_type(node: ast.BinOp) -> bool:
    """Return whether `|` joins types, as in `int | None`."""
    sides = (node.left, node.right)
    return isinstance(node.op, ast.BitOr) and any(
        (isinstance(side, ast.Constant) and side.value is None)
        or (isinstance(side, ast.Name) and side.id in ("int", "str", "float", "bool", "bytes"))
        or (isinstance(side, ast.Name) and side.id[0].isupper())
        for side in sides
    )
