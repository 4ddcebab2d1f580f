"""Files of the Hugging Face hub, `hf://datasets/user/name[@revision]/path`.

huggingface_hub says who asks (its token) and where (HF_ENDPOINT); the requests are our own, so that
listings come page by page, ranges are checked, and all ranges of a file are of one commit.
`hf://buckets/..` is read by its HfFileSystem (`other.py`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urljoin, urlsplit

from shardctl.errors import DatasetError, MissingDependencyError
from shardctl.files.stores.places.buckets import ListedStore, Page
from shardctl.files.stores.store import StoredFile
from shardctl.files.stores.transfer.failures import shown
from shardctl.files.stores.transfer.web import Range, Reply, Web, changed

_URL = re.compile(
    r"hf://(?:(?P<kind>datasets|spaces|models)/)?"
    r"(?P<repo>(?!(?:datasets|spaces|models)/)[^/@]+/[^/@]+)"
    r"(?:@(?P<revision>refs/(?:convert|pr)/[^/]+|[^/]+))?(?:/(?P<path>.*))?"
)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_LOGIN = "run `hf auth login`, or set HF_TOKEN"
_ANSWERS = frozenset({400, 404, 410, 412, 416})
_REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """A path in a repository at a revision; `root` is the URL up to it."""

    kind: str
    repo: str
    revision: str
    path: str
    root: str

    def api(self, what: str) -> str:
        kind = self.kind or "models"
        return f"{_endpoint()}/api/{kind}/{self.repo}/{what}/{quote(self.revision, safe='')}"

    def file(self, revision: str) -> str:
        kind = f"{self.kind}/" if self.kind in ("datasets", "spaces") else ""
        name = quote(self.path)
        return f"{_endpoint()}/{kind}{self.repo}/resolve/{quote(revision, safe='')}/{name}"

    def whole(self, path: str) -> str:
        return f"{self.root}/{path}"


class HubStore(ListedStore):
    """Files of repositories; private ones with the token that huggingface_hub has."""

    def __init__(self) -> None:
        self._web = Web(_authorization, _refusal)
        self._commits: dict[tuple[int, StoredFile], str] = {}

    def status(self, path: str) -> StoredFile | None:
        """Return the file at a path."""
        place = _place(path)
        if not place.path or place.path.endswith("/"):
            return None
        asked = {"paths": [place.path], "expand": False}
        reply = self._web.ask(
            place.api("paths-info"), path=path, method="POST", json=asked, answers=_ANSWERS
        )
        found = self._entries(reply, path) or []
        files = [entry for entry in found if _is_file(entry) and entry["path"] == place.path]
        return _stored(place, files[0]) if files else None

    def pages(self, folder: str, *, at_most: int | None = None) -> Iterator[Page]:
        """Yield what is in a folder; the hub chooses how much a page has."""
        place = _place(folder)
        below = quote(place.path.rstrip("/"), safe="")
        url: str | None = place.api("tree") + (f"/{below}" if below else "")
        asked: dict[str, Any] = {"recursive": "false", "expand": "false"}
        while url is not None:
            reply = self._web.ask(url, path=folder, params=asked, answers=_ANSWERS)
            found = self._entries(reply, folder)
            if found is None:
                return
            yield Page(
                files=[_stored(place, entry) for entry in found if _is_file(entry)],
                folders=[
                    place.whole(entry["path"])
                    for entry in found
                    if entry.get("type") == "directory"
                ],
            )
            url, asked = _next(reply), {}

    def fetch(self, file: StoredFile, start: int, stop: int) -> bytes:
        """Return a range of a file at the commit at which it is what was listed."""
        commit = self._commit(file)
        wanted = Range(
            path=file.path,
            url=_place(file.path).file(commit),
            start=start,
            stop=stop,
            num_bytes=file.num_bytes,
        )
        data = self._web.range(wanted)
        # A mirror that tells no commit may have another file by now.
        if not _COMMIT.fullmatch(commit) and self.status(file.path) != file:
            raise changed(file.path)
        return data

    def _commit(self, file: StoredFile) -> str:
        """Return the commit to read a file from: what is there does not change any more.

        Raises:
            DatasetError: the revision holds another file by now.
        """
        place = _place(file.path)
        if _COMMIT.fullmatch(place.revision):
            return place.revision
        known = self._commits.get((os.getpid(), file))
        if known is not None:
            return known
        headers = self._told(place.file(place.revision), file.path).headers
        etag = headers.get("X-Linked-Etag") or headers.get("ETag") or ""
        found = etag.removeprefix("W/").strip('"')
        if file.version and found and f"etag:{found}" != file.version:
            raise changed(file.path)
        size = headers.get("X-Linked-Size", "")
        if size.isdigit() and int(size) != file.num_bytes:
            raise changed(file.path)
        commit = str(headers.get("X-Repo-Commit", "")) or place.revision
        if len(self._commits) > 10_000:
            self._commits.clear()
        self._commits[os.getpid(), file] = commit
        return commit

    def _told(self, url: str, path: str) -> Reply:
        """Return what the hub itself says of a file; not the storage to which it sends readers."""
        for _ in range(5):
            reply = self._web.ask(url, path=path, method="HEAD", follow=False, answers=_ANSWERS)
            if reply.status in (404, 410):
                raise changed(path, "it is gone")
            target = urljoin(url, reply.headers.get("Location", url))
            if reply.status not in _REDIRECTS or urlsplit(target).netloc != urlsplit(url).netloc:
                return reply
            url = target  # a repository that has another name now
        raise DatasetError(f"cannot read {shown(path)}: it is redirected again and again")

    def _entries(self, reply: Reply, path: str) -> list[dict[str, Any]] | None:
        """Return what an answer lists, None where there is no such folder."""
        if reply.status != 200:
            code = reply.headers.get("X-Error-Code", "")
            if code == "EntryNotFound" or (reply.status in (404, 410) and not code):
                return None
            reasons = {
                "RepoNotFound": f"there is no such repository, or it is private ({_LOGIN})",
                "RevisionNotFound": "the repository has no such revision",
            }
            reason = reasons.get(code, f"the hub answers {reply.status}")
            raise DatasetError(f"cannot read {shown(path)}: {reason}")
        try:
            found = json.loads(reply.body)
        except ValueError:
            found = None
        if not isinstance(found, list):
            raise DatasetError(f"cannot read {shown(path)}: the hub answers without a listing")
        return found


def _place(path: str) -> _Place:
    found = _URL.fullmatch(path)
    if found is None:
        raise DatasetError(
            f"{shown(path)} names no repository; it must be hf://datasets/user/name/.. or"
            " hf://datasets/user/name@revision/.."
        )
    return _Place(
        kind=found["kind"] or "",
        repo=found["repo"],
        revision=unquote(found["revision"] or "main"),
        path=found["path"] or "",
        root=path[: found.start("path") - 1] if found["path"] is not None else path,
    )


def _is_file(entry: dict[str, Any]) -> bool:
    return entry.get("type") == "file"


def _stored(place: _Place, entry: dict[str, Any]) -> StoredFile:
    lfs = entry.get("lfs") or {}
    version = lfs.get("oid") or entry.get("oid") or ""
    return StoredFile(
        path=place.whole(entry["path"]),
        num_bytes=int(lfs.get("size") or entry["size"]),
        version=f"etag:{version}" if version else "",
    )


def _next(reply: Reply) -> str | None:
    """Return the URL of the next page, which is on the hub itself."""
    found = re.search(r'<([^>]+)>;\s*rel="next"', reply.headers.get("Link", ""))
    if found is None:
        return None
    url = urljoin(reply.url, found[1])
    same = urlsplit(url).netloc == urlsplit(_endpoint()).netloc
    return url if same else None


def _refusal(status: int) -> str | None:
    if status == 401:
        return f"there is no such repository, or it is private and needs a login: {_LOGIN}"
    if status == 403:
        return f"the account has no access to it (ask for it on its page), or no login: {_LOGIN}"
    return None


def _authorization() -> str:
    try:
        from huggingface_hub import get_token
    except ImportError as error:
        raise MissingDependencyError(
            "reading hf:// needs a package: pip install 'shardctl[hf]'"
        ) from error
    token = get_token()
    return f"Bearer {token}" if token else ""


def _endpoint() -> str:
    given = os.environ.get("HF_ENDPOINT", "").strip()
    return (given or "https://huggingface.co").rstrip("/")
