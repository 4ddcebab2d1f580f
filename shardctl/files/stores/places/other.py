"""Every other place that fsspec knows: `az://`, `ftp://`, `sftp://`, `memory://`, `file://`, ..."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from shardctl.errors import DatasetError, MissingDependencyError, ShardctlError
from shardctl.files.stores.places.buckets import ListedStore, Page
from shardctl.files.stores.store import StoredFile
from shardctl.files.stores.transfer.failures import (
    Surroundings,
    TransientError,
    as_failure,
    attempted,
    said,
    shown,
    surroundings,
)
from shardctl.files.stores.transfer.ranges import RemoteSource
from shardctl.files.stores.transfer.web import changed

# Under these keys file systems say which version an entry is; times only where nothing better is.
_EXACT = ("etag", "ETag", "generation", "version_id", "content_hash", "checksum", "md5")
_TIMES = ("mtime", "last_modified", "LastModified", "modified", "modify", "created")

Answer = TypeVar("Answer")


class OtherStore(ListedStore):
    """Files of a scheme by fsspec's own file system; versions are compared before and after."""

    def __init__(self, scheme: str) -> None:
        self._scheme = scheme

    def status(self, path: str) -> StoredFile | None:
        """Return the file at a path."""
        try:
            found = self._tried(path, lambda filesystem, name: filesystem.info(name))
        except FileNotFoundError:
            return None
        return self._stored(path, found) if found.get("type") == "file" else None

    def pages(self, folder: str, *, at_most: int | None = None) -> Iterator[Page]:
        """Yield one page: fsspec lists a folder at once."""
        try:
            found = self._tried(folder, _listed)
        except (FileNotFoundError, NotADirectoryError):
            return
        base = folder.rstrip("/") if not folder.endswith("://") else folder
        files, folders = [], []
        for entry in found:
            name = str(entry["name"]).rstrip("/").rpartition("/")[2]
            path = f"{base}{'' if base.endswith('/') else '/'}{name}"
            if entry.get("type") == "directory":
                folders.append(path)
            elif entry.get("type") == "file":
                files.append(self._stored(path, entry))
        yield Page(files=files, folders=folders)

    def fetch(self, file: StoredFile, start: int, stop: int) -> bytes:
        """Return a range of a file."""

        def once(filesystem: Any, name: str) -> bytes:
            data: bytes = filesystem.cat_file(name, start=start, end=stop)
            if len(data) > stop - start:
                raise _no_ranges(file.path)
            if len(data) < stop - start:
                raise TransientError(f"truncated: {len(data)} of {stop - start} bytes came")
            return data

        try:
            return self._tried(file.path, once)
        except FileNotFoundError:
            raise changed(file.path, "it is gone") from None

    @contextlib.contextmanager
    def open(self, file: StoredFile) -> Iterator[RemoteSource]:
        """Open a file; whether it is the one that was listed is looked at before and after."""
        self._same(file)
        with super().open(file) as source:
            yield source
        self._same(file)

    def _same(self, file: StoredFile) -> None:
        _filesystem(self._scheme, file.path)[0].invalidate_cache()
        found = self.status(file.path)
        if found is None:
            raise changed(file.path, "it is gone")
        # Some say less in a listing than of one file: then the size alone is compared.
        comparable = _kind(found.version) == _kind(file.version)
        if found.num_bytes != file.num_bytes or (comparable and found.version != file.version):
            raise changed(file.path)

    def _stored(self, path: str, found: dict[str, Any]) -> StoredFile:
        size = found.get("size")
        if not isinstance(size, int):
            message = f"cannot read {shown(path)}: its place does not say how many bytes it has"
            raise DatasetError(message)
        return StoredFile(path=path, num_bytes=size, version=_version(found))

    def _tried(self, path: str, call: Callable[[Any, str], Answer]) -> Answer:
        """Return what a call of the file system answers; FileNotFoundError is the caller's."""

        def once() -> Answer:
            filesystem, name = _filesystem(self._scheme, path)
            try:
                return call(filesystem, name)
            except (ShardctlError, TransientError, FileNotFoundError, NotADirectoryError):
                raise
            except PermissionError:
                raise DatasetError(f"cannot read {shown(path)}: no permission") from None
            except Exception as error:
                raise as_failure(error, path) from None

        return attempted(once, path=path)


def _listed(filesystem: Any, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = filesystem.ls(name, detail=True)
    own = filesystem._strip_protocol(name).strip("/")
    # Asked for a file, most answer with the file itself.
    return [entry for entry in found if str(entry["name"]).strip("/") != own]


def _version(found: dict[str, Any]) -> str:
    exact = next((key for key in _EXACT if found.get(key)), None)
    time = next((key for key in _TIMES if found.get(key)), None)
    key = exact or time
    if key is None:
        return ""
    value = found[key]
    return f"{key}:{value.timestamp() if isinstance(value, datetime) else value}"


def _kind(version: str) -> str:
    return version.partition(":")[0]


def _no_ranges(path: str) -> DatasetError:
    return DatasetError(f"cannot read {shown(path)} in parts: its place ignores ranges")


@cache
def _chosen(around: Surroundings, scheme: str, host: str) -> Any:
    import fsspec

    return fsspec.core.url_to_fs(f"{scheme}://{host}", use_listings_cache=False)[0]


def _filesystem(scheme: str, path: str) -> tuple[Any, str]:
    """Return fsspec's file system of a path for this process, and its name there."""
    host = path.partition("://")[2].partition("/")[0]
    try:
        filesystem = _chosen(surroundings("AZURE_", "HF_"), scheme, host)
        return filesystem, filesystem._strip_protocol(path)
    except ImportError as error:
        package = {"az": "adlfs", "abfs": "adlfs", "abfss": "adlfs", "sftp": "paramiko"}
        needed = package.get(scheme)
        how = f"pip install {needed}" if needed else said(error)
        message = f"reading {scheme}:// needs a package: {how}"
        raise MissingDependencyError(message) from None
    except Exception as error:
        raise DatasetError(f"cannot read {shown(path)}: {said(error)}") from None
