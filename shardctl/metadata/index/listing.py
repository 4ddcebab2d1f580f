"""Which files a PATH means: a file, a folder, a glob or `prefix@N`, local or remote.

A folder means the record files right in it; where it has none, those of its subfolders, each by the
same rule. Hidden and unfinished files (`_SUCCESS`, `.crc`, `*.tmp`) are never taken, unless a PATH
names them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice, pairwise

from shardctl.base.text import choices, counted, near_or_all, quoted
from shardctl.dataset.dataset import Dataset
from shardctl.errors import DatasetError, ShardctlError, UsageError
from shardctl.metadata.index.name_words import (
    ANY_FOLDERS,
    FileKind,
    expanded,
    file_kind,
    is_glob,
    is_passed_over,
    name_matcher,
    path_regex,
)
from shardctl.stores import stores
from shardctl.stores.store import Store, StoredFile

# Called with the number of files listed so far; may raise to end the listing.
Listed = Callable[[int], None]

_MANY = 64  # files of one folder that are rather listed than asked for one by one, in a bucket
_TOLD_EVERY = 1000  # files


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The files that PATHs mean, in no order.

    root: the folder that all of them are below, without a slash at its end.
    sidecars: files that say something of them.
    """

    root: str
    files: Sequence[StoredFile]
    sidecars: Sequence[StoredFile] = ()
    notes: tuple[str, ...] = ()


def list_files(
    paths: Sequence[str], *, watch: Listed | None = None, absent: list[str] | None = None
) -> Listing:
    """Return the files that PATHs mean.

    absent: takes the PATHs that are not there, or match nothing, instead of an error.

    Raises:
        DatasetError: a PATH that is not there, that matches nothing, or that is no record file;
            a place that cannot be listed.
        UsageError: braces that stand for more paths than anyone has.
    """
    lister = _Lister(watch, absent)
    wanted = list(map(_whole, paths))
    if not wanted:
        raise DatasetError("no path of files is given")
    # Files first: most paths are such, and one that looks like a glob may be a file's name.
    rest = [path for path in wanted if not lister.take_file(path)]
    for path in rest:
        lister.take(path)
    return lister.listing()


def _whole(path: str) -> str:
    """Return a path from the root, without slashes at its end."""
    if not path or "\0" in path:
        raise DatasetError(f"{quoted(path, 200)} is no path")
    if stores.is_remote(path):
        scheme, _, rest = path.partition("://")
        return f"{scheme}://{rest.rstrip('/')}"
    return stores.absolute(os.path.expanduser(path))


