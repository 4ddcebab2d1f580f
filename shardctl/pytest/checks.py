"""The fixture `order_snapshot`: the order of the user's own dataset, pinned in a file."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from shardctl.base.arguments import checked
from shardctl.base.text import shell_line
from shardctl.base.tfds_rules import Loop
from shardctl.errors import ShardctlError, UsageError

if TYPE_CHECKING:
    from shardctl.verbs.snapshot.answer import TakenSnapshot


class OrderSnapshot:
    """What a test gets of the fixture `order_snapshot`.

    `check` is all that it is for. A test may check several datasets, each under a name of its own.
    """

    def __init__(self, *, test_file: Path, test: str, update: bool, root: Path, here: Path) -> None:
        """Make it for one test.

        Args:
            test_file: the file that the test is in.
            test: its name in there, with its class and its parameters.
            update: whether the orders of today are accepted.
            root: the folder of the project.
            here: the folder that pytest was called in.
        """
        self._test_file, self._test, self._update = test_file, test, update
        self._root, self._here = root, here
        self._folder, self._stem = folder_of(test_file), stem_of(test)
        self._used: list[str] = []
        self.written: list[str] = []  # paths as people know them

    def check(
        self, ds: Any, name: str | None = None, *, passes: int = 1, loop: Loop = "python"
    ) -> None:
        """Fail where the order of a tf.data.Dataset is another than the one that was pinned.

        The dataset is not read: `shardctl.tfds.inspect` tells its order. Where that is
        nondeterministic, or nothing is pinned yet, the test fails too; `pytest --update-orders`
        pins the current order.

        Args:
            ds: the dataset, as the training would iterate it; or a function that returns it, or
                what iterates it, of which the order of the dataset is checked.
            name: of the check, where a test makes several.
            passes: how many passes are pinned, from the first on, a file for each.
            loop: the training loop; "keras-fit" takes two iterators an epoch.
        """
        __tracebackhide__ = True  # what pytest shows ends with the line of the test
        _check_arguments(name=name, passes=passes, loop=loop)
        files = [file_name(self._stem, name, index) for index in range(passes)]
        # A second check of one name would overwrite the first one's file.
        if files[0] in self._used:
            pytest.fail("two checks of one test: give each a name of its own, check(ds, name)")
        self._used += files
        paths = [self._folder / file for file in files]
        try:
            taken = list(_taken(ds, passes, loop, self._root, self._folder))
            found = [*map(self._problem, paths, taken)]
        # Every refusal of ours is a failed test, not an error in the plugin.
        except ShardctlError as error:
            found = [str(error)]
        if problems := [problem for problem in found if problem is not None]:
            pytest.fail("\n\n".join(problems))

    def _problem(self, path: Path, taken: TakenSnapshot) -> str | None:
        """Return what is wrong with a snapshot; nothing is where it is written anew."""
        from shardctl.api.arguments import read_snapshot
        from shardctl.draw.tables import PLAIN
        from shardctl.verbs.diff.answer import PinnedOrder, diff
        from shardctl.verbs.diff.view import diff_table

        shown = os.path.relpath(path, self._here)
        if self._update:
            self._write(path, taken)
            return None
        if not path.exists():
            return f"no order is pinned in {shown}\n{self._how_to_accept()}"
        # Both sides as orders, so that `diff` explains where they part.
        today = PinnedOrder(snapshot=taken.snapshot, label="the current order", live=taken.live)
        found = diff(PinnedOrder(snapshot=read_snapshot(path), label=shown), today)
        if found.equal:
            return None
        return f"{''.join(diff_table(found, PLAIN)).rstrip()}\n\n{self._how_to_accept()}"

    def _write(self, path: Path, taken: TakenSnapshot) -> None:
        """Write a snapshot, whole or not at all; one that says the same is left as it is."""
        from shardctl.files.atomic import new_file
        from shardctl.saved.snapshot_file import snapshot_yaml

        data = "".join(snapshot_yaml(taken.snapshot)).encode("utf-8", "backslashreplace")
        # Unchanged files keep their time, and are not reported.
        if path.exists() and path.read_bytes() == data:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with new_file(str(path)) as file:
            file.write(data)
        self.written.append(os.path.relpath(path, self._here))

    def _how_to_accept(self) -> str:
        test = f"{os.path.relpath(self._test_file, self._here)}::{self._test}"
        return f"if this is meant:\n  {shell_line('pytest', test, '--update-orders')}"


@checked
def _check_arguments(*, name: str | None, passes: int, loop: Loop) -> None:
    """Refuse arguments of a check.

    Raises:
        UsageError: one of another type, or a number of passes below 1.
    """
    if passes < 1:
        raise UsageError(f"passes={passes}: a number from 1 is needed")


def _taken(ds: Any, passes: int, loop: Loop, root: Path, folder: Path) -> Iterator[TakenSnapshot]:
    """Yield the snapshot of each pass of a dataset, as it is today."""
    from shardctl.tfds import inspect
    from shardctl.verbs.snapshot.answer import snapshot

    found = inspect(ds, loop=loop)
    found.check_predictable()
    if found.dataset is None:
        raise UsageError(
            "the pipeline reads no files that a dataset has, so that no snapshot could name its "
            "examples"
        )
    refs = _refs(found.dataset.data_dir, root, folder)
    for index in range(passes):
        settings = replace(found.settings, pass_index=index)
        taken = snapshot(found.dataset, found.spec, settings)
        yield replace(taken, snapshot=replace(taken.snapshot, refs=refs))


def _refs(data_dir: str | None, root: Path, folder: Path) -> tuple[str, ...]:
    """Return how a snapshot names the folder of a dataset of the project; others it leaves out.

    A path outside of the project is another on the next machine; a URL is the same there.
    """
    from shardctl.stores.stores import is_remote

    if data_dir is not None and is_remote(data_dir):
        return (data_dir,)
    if data_dir is None or not Path(data_dir).resolve().is_relative_to(root.resolve()):
        return ()
    return (Path(os.path.relpath(data_dir, folder)).as_posix(),)


# Where the snapshot of a test lies: a folder for each test file, a file for each check.

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
    # Brackets and slashes are not allowed in file names everywhere.
    if bracket:
        stem += f"-{safe(parameters.removesuffix(']'))}"
    return _short(stem, test)


def safe(text: str) -> str:
    """Return a text as part of a file name; another text becomes another name.

    >>> safe("validation"), safe("train[:10%]")
    ('validation', 'train--10---6cda7661')
    """
    made = _UNSAFE.sub("-", text)
    # A hash keeps two texts apart that become one name.
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
