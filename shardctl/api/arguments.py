"""Arguments of the Python API: references in place of datasets, paths in place of files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path

from shardctl.base.arguments import checked
from shardctl.base.text import quoted
from shardctl.dataset.dataset import Dataset
from shardctl.errors import DatasetError
from shardctl.metadata.dataset_names import parse_dataset_name
from shardctl.metadata.reference import read_dataset, ref_from
from shardctl.saved import plan_file
from shardctl.saved.resume_plan import ResumePlan
from shardctl.saved.snapshot import Snapshot
from shardctl.saved.snapshot_file import read_comparable
from shardctl.stores.stores import is_remote, working_folder

# Context variables, so that an argument of a command reaches every place that looks names up.
_DATA_DIR: ContextVar[str | None] = ContextVar("data_dir", default=None)
_CACHE: ContextVar[bool] = ContextVar("cache", default=True)


def look_up_in(data_dir: str | None, *, cache: bool = True) -> None:
    """Look names up in the data dir of a command too, for the rest of its context.

    Without `cache` record files are counted anew, see `index`.
    """
    _DATA_DIR.set(data_dir)
    _CACHE.set(cache)


def dataset_of_argument(given: object) -> Dataset | None:
    """Return the dataset of a reference, or of a list of references; None for anything else.

    >>> dataset_of_argument("mnist").title, dataset_of_argument(3)
    ('mnist:3.0.1', None)

    Raises:
        DatasetError: a reference leads nowhere, or to something broken.
    """
    refs = [given] if isinstance(given, str | os.PathLike) else given
    if not isinstance(refs, list | tuple) or not refs:
        return None
    if not all(isinstance(ref, str | os.PathLike) for ref in refs):
        return None
    return read_dataset(refs, data_dir=_DATA_DIR.get(), cache=_CACHE.get())


@checked
def read_plan(path: str | os.PathLike[str]) -> ResumePlan:
    """Return the plan to resume that `shardctl resume -o` wrote to a file, JSON or YAML.

    Args:
        path: of the file.

    Returns:
        The plan, as `shardctl.resume` returns one. Its files are those of the dataset it was made
        for; `shardctl.prove` and `shardctl.tfds.resume` find them in the dataset as it is now.

    Raises:
        DatasetError: the file cannot be read, holds no plan, or was cut off or edited.

        plan = shardctl.read_plan("plan.yaml")
        shardctl.prove("mnist", plan).holds
    """
    return plan_file.read_plan(os.fspath(path))


@checked
def read_snapshot(path: str | os.PathLike[str]) -> Snapshot:
    """Return the snapshot that `shardctl snapshot -o` wrote to a file, JSON or YAML.

    Args:
        path: of the file.

    Returns:
        The snapshot; `shardctl.diff` compares it with another, or with the order as it is now. How
        its dataset was named (`refs`) is said as from the working folder.

    Raises:
        DatasetError: the file cannot be read, holds no snapshot, or was cut off or edited.

        pinned = shardctl.read_snapshot("order.yaml")
        shardctl.diff(pinned, shardctl.snapshot("mnist", "train")).equal
    """
    found = read_comparable(path)
    if not isinstance(found, Snapshot):
        raise DatasetError(
            f"{quoted(os.fspath(path), 200)} is a {found.kind}, not a snapshot; read a plan to "
            "resume with read_plan"
        )
    return replace(found, refs=_from_here(found.refs, Path(path).parent))


def _from_here(refs: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Return references of a file in a folder as those from the working folder.

    A path that is not there any more is not to find what has its name here.
    """
    here = working_folder()
    rebased = []
    for ref in refs:
        # URLs and names mean the same from any folder; only paths are rebased.
        is_named = is_remote(ref) or parse_dataset_name(ref) is not None
        is_gone = not (is_named or os.path.exists(here / folder / ref))
        rebased.append(
            os.path.relpath(here / folder / ref, here)
            if is_gone
            else ref_from(ref, cwd=here / folder, folder=here)
        )
    return tuple(rebased)