class _Lister:
    """Collects files; each once, however many PATHs mean it."""

    def __init__(self, watch: Listed | None, absent: list[str] | None) -> None:
        self._watch, self._absent = watch, absent
        self._files: dict[str, StoredFile] = {}
        self._sidecars: dict[str, StoredFile] = {}
        self._notes: list[str] = []
        self._count = 0

    def listing(self) -> Listing:
        """Return what was collected."""
        return Listing(
            root=common_folder({stores.split_path(path)[0] for path in self._files}),
            files=[*self._files.values()],
            sidecars=[*self._sidecars.values()],
            notes=tuple(dict.fromkeys(self._notes)),
        )

    def take_file(self, path: str) -> bool:
        """Take the file at a path and return whether there is one."""
        file = stores.store_of(path).status(path)
        if file is None:
            return False
        if file_kind(stores.split_path(file.path)[1]) in (FileKind.OTHER, FileKind.SIDECAR):
            raise DatasetError(
                f"{quoted(path, 200)} is no record file, by its name; give the files of records, "
                "or the folder that they are in"
            )
        self._files[file.path] = file
        self._listed()
        return True

    def take(self, path: str) -> None:
        """Take the files that a path means which is no file itself."""
        store = stores.store_of(path)
        if store.is_folder(path):
            if not self._take_tree(store, path):
                self._nothing(nothing_in, store, path)
            return
        texts = list(expanded(path)) if "{" in path else [path]
        if len(texts) > 1:
            self._take_all(store, path, texts)
        elif not self._take_pattern(store, path):
            self._nothing(no_match, store, path)

    def _nothing(self, said: Callable[[Store, str], str], store: Store, path: str) -> None:
        """Say of a path that it means no file."""
        if self._absent is None:
            raise DatasetError(said(store, path))
        self._absent.append(path)

    def _take_all(self, store: Store, path: str, texts: list[str]) -> None:
        """Take everything that braces stand for; what is missing is an error."""
        missing: list[str] = []
        for folder, group in groupby(texts, lambda text: stores.split_path(text)[0]):
            names = [stores.split_path(text)[1] for text in group]
            plain = not is_glob(folder) and not any(map(name_matcher, names))
            lists = stores.is_remote(path) and not path.startswith("http")
            # One listing costs as much as a few questions; it is then looked through for the names.
            if plain and lists and len(names) > _MANY and store.is_folder(folder[:-1]):
                self._take_matching(store, folder, set(names).__contains__, names[0][:1])
                missing += [name for name in names if folder + name not in self._files]
                continue
            for name in names:
                if not (self.take_file(folder + name) or self._take_pattern(store, folder + name)):
                    missing.append(name)
        if missing and self._absent is not None:
            self._absent += missing
        elif missing:
            raise DatasetError(
                f"{quoted(path, 200)} stands for {len(texts):,} files, of which {len(missing):,} "
                f"not there: {choices(missing, 3)}"
            )

    def _take_pattern(self, store: Store, path: str) -> bool:
        """Take what a glob or `prefix@N` means, and return whether it means anything."""
        folder, name = stores.split_path(path)
        matches = name_matcher(name)
        if matches is None and not is_glob(folder):
            return False
        folders = list(folders_of(store, f"{path}/" if name == ANY_FOLDERS else folder))
        if matches is None:  # a name behind a folder that is a glob
            return sum(self.take_file(inner + name) for inner in folders) > 0
        found = [self._take_matching(store, inner, matches, name[:1]) for inner in folders]
        # A glob may also mean folders, but only where it means no files.
        if any(found) or name == ANY_FOLDERS or not is_glob(name):
            return any(found)
        taken = (  # as where a shell makes folders of the glob
            self._take_tree(store, inner + sub)
            for inner in folders
            for sub in store.subfolders(inner)
            if matches(sub) and not is_passed_over(sub)
        )
        return sum(taken) > 0

    def _take_matching(
        self, store: Store, folder: str, matches: Callable[[str], bool], first: str
    ) -> bool:
        """Take the matching files right in a folder, and return whether there are any.

        Hidden ones are taken where the pattern begins with what hides them.
        """
        found = False
        for file, name, kind in self._scan(store, folder):
            hidden = kind == FileKind.UNFINISHED and not (first in "._" and name.startswith(first))
            if kind == FileKind.SIDECAR:
                self._sidecars[file.path] = file
            elif kind != FileKind.OTHER and not hidden and matches(name):
                self._files[file.path] = file
                found = True
        return found

    def _take_tree(self, store: Store, folder: str, above: tuple[str, ...] = ()) -> bool:
        """Take the record files of a folder, else of its subfolders; return whether it has any."""
        folder = folder.rstrip("/") + "/"
        way = way_to(folder, above)
        if way is None:
            return False
        of_kind: dict[FileKind, list[StoredFile]] = {}
        for file, _, kind in self._scan(store, folder):
            of_kind.setdefault(kind, []).append(file)
        # Files without a format in their name count only where none has one.
        taken = of_kind.get(FileKind.RECORDS) or of_kind.get(FileKind.SHARD, [])
        self._files |= {file.path: file for file in taken}
        self._sidecars |= {file.path: file for file in of_kind.get(FileKind.SIDECAR, [])}
        inner = [name for name in store.subfolders(folder) if not is_passed_over(name)]
        if not taken:
            return sum(self._take_tree(store, folder + name, way) for name in inner) > 0
        if inner:
            where = quoted(folder.rstrip("/"), 200)
            self._notes.append(
                f"{where} has record files, so its subfolders were not looked into: "
                f"{choices(inner, 5)}"
            )
        return True

    def _scan(self, store: Store, folder: str) -> Iterator[tuple[StoredFile, str, FileKind]]:
        """Yield the files of a folder with name and kind."""
        for file in store.scan(folder.rstrip("/") or "/"):
            self._listed()
            name = stores.split_path(file.path)[1]
            yield file, name, file_kind(name)

    def _listed(self) -> None:
        self._count += 1
        if self._watch is not None and not self._count % _TOLD_EVERY:
            self._watch(self._count)


