"""Objects of Google Cloud Storage, `gs://`, by its JSON API.

gcsfs says who asks (its credentials are those of gcloud, of a service account or of the machine)
and where (STORAGE_EMULATOR_HOST, fsspec's own settings). The requests are our own: gcsfs drops what
tells a whole answer from a part, tries again for half a minute by itself, and asks about folders in
ways that an emulator answers after 60 s.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cache
from typing import Any
from urllib.parse import quote

from shardctl.errors import DatasetError, MissingDependencyError
from shardctl.files.stores.places.buckets import (
    ListedStore,
    Page,
    bucket_and_key,
    prefix_of,
    root_of,
)
from shardctl.files.stores.store import StoredFile
from shardctl.files.stores.transfer.failures import (
    Surroundings,
    TransientError,
    said,
    shown,
    surroundings,
)
from shardctl.files.stores.transfer.web import Headers, Range, Web, changed

_LOGIN = "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS"
_PAGE = 1000


class GcsStore(ListedStore):
    """Objects by `gs://bucket/key`; read by everybody where there are no credentials."""

    def __init__(self) -> None:
        self._web = Web(_authorization, _refusal)

    def status(self, path: str) -> StoredFile | None:
        """Return the object at a path."""
        bucket, key = bucket_and_key(path)
        if not key or key.endswith("/"):
            return None
        found = self._json(f"b/{_quoted(bucket)}/o/{_quoted(key)}", path, {})
        return None if found is None else _stored(path, found)

    def pages(self, folder: str, *, at_most: int | None = None) -> Iterator[Page]:
        """Yield the objects and the beginnings of keys below a folder."""
        (bucket, prefix), root = prefix_of(folder), root_of(folder)
        asked = {"delimiter": "/", "prefix": prefix, "maxResults": str(at_most or _PAGE)}
        asked["fields"] = "nextPageToken,prefixes,items(name,size,generation)"
        while True:
            found = self._json(f"b/{_quoted(bucket)}/o", folder, asked)
            if found is None:
                raise DatasetError(f"cannot read {shown(folder)}: there is no bucket of this name")
            items = [item for item in found.get("items", []) if item["name"] != prefix]
            yield Page(
                files=[_stored(f"{root}/{item['name']}", item) for item in items],
                folders=[f"{root}/{name}" for name in found.get("prefixes", [])],
            )
            token = found.get("nextPageToken")
            if not token or token == asked.get("pageToken"):
                return
            asked["pageToken"] = token

    def fetch(self, file: StoredFile, start: int, stop: int) -> bytes:
        """Return a range of one generation of an object."""
        bucket, key = bucket_and_key(file.path)
        generation = file.version.removeprefix("generation:")
        asked = f"alt=media&ifGenerationMatch={generation}" if generation else "alt=media"

        told: list[str] = []

        def check(headers: Headers) -> None:
            told.append(headers.get("X-Goog-Generation", ""))
            if generation and told[-1] and told[-1] != generation:
                raise changed(file.path)

        wanted = Range(
            path=file.path,
            url=f"{_base()}b/{_quoted(bucket)}/o/{_quoted(key)}?{asked}",
            start=start,
            stop=stop,
            num_bytes=file.num_bytes,
            # Without it, what was uploaded compressed is sent decompressed, and Range is ignored
            # (cloud.google.com/storage/docs/transcoding); with it, it is refused by its encoding.
            headers={"Accept-Encoding": "gzip"},
            check=check,
        )
        data = self._web.range(wanted)
        # Google says which generation it sends; of what does not, as emulators, it is asked after.
        if generation and not all(told) and self.status(file.path) != file:
            raise changed(file.path)
        return data

    def _json(self, resource: str, path: str, asked: dict[str, str]) -> dict[str, Any] | None:
        url = _base() + resource
        reply = self._web.ask(url, path=path, params={**asked, **_project()})
        if reply.status == 404:
            return None
        try:
            found = json.loads(reply.body)
        except ValueError:
            found = None
        if reply.status != 200 or not isinstance(found, dict):
            message = f"cannot read {shown(path)}: the server answers {reply.status} without JSON"
            raise DatasetError(message)
        return found


def _stored(path: str, item: dict[str, Any]) -> StoredFile:
    generation = item.get("generation")
    return StoredFile(
        path=path,
        num_bytes=int(item.get("size", 0)),
        version=f"generation:{generation}" if generation else "",
    )


def _refusal(status: int) -> str | None:
    if status not in (401, 403):
        return None
    if _filesystem().credentials.credentials is None:
        _made.cache_clear()  # so that a login is noticed
        return f"it is not open to everybody, and there are no Google credentials: {_LOGIN}"
    if status == 401:
        return f"Google refuses the credentials: {_LOGIN}"
    return "the account has no permission to read it (storage.objects.get and .list)"


def _authorization() -> str:
    headers: dict[str, str] = {}
    try:
        _filesystem().credentials.apply(headers)
    except Exception as error:
        if type(error).__name__ == "TransportError":
            raise TransientError("Google's login cannot be reached") from None
        message = f"Google's credentials cannot be used ({type(error).__name__}): {_LOGIN}"
        raise DatasetError(message) from None
    return headers.get("authorization") or headers.get("Authorization") or ""


def _project() -> dict[str, str]:
    """Return who pays for the request, where fsspec's settings say that it is not the bucket."""
    pays = _filesystem().requester_pays
    project = pays if isinstance(pays, str) else _filesystem().project
    return {"userProject": project} if pays and project else {}


def _base() -> str:
    return str(_filesystem().base)


def _filesystem() -> Any:
    return _made(surroundings("GOOGLE_", "GCSFS_", "GCLOUD_", "STORAGE_EMULATOR", "CLOUDSDK_"))


@cache
def _made(around: Surroundings) -> Any:
    """Return gcsfs's file system; none of its methods that list or read is used."""
    try:
        import fsspec
        import gcsfs  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            "reading gs:// needs a package: pip install 'shardctl[gcs]'"
        ) from error
    from google.auth.exceptions import DefaultCredentialsError

    settings = fsspec.config.conf.get("gs") or fsspec.config.conf.get("gcs") or {}
    if os.environ.get("STORAGE_EMULATOR_HOST") and "token" not in settings:
        # As Google's own client does.
        return fsspec.filesystem("gs", token="anon", skip_instance_cache=True)  # noqa: S106
    try:
        # By itself gcsfs asks the metadata server a second time, for many seconds.
        login = {} if "token" in settings else _DEFAULT_LOGIN
        return fsspec.filesystem("gs", skip_instance_cache=True, **login)
    except DefaultCredentialsError as error:
        if os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"):
            message = f"GOOGLE_APPLICATION_CREDENTIALS leads to no credentials: {said(error)}"
            raise DatasetError(message) from None
        return fsspec.filesystem("gs", token="anon", skip_instance_cache=True)  # noqa: S106
    except Exception as error:
        message = f"Google's credentials cannot be used: {said(error)}; {_LOGIN}"
        raise DatasetError(message) from None


_DEFAULT_LOGIN = {"token": "google_default"}


def _quoted(name: str) -> str:
    return quote(name, safe="")
