"""Versions of loaders that `verify` found equal on this machine: a file each in the cache folder.

A file that is damaged, or of another rule, is as none: the version is then verified anew.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from shardctl.base.text import printable
from shardctl.errors import ShardctlError
from shardctl.files import fields
from shardctl.loaders.loader import LOADERS, VerifiedVersion, public_version
from shardctl.metadata.index.count import cache_folder
from shardctl.saved.head import kind_head

_MOST_BYTES = 100_000


def verified_version(loader: str, version: str) -> VerifiedVersion | None:
    """Return what `verify` kept of a version; None where it did not, or with other packages."""
    path = _path(loader, version)
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(_MOST_BYTES))
        date, beside = printable(str(found["date"]), 40), dict(found["beside"])
        kept = fields.record(VerifiedVersion, found, date=date, beside=beside)
    except (OSError, ValueError, TypeError, KeyError, RecursionError, ShardctlError):
        return None
    # Another rule or another package beside it makes the old proof worthless.
    wanted = (loader, public_version(version), LOADERS[loader].rule_version, beside_of(loader))
    return kept if (kept.loader, kept.version, kept.rule, kept.beside) == wanted else None


def keep_verified(found: VerifiedVersion) -> str | None:
    """Write down that a version was found equal; return why that was not possible, else None."""
    from shardctl.files.atomic import new_file

    path = _path(found.loader, found.version)
    if path is None:
        return "no home folder to keep it in; set SHARDCTL_CACHE_DIR"
    text = json.dumps({**kind_head("verified-version"), **asdict(found)}, indent=2) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with new_file(os.fspath(path)) as file:
            file.write(text.encode())
    except (OSError, ShardctlError) as error:
        return printable(getattr(error, "strerror", None) or str(error), 200)
    return None


def forget_verified(loader: str, version: str) -> None:
    """Remove what is kept of a version, where it was found to be otherwise."""
    path = _path(loader, version)
    if path is not None:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def beside_of(loader: str) -> dict[str, str | None]:
    """Return the installed versions of the other packages that the order of a loader comes from."""
    return {package: installed_version(package) for package in LOADERS[loader].beside}


def _path(loader: str, version: str) -> Path | None:
    folder = cache_folder(os.environ)
    if folder is None:
        return None
    # A version is numbers, letters and dots: nothing that leads out of the folder.
    return folder / "loaders" / f"{loader}-{public_version(version)}.json"


# Which version of a library is installed; its package is not imported for that.


@cache  # an order is planned many times, and versions do not change meanwhile
def installed_version(package: str) -> str | None:
    """Return the version of a package without what says how it was built; None without it.

    >>> installed_version("no-such-package")
    """
    from importlib import metadata  # 20 ms

    try:
        return public_version(metadata.version(package))
    except metadata.PackageNotFoundError:
        return None


# Which version an installed library has the source of, where what decides its order is unchanged.

# A package -> {"decides": {file: names of definitions, none for all of it}, "versions": {version:
# digest}}; `python -m tests.loaders.sources` writes it.
SOURCES = Path(__file__).parents[1] / "loaders" / "sources.json"


@cache  # asked for only where a version is installed that is not proven
def same_source(package: str) -> str | None:
    """Return the newest version whose source of the order the installed package has.

    None where it has another one, is not installed, or none is known. What is compiled is not
    compared, and nothing of the package is imported.

    >>> same_source("no-such-package")
    """
    from importlib import metadata

    known = json.loads(SOURCES.read_text("utf-8")).get(package)
    if known is None:
        return None
    try:
        place = str(metadata.distribution(package).locate_file(""))
        found = source_digest(known["decides"], lambda name: Path(place, name).read_text("utf-8"))
    except (metadata.PackageNotFoundError, OSError, ValueError, SyntaxError):
        return None
    same = [version for version, digest in known["versions"].items() if digest == found]
    return same[-1] if same else None


def source_digest(decides: Mapping[str, Sequence[str]], read: Callable[[str], str]) -> str:
    """Return a digest of source, or of some definitions of it, without what changes no order.

    Comments, blank lines, docstrings and annotations are left out. A file or a definition that is
    not there counts as missing, so that it differs from one that is.

    >>> texts = ["lambda: 1", "lambda: 1  # same", "lambda: 2"]
    >>> digests = [source_digest({"a.py": []}, lambda name: text) for text in texts]
    >>> len({*digests[:2]}), len({*digests})
    (1, 2)
    """
    digest = hashlib.sha256()
    for name, definitions in decides.items():
        try:
            tree = ast.parse(read(name))
        except FileNotFoundError:
            digest.update(f"{name} missing".encode())
            continue
        for definition in definitions or [""]:
            at: Any = tree
            for step in filter(None, definition.split(".")):
                inside = (one for one in at.body if getattr(one, "name", "") == step)
                at = next(inside, ast.Module([], []))
            digest.update(f"{name} {definition} {_dumped(at)}".encode())
    return digest.hexdigest()[:16]


_NO_ORDER = ("annotation", "returns", "type_comment", "type_params", "kind", "ctx", "type_ignores")


def _dumped(node: Any) -> str:
    # ast.dump differs from one Python to the next; so empty fields are left out here.
    if isinstance(node, list):
        return f"[{','.join(map(_dumped, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    inside = {name: value for name, value in ast.iter_fields(node) if value not in (None, [])}
    match inside.get("body"):
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            inside["body"] = rest
    fields = (f"{name}={_dumped(one)}" for name, one in inside.items() if name not in _NO_ORDER)
    return f"{type(node).__name__}({','.join(fields)})"
