"""Where the snapshot of a test lies: a folder for each test file, a file for each check."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

FOLDER = "order_snapshots"

_UNSAFE = re.compile(r"[^a-z0-9_=+,-]")
_MOST = 100  # characters of a name, so that file systems and archives take it


def folder_of(test_file: Path) -> Path:
    """Return the folder of the snapshots of a test file.

    >>> folder_of(Path("tests/test_train.py")).as_posix()
    'tests/order_snapshots/test_train'
    """
    return test_file.parent / FOLDER / test_file.stem


def stem_of(test: str) -> str:
    """Return the first part of the names of a test's snapshots, which no other test has.

    Parameters are part of it, made safe for every file system; where that changed them, a hash of
    what they were is added.

    >>> stem_of("test_order"), stem_of("TestTrain::test_order"), stem_of("test_order[2-adam]")
    ('test_order', 'TestTrain.test_order', 'test_order-2-adam')
    >>> stem_of("test_order[a/b]"), stem_of("test_order[a-b]")
    ('test_order-a-b-c14cddc0', 'test_order-a-b')
    """
    function, bracket, parameters = test.partition("[")
    stem = function.replace("::", ".")
    if bracket:
        stem += f"-{safe(parameters.removesuffix(']'))}"
    return _short(stem, test)


def safe(text: str) -> str:
    """Return a text as part of a file name; another text becomes another name.

    >>> safe("validation"), safe("train[:10%]")
    ('validation', 'train--10---6cda7661')
    """
    made = _UNSAFE.sub("-", text)
    # Some file systems know no capitals, so that two names that differ in them are one.
    return _short(made if made == text else f"{made}-{_hash(text)[:8]}", text)


def _short(name: str, text: str) -> str:
    return name if len(name) <= _MOST else f"{name[: _MOST - 9]}-{_hash(text)[:8]}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def file_name(stem: str, name: str | None, pass_index: int) -> str:
    """Return the name of the snapshot of a check, for one pass of it.

    >>> file_name("test_order", None, 0), file_name("test_order", "validation", 2)
    ('test_order.yaml', 'test_order.validation.pass.2.yaml')
    """
    parts = [stem, *([] if name is None else [safe(name)])]
    if pass_index:
        parts.append(f"pass.{pass_index}")
    return f"{'.'.join(parts)}.yaml"


def belongs_to(file: str, stem: str) -> bool:
    """Return whether a snapshot is one of the test with that stem.

    >>> belongs_to("test_order.validation.yaml", "test_order")
    True
    >>> belongs_to("test_order-2.yaml", "test_order")
    False
    """
    return file.startswith(f"{stem}.")