def common_folder(folders: Collection[str]) -> str:
    """Return the deepest folder that all are in, without a slash at its end; folders have one."""
    # In sorted order the first and the last share what all share.
    ends = [min(folders), max(folders)] if folders else [""]
    alike = os.path.commonprefix(ends)  # noqa: RUF071  # the slash at the end makes it a path
    return alike[: max(alike.rfind("/"), 0)] or ("/" if folders else "")


# Folders that a glob means, and what a place has instead of what was asked for.

_LOOKED_AT = 10_000  # names of a folder among which what is near is looked for


def folders_of(store: Store, glob: str) -> Iterator[str]:
    """Yield the folders that a glob means, the slash at the end of each; in order of their names.

    `glob` is a path from the root and ends in a slash. Hidden folders are meant by name alone.
    """
    scheme, divided, rest = glob.partition("://") if stores.is_remote(glob) else ("", "", glob)
    parts = rest.rstrip("/").split("/")
    # Folders in front of the first glob need not be listed.
    plain = next((at for at, part in enumerate(parts) if is_glob(part)), len(parts))
    start = f"{scheme}{divided}{'/'.join(parts[:plain])}".rstrip("/") + "/"
    yield from _below(store, start, parts[plain:])


def _below(store: Store, folder: str, parts: list[str]) -> Iterator[str]:
    if not parts:
        if store.is_folder(folder.rstrip("/") or "/"):
            yield folder
        return
    part, rest = parts[0], parts[1:]
    if part == ANY_FOLDERS:
        for inner in with_subfolders(store, folder):
            yield from _below(store, inner, rest)
    elif not is_glob(part):
        yield from _below(store, f"{folder}{part}/", rest)
    elif store.is_folder(folder.rstrip("/") or "/"):
        for name in store.subfolders(folder.rstrip("/") or "/"):
            if path_regex(part).fullmatch(name) and not is_passed_over(name):
                yield from _below(store, f"{folder}{name}/", rest)


