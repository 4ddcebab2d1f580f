"""Folders that a glob means, and what a place has instead of what was asked for."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator

from shardctl.base.text import choices, did_you_mean, quoted
from shardctl.errors import ShardctlError
from shardctl.metadata.dataset_name import snake_case, version_key
from shardctl.metadata.index.naming.globs import ANY_FOLDERS, glob_regex, is_glob, sharded_regex
from shardctl.metadata.index.naming.kinds import is_passed_over
from shardctl.metadata.index.naming.split_words import split_word
from shardctl.stores.paths import A_SLASH_LOST, has_lost_a_slash, is_remote, split_path
from shardctl.stores.store import Store

_LOOKED_AT = 10_000  # names of a folder among which what is near is looked for


def folders_of(store: Store, glob: str) -> Iterator[str]:
    """Yield the folders that a glob means, the slash at the end of each; in order of their names.

    `glob` is a path from the root and ends in a slash. Hidden folders are meant by name alone.
    """
    scheme, divided, rest = glob.partition("://") if is_remote(glob) else ("", "", glob)
    parts = rest.rstrip("/").split("/")
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
            if glob_regex(part).fullmatch(name) and not is_passed_over(name):
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
    real = folder if is_remote(folder) else os.path.realpath(folder)
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
    folder, name = split_path(path)
    if not is_remote(path) and has_lost_a_slash(path):
        return f"no file matches {quoted(path, 200)}; {A_SLASH_LOST}"
    if not is_glob(folder) and not store.is_folder(folder.rstrip("/") or "/"):
        return f"no file matches {quoted(path, 200)}; there is no folder {quoted(folder, 200)}"
    names = [] if is_glob(folder) else _names(store, folder)
    near = did_you_mean(name.partition("@")[0], names).rstrip()
    near = near or (f"its folder has {choices(names, 4)}" if names else "")
    if is_glob(path) or sharded_regex(name) is not None:
        return f"no file matches {quoted(path, 200)}; {near}".removesuffix("; ")
    if not is_remote(path) and os.path.lexists(path):
        return f"{quoted(path, 200)} is neither a file nor a folder; record files are regular files"
    return f"no such file or folder: {quoted(path, 200)}; {near}".removesuffix("; ")


def _names(store: Store, folder: str) -> list[str]:
    """Return names of a folder, sorted; none where it cannot be listed."""
    folder = folder.rstrip("/") or "/"
    try:
        files = itertools.islice(store.scan(folder), _LOOKED_AT)
        names = [split_path(file.path)[1] for file in files]
        return sorted([*names, *(f"{name}/" for name in store.subfolders(folder))])
    except ShardctlError:
        return []


# The name and version of a dataset, by the folder that its files are in.

# Folders that are called by what is in them. Those that are called by a format, `parquet`, are not
# among them: what is above them is as often a disk, or a project, as a dataset.
_PLAIN = re.compile(
    r"data|dataset|datasets|files|shards?|records?|default|main|raw|tmp|snapshots", re.IGNORECASE
)
# Folders of Hugging Face's caches: fingerprints and commits, and what is of the hub.
_HASH = re.compile(r"[0-9a-f]{16}|[0-9a-f]{40}|[0-9a-f]{64}")
_OF_HUB = re.compile(r"datasets--(.+--)?")


def dataset_of_folder(root: str) -> tuple[str | None, str | None]:
    """Return name and version as folders of TFDS say them, `mnist/3.0.1`, else the folder's name.

    Folders that are called as a split, `data`, or by a hash, say nothing of the name where one
    above does. It
    is made a name that TFDS takes; None where there is nothing to make it of.

    >>> dataset_of_folder("/data/mnist/3.0.1"), dataset_of_folder("/d/ImageNet-1k/data/train")
    (('mnist', '3.0.1'), ('image_net_1k', None))
    >>> dataset_of_folder("cache/squad/plain_text/0.0.0/7b6d24c440a36b68")[0]
    'plain_text'
    >>> dataset_of_folder("hub/datasets--me--digits/snapshots/" + 40 * "a" + "/data")[0]
    'digits'
    >>> dataset_of_folder("gs://bucket"), dataset_of_folder("/data"), dataset_of_folder("/")
    (('bucket', None), ('data', None), (None, None))
    """
    path = root.partition("://")[2] if is_remote(root) else root
    parts = [part for part in path.split("/") if part]
    version = None
    plain = None
    named = [part for part in parts if not _HASH.fullmatch(part)] or parts
    for part in reversed(named):
        if version is None and version_key(part) and plain is None:
            version = part
            continue
        name = valid_name(_OF_HUB.sub("", part, count=1))
        if name is None:
            continue
        if not (_PLAIN.fullmatch(part) or split_word(part)):
            return name, version
        plain = plain or name
    return plain, version


def valid_name(text: str) -> str | None:
    """Return a text as a name that TFDS takes: a letter, then letters, digits and `_`.

    >>> valid_name("My Data-v2"), valid_name("2012"), valid_name("…")
    ('my_data_v2', 'd_2012', None)
    """
    name = re.sub(r"_+", "_", snake_case(re.sub(r"[^A-Za-z0-9_]", "_", text))).strip("_")
    return (name if name[0].isalpha() else f"d_{name}") if name else None
