"""What a loader reads when it is verified: the files of a dataset, or indices in their place."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.dataset.folders import folders_of
from shardctl.core.instructions.subsplit import Resolved
from shardctl.core.loaders.library import Source as Examples
from shardctl.core.loaders.library import library_of
from shardctl.core.order.loader_order import LoaderOrder
from shardctl.core.progress import Watch
from shardctl.core.text import counted, printable, quoted
from shardctl.core.tfds_rules import DATASET_INFO_FILENAME
from shardctl.files.stores.stores import is_remote
from shardctl.loaders.library import IndexRange
from shardctl.loaders.record_source import FORMATS, RecordSource
from shardctl.loaders.row_files import RowFiles
from shardctl.planning.verify import BUDGETS, Source, Take
from shardctl.readers.loader_versions import installed_version
from shardctl.readers.verifying.file_checks import (
    FileChecks,
    check_files_read,
    file_path,
    first_file_here,
)

_INSTEAD = "the loader runs over indices of the same number instead"


@dataclass(frozen=True, kw_only=True)
class RealData:
    """Examples for a loader, and what is said about them.

    differs: why the real data is not what the metadata says, "" where it is.
    """

    examples: Examples
    rows: RowFiles | None = None
    read: Source = "index ranges"
    checks: FileChecks = field(default_factory=lambda: FileChecks(num_files=0))
    notes: tuple[str, ...] = ()
    versions: dict[str, str | None] = field(default_factory=dict)
    differs: str = ""

    def canonical(self, indices: Int64s) -> Int64s:
        """Return indices, those with the same contents as the same one."""
        return np.asarray(indices) if self.rows is None else self.rows.canonical(indices)


def real_data(resolved: Resolved, order: LoaderOrder, take: Take, watch: Watch | None) -> RealData:
    """Return what a loader is to read: files that it opens, TFDS's data source, else indices.

    The files that the order reads are counted and checked before a library opens them.

    Raises:
        DatasetError: a place behind a URL cannot be asked.
    """
    checks = check_files_read(order.reads, watch)
    indices = RealData(
        examples=IndexRange(order.asked.num_examples), checks=checks, notes=checks.notes
    )
    reason = _why_not_files(order, checks, take)
    if reason is not None:
        return replace(indices, notes=(*checks.notes, f"{reason}; {_INSTEAD}"))
    if order.dataset.file_format in library_of(order.loader).formats:
        return _with_rows(indices, order)
    return _with_records(indices, resolved, order)


def _why_not_files(order: LoaderOrder, checks: FileChecks, take: Take) -> str | None:
    """Return why a loader does not read the files of an order, None where it does."""
    dataset, file_format = order.dataset, order.dataset.file_format
    opens = library_of(order.loader).formats
    here = first_file_here(order.reads)
    if here is None:
        return f"the files of {dataset.title} are not on this machine"
    if is_remote(here):
        return f"verify reads files on a disk with {order.loader.title}"
    if checks.findings:
        return "the files are not opened, since not all of them are sound"
    if file_format in opens:
        return _why_not_rows(order, take)
    if opens or file_format not in FORMATS:
        formats = " and ".join(sorted(opens or FORMATS))
        how = "opens" if opens else "is given, through tfds.data_source,"
        return f"{order.loader.title} {how} {formats} files, and these are {file_format}"
    if _folder(dataset) is None:
        return "tfds.data_source reads one folder with metadata of TFDS, and these files have none"
    missing = [name for name in ("tensorflow_datasets", "array_record") if not _is_there(name)]
    if missing and not (missing == ["array_record"] and file_format == "parquet"):
        return f"tfds.data_source needs {missing[0]}, which is not installed"
    return None


def _why_not_rows(order: LoaderOrder, take: Take) -> str | None:
    """Return why the rows of files are not read by the library itself, None where they are."""
    reads = order.reads
    lengths = [
        order.dataset.splits[split].shard_lengths[shard]
        for split, shard in zip(reads.split.tolist(), reads.shard.tolist(), strict=True)
    ]
    if reads.take.tolist() != lengths:
        return f"{order.loader.title} opens whole files, and the spec takes parts of some"
    if order.asked.num_examples > BUDGETS["files"] and take != "all":
        return (
            f"to know rows again by their contents all {order.asked.num_examples:,} have to be "
            "read, as --take -1 does"
        )
    return None if _is_there("pyarrow") else "pyarrow is not installed, which reads the rows again"


def _with_rows(indices: RealData, order: LoaderOrder) -> RealData:
    """Return the files as the library opens them."""
    rows = RowFiles(files=_files(order), file_format=order.dataset.file_format)
    notes = list(indices.notes)
    if rows.num_alike:
        alike = counted(rows.num_alike, "row")
        notes.append(f"{alike} with the contents of an earlier one, not told apart from it")
    return replace(
        indices,
        rows=rows,
        read="files",
        notes=tuple(notes),
        versions={"pyarrow": installed_version("pyarrow")},
    )


def _with_records(indices: RealData, resolved: Resolved, order: LoaderOrder) -> RealData:
    """Return what TFDS hands out by index, or why that is not what the metadata says."""
    folder, reads = _folder(order.dataset), order.reads
    assert folder is not None
    source = RecordSource(
        folder=folder,
        spec=resolved.spec,
        file_format=order.dataset.file_format,
        files=_files(order),
        skip=tuple(reads.skip.tolist()),
        take=tuple(reads.take.tolist()),
    )
    library = {"tensorflow_datasets": installed_version("tensorflow-datasets")}
    try:
        found = len(source.data_source)
    except Exception as error:  # whatever TFDS raises
        said = printable((str(error).splitlines() or [""])[0], 300)
        reason = f"TFDS cannot open a data source of {quoted(resolved.spec)}: {said}"
        return replace(indices, notes=(*indices.notes, f"{reason}; {_INSTEAD}"))
    if found != len(source):
        differs = (
            f"tfds.data_source hands out {counted(found, 'example')} of {quoted(resolved.spec)}, "
            f"and the metadata says {len(source):,}"
        )
        return replace(indices, differs=differs, versions=library, notes=(*indices.notes, _INSTEAD))
    return replace(indices, examples=source, read="files", versions=library)


def _files(order: LoaderOrder) -> tuple[str, ...]:
    """Return the paths of the files of an order, in the order in which indices count them."""
    reads = order.reads
    places = zip(reads.split.tolist(), reads.shard.tolist(), strict=True)
    return tuple(file_path(order.dataset, split, shard) or "" for split, shard in places)


def _folder(dataset: Dataset) -> str | None:
    """Return the one folder with metadata of TFDS from which a dataset is read, else None."""
    folders = {folder.data_dir for folder in folders_of(dataset)}
    if dataset.is_counted or len(folders) != 1:
        return None
    folder = folders.pop()
    if folder is None or not Path(folder, DATASET_INFO_FILENAME).is_file():
        return None
    return os.fspath(folder)


def _is_there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None