def with_subfolders(store: Store, folder: str, above: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield a folder and all below it, hidden and unfinished ones left out.

    above: the folders that the walk came by, see `way_to`.
    """
    way = way_to(folder, above)
    if way is None:
        return
    yield folder
    for name in store.subfolders(folder.rstrip("/") or "/"):
        if not is_passed_over(name):
            yield from with_subfolders(store, f"{folder}{name}/", way)


def way_to(folder: str, above: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the folders `above` and this one, None where it is one of them by a link."""
    # By the real path: a link to a folder above would make the walk endless.
    real = folder if stores.is_remote(folder) else os.path.realpath(folder)
    return None if real in above else (*above, real)


def nothing_in(store: Store, folder: str) -> str:
    """Return that a folder has no record files, and what it has."""
    names = _names(store, folder)
    has = f"; it has {choices(names, 4)}" if names else "; it is empty"
    return (
        f"{quoted(folder, 200)} has no record files (.tfrecord, .array_record, .parquet, .arrow, "
        f".mds, .tar), nor have its subfolders{has}"
    )


def no_match(store: Store, path: str) -> str:
    """Return that a path means no file, and what is near."""
    folder, name = stores.split_path(path)
    near = ""
    if not stores.is_remote(path) and stores.has_lost_a_slash(path):
        near = stores.A_SLASH_LOST
    elif not is_glob(folder):
        if not store.is_folder(folder.rstrip("/") or "/"):
            near = f"there is no folder {quoted(folder, 200)}"
        elif names := _names(store, folder):
            near = near_or_all(name.partition("@")[0], names)
    return f"no file matches {quoted(path, 200)}; {near}".removesuffix("; ")


def _names(store: Store, folder: str) -> list[str]:
    """Return names of a folder, sorted; none where it cannot be listed."""
    folder = folder.rstrip("/") or "/"
    try:
        files = islice(store.scan(folder), _LOOKED_AT)
        names = [stores.split_path(file.path)[1] for file in files]
        return sorted([*names, *(f"{name}/" for name in store.subfolders(folder))])
    except ShardctlError:
        return []


# What `tf.data.Dataset.list_files` makes of record files that were counted.


def listed_spec(pattern: str, dataset: Dataset, *, look: bool = True) -> str:
    """Return the spec that reads all files of a pattern in the order of their paths by bytes.

    dataset: what the pattern means as a reference. look: whether it is looked for what else the
    pattern matches, which tf.data would read too.

    Raises:
        UsageError: a pattern that means another thing to tf.data, or files that only one of the two
            reads, or in another order.
        DatasetError: the files cannot be listed.
    """
    if dataset.file_format != "tfrecord":
        raise UsageError(
            f"list_files: {quoted(pattern, 200)} are {dataset.file_format} files, and "
            "TFRecordDataset reads TFRecord files"
        )
    splits = [split for split in dataset.splits if split.num_shards]
    for split in splits:
        if split.num_empty_shards:
            raise UsageError(
                f"list_files: {counted(split.num_empty_shards, 'file')} of {quoted(pattern, 200)} "
                "without examples: tf.data gives each its turn, which is not followed here; move "
                "them away"
            )
    # The splits as their first files lie, which has to be how all files lie.
    splits.sort(key=lambda split: stores.as_bytes(next(_paths_of(dataset, split.name))))
    paths = list(chain.from_iterable(_paths_of(dataset, split.name) for split in splits))
    # Symmetric difference: files that only one of the two reads.
    for path in sorted({*paths} ^ {*_paths_of_tf_data(pattern)}) if look else ():
        only = "here alone" if path in paths else "to tf.data, and is no record file"
        raise UsageError(
            f"list_files: {quoted(pattern, 200)} means {quoted(path, 200)} {only}; write a glob of "
            "the record files, as train-*-of-00008"
        )
    for before, after in pairwise(paths):
        if stores.as_bytes(before) > stores.as_bytes(after):
            names = [quoted(stores.split_path(path)[1], 80) for path in (before, after)]
            raise UsageError(
                f"list_files: {names[0]} is read before {names[1]} here, by their numbers or "
                "splits, and tf.data sorts the paths as text; read(train, data='..', "
                "file_order=[..]) takes a list of the files in that order"
            )
    return "+".join(split.name for split in splits)


def _paths_of(dataset: Dataset, name: str) -> Iterator[str]:
    for part in dataset.split(name).files:
        folder = "" if part.data_dir is None else f"{part.data_dir.rstrip('/')}/"
        yield from (folder + path for path in part)


def _paths_of_tf_data(pattern: str) -> Iterator[str]:
    """Yield the files and folders that a pattern means to tf.data, which reads ** as *."""
    whole = pattern if stores.is_remote(pattern) else stores.absolute(pattern)
    folder, name = stores.split_path(whole)
    if not is_glob(whole):
        yield whole
        return
    store, matches = stores.store_of(folder), path_regex(name).fullmatch
    for inner in folders_of(store, folder.replace(ANY_FOLDERS, "*")):
        place = inner.rstrip("/") or "/"
        names = (stores.split_path(file.path)[1] for file in store.scan(place))
        yield from (inner + one for one in chain(names, store.subfolders(place)) if matches(one))
