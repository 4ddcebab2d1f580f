"""Files of every place that fsspec knows: `gs://`, `s3://`, `hf://`, `az://`, `sftp://`, ...

gcsfs, s3fs and huggingface_hub say who asks, and where, and make the requests. Ours are the
patience, how many ask at once, and what is said of a failure. None of them tells whether a file is
still the one that was listed, so its version is looked at again once it was read.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from types import MethodType
from typing import Any, NamedTuple, TypeVar

from shardctl.base.install import to_install
from shardctl.base.text import full_url, public_url
from shardctl.errors import DatasetError, MissingDependencyError, NotThereError, ShardctlError
from shardctl.stores import failures
from shardctl.stores.failures import said, shown
from shardctl.stores.store import RemoteSource, StoredFile

# Under these keys file systems say which version an entry is; times only where nothing better is.
_EXACT = ("generation", "etag", "ETag", "version_id", "content_hash", "checksum", "md5")
_TIMES = ("mtime", "last_modified", "LastModified", "modified", "modify", "created")

Answer = TypeVar("Answer")


class _Login(NamedTuple):
    """How one logs in to places of a scheme: a package, who asks, and how."""

    package: str
    who: str
    how: str


_GOOGLE = "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS"
_AWS = "log in (`aws configure`, `aws sso login`), or set AWS_PROFILE or AWS_ACCESS_KEY_ID"
_HUB = "run `hf auth login`, or set HF_TOKEN"
_LOGINS = {
    "gs": _Login("gcsfs", "Google", _GOOGLE),
    "s3": _Login("s3fs", "AWS", _AWS),
    "hf": _Login("huggingface-hub", "Hugging Face", _HUB),
}
_OTHER_NAMES = {"gcs": "gs", "s3a": "s3"}
_VARIABLES = (
    "AWS_", "BOTO", "GOOGLE_", "GCSFS_", "GCLOUD_", "STORAGE_EMULATOR", "CLOUDSDK_", "AZURE_",
    "HF_",
)  # fmt: skip

# What servers answer, by S3's codes and by the statuses of all.
_RETRIED_CODES = ("SlowDown", "Throttl", "RequestTimeout", "InternalError", "ServiceUnavailable")
_ENDS = {
    "NoSuchBucket": "there is no bucket of this name",
    "RevisionNotFoundError": "the repository has no such revision",
    "RepositoryNotFoundError": "there is no such repository, or it is private and needs a login: "
    + _HUB,
}
# What botocore and google.auth raise, or S3 answers, of a login that is there and is of no use.
_USELESS = re.compile(
    "PartialCredentials|CredentialRetrieval|.*SSO|TokenRetrieval|UnknownCredential|RefreshWithMFA"
    "|Login|MetadataRetrieval|NoCredentials|(?:Default|Malformed)Credentials|RefreshError"
    "|ExpiredToken|Invalid(?:AccessKeyId|Token)|SignatureDoesNotMatch|AuthFailure"
    "|TokenRefreshRequired|UnrecognizedClientException|ProfileNotFound"
)
_NO_BUCKET = re.compile("b/[^/]+/o")  # a listing in gcsfs's words; no bucket is called `b`
_REPOSITORY = re.compile(r"hf://(?:(?:datasets|spaces|models|buckets)/)?(?!datasets/)[^/]+/[^/]+.*")


class FsspecStore:
    """Files of a scheme by fsspec's file system; one that changed is refused once it was read."""

    def __init__(self, scheme: str) -> None:
        """Begin.

        Raises:
            MissingDependencyError: fsspec is not installed.
            DatasetError: it does not know the scheme.
        """
        self._scheme = _OTHER_NAMES.get(scheme, scheme)
        # Their packages are imported when they are first asked.
        if self._scheme in _LOGINS:
            return
        try:
            from fsspec.registry import known_implementations, registry
        except ImportError as error:
            message = f"reading {scheme}:// needs a package: {to_install('fsspec')}"
            raise MissingDependencyError(message) from error
        if scheme not in known_implementations and scheme not in registry:
            raise DatasetError(
                f"unknown scheme {scheme}://; there are gs, s3, hf, http, https and those of fsspec"
            )

    def status(self, path: str) -> StoredFile | None:
        """Return the file at a path."""
        found = self._info(path)
        if found is None or found["type"] != "file":
            return None
        return self._stored(public_url(path), found)

    def is_folder(self, path: str) -> bool:
        """Return whether a path is a folder, or the beginning of the names of objects."""
        found = self._info(path)
        return found is not None and found["type"] == "directory"

    def scan(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files right in a folder."""
        found = self._listed(folder)
        if found is None:
            raise NotThereError(f"cannot read {shown(folder)}: no such folder")
        base = public_url(folder)
        base = base if base.endswith("://") else base.rstrip("/") + "/"
        for name, entry in found.items():
            if entry["type"] == "file":
                yield self._stored(base + name, entry)

    def subfolders(self, folder: str) -> list[str]:
        """Return the names of the folders right in a folder, sorted, without hidden ones."""
        found = self._listed(folder) or {}
        names = {name for name, entry in found.items() if entry["type"] == "directory"}
        return sorted(name for name in names if not name.startswith("."))

    def read(self, path: str, *, max_num_bytes: int) -> bytes:
        """Return the bytes of a small file."""
        file = self.status(path)
        if file is None:
            raise NotThereError(f"cannot read {shown(path)}: no such file")
        if file.num_bytes > max_num_bytes:
            raise DatasetError(f"{shown(path)} is larger than {max_num_bytes} bytes, the most read")
        return self._fetch(file, 0, file.num_bytes) if file.num_bytes else b""

    @contextlib.contextmanager
    def open(self, file: StoredFile) -> Iterator[RemoteSource]:
        """Open a file; whether it is the one that was listed is looked at afterwards."""
        yield RemoteSource(file, lambda start, stop: self._fetch(file, start, stop))
        self._check_same(file)

    def _info(self, path: str) -> dict[str, Any] | None:
        def ask(files: Any, name: str) -> dict[str, Any]:
            more: dict[str, Any] = {}
            if self._scheme == "hf":  # versions are part of the longer answer
                more = {"refresh": True, "expand_info": bool(files.resolve_path(name).path)}
            found: dict[str, Any] = files.info(name, **more, **_in_time(files))
            return found

        if self._scheme in ("gs", "s3") and path.endswith("/") and path.count("/") > 3:
            path = path.rstrip("/")
        return self._asked(path, ask)

    def _listed(self, folder: str) -> dict[str, dict[str, Any]] | None:
        """Return what is right in a folder by its names, None where there is no such folder."""

        def ask(files: Any, name: str) -> dict[str, dict[str, Any]]:
            fresh = {"refresh": True} if self._scheme == "hf" else {}
            found: list[dict[str, Any]] = files.ls(name, detail=True, **fresh, **_in_time(files))
            own = files._strip_protocol(name).strip("/")
            # Asked for a file, most answer with the file itself.
            entries = {str(entry["name"]).strip("/"): entry for entry in found}
            return {path.rpartition("/")[2]: entries[path] for path in entries if path != own}

        return self._asked(folder, ask)

    def _fetch(self, file: StoredFile, start: int, stop: int) -> bytes:
        def ask(files: Any, name: str) -> bytes:
            more = _in_time(files, stop - start)
            if self._scheme == "hf":  # else it reads megabytes ahead, and asks for the size
                more = {"cache_type": "none", "size": file.num_bytes}
            data: bytes = files.cat_file(name, start=start, end=stop, **more)
            if len(data) > stop - start:
                raise DatasetError(
                    f"cannot read {shown(file.path)} in parts: the server ignores Range requests"
                )
            if len(data) < stop - start:
                self._check_same(file)
                raise failures.TransientError(
                    f"truncated: {len(data)} of {stop - start} bytes came"
                )
            return data

        data = self._asked(file.path, ask)
        if data is None:
            raise failures.changed(file.path, "it is gone")
        return data

    def _check_same(self, file: StoredFile) -> None:
        found = self.status(file.path)
        if found is None:
            raise failures.changed(file.path, "it is gone")
        # Some say less in a listing than of one file: then the size alone is compared.
        comparable = found.version.partition(":")[0] == file.version.partition(":")[0]
        if found.num_bytes != file.num_bytes or (comparable and found.version != file.version):
            raise failures.changed(file.path)

    def _stored(self, path: str, found: dict[str, Any]) -> StoredFile:
        size = found.get("size")
        if not isinstance(size, int):
            raise failures.end(path, "its place does not say how many bytes it has")
        return StoredFile(path=path, num_bytes=size, version=version_of(found))

    def _asked(self, path: str, call: Callable[[Any, str], Answer]) -> Answer | None:
        """Return what a call of the file system answers; None where nothing is there."""
        path = full_url(public_url(path))
        _check_path(self._scheme, path)

        def once() -> Answer:
            around, files = failures.surroundings(*_VARIABLES), None
            anonymous = around in _ANONYMOUS
            host = "" if self._scheme in _LOGINS else path.partition("://")[2].partition("/")[0]
            try:
                files = _made(around, self._scheme, host, anonymous)
                # Only the request itself takes a slot, not the wait before the next attempt.
                with failures.slots():
                    return call(files, files._strip_protocol(path))
            except (ShardctlError, failures.TransientError, NotADirectoryError):
                raise
            except ImportError as error:
                login = _LOGINS.get(self._scheme)
                how = to_install(login.package) if login else said(error)
                message = f"reading {self._scheme}:// needs a package: {how}"
                raise MissingDependencyError(message) from None
            except Exception as error:
                failure = error
            # Outside the handler, so that no traceback shows what the server said.
            # There are no credentials, and a public bucket can be read without: it is asked again
            # so.
            if files and not anonymous and type(failure).__name__ == "NoCredentialsError":
                _ANONYMOUS.add(around)
                return once()
            if files and self._scheme == "gs":
                anonymous = anonymous or not files.credentials.credentials
            raise _as_said(failure, path, self._scheme, anonymous=anonymous) from None

        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return failures.attempted(once, path=path)
        return None


# Where there were no credentials, so that buckets are read anonymously.
_ANONYMOUS: set[failures.Surroundings] = set()


@cache
def _made(around: failures.Surroundings, scheme: str, host: str, anonymous: bool) -> Any:
    import fsspec

    if scheme == "gs":
        return _google()
    if scheme == "hf":
        # Read here: huggingface_hub reads it once, when it is imported.
        endpoint = os.environ.get("HF_ENDPOINT", "").strip().rstrip("/") or None
        return fsspec.filesystem("hf", endpoint=endpoint, skip_instance_cache=True)
    if scheme == "s3":
        import s3fs  # noqa: F401
        from fsspec.asyn import sync

        bounds = failures.limits()
        given = (fsspec.config.conf.get("s3") or {}).get("config_kwargs", {})
        config = {
            "connect_timeout": bounds.connect_timeout,
            "read_timeout": bounds.timeout,
            # `failures.attempted` tries again; two loops of attempts would multiply.
            "retries": {"max_attempts": 0},
            "max_pool_connections": bounds.requests,
        }
        anon = {"anon": True} if anonymous else {}
        made = fsspec.filesystem(
            "s3",
            config_kwargs={**config, **given},
            skip_instance_cache=True,
            use_listings_cache=False,
            **anon,
        )
        made.retries = 1
        # Here, where no request's time-out counts: it reads megabytes of descriptions.
        sync(made.loop, made.set_session, timeout=60.0)
        return made
    return fsspec.core.url_to_fs(f"{scheme}://{host}", use_listings_cache=False)[0]


def _google() -> Any:
    """Return gcsfs's file system, anonymous without a login; it repeats no request itself."""
    import fsspec
    from gcsfs.core import GCSFileSystem  # the plain one: gcsfs's own asks about folders by gRPC

    settings = fsspec.config.conf.get("gs") or fsspec.config.conf.get("gcs") or {}
    options = {
        # HTTPS_PROXY, which the clients of other places heed by themselves.
        "session_kwargs": {"trust_env": True, **settings.get("session_kwargs", {})},
        "requests_timeout": failures.limits().timeout,
        "skip_instance_cache": True,
        "use_listings_cache": False,
    }
    if "token" in settings:
        made = GCSFileSystem(**options)
    elif os.environ.get("STORAGE_EMULATOR_HOST"):  # as Google's own client does
        made = GCSFileSystem(token="anon", **options)  # noqa: S106
    else:
        try:  # by itself gcsfs asks the metadata server a second time, for many seconds
            made = GCSFileSystem(token="google_default", **options)  # noqa: S106
        except Exception as error:
            given = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")
            if given or type(error).__name__ != "DefaultCredentialsError":
                name = "GOOGLE_APPLICATION_CREDENTIALS" if given else _LOGINS["gs"].how
                message = f"Google's credentials cannot be used: {said(error)}; see {name}"
                raise DatasetError(message) from None
            made = GCSFileSystem(token="anon", **options)  # noqa: S106
    # The decorator around it tries again; this is the function inside.
    once = getattr(GCSFileSystem._request, "__wrapped__", None)
    if once is not None:
        made._request = MethodType(once, made)
    return made


def _in_time(files: Any, num_bytes: int = 0) -> dict[str, Any]:
    return {"timeout": failures.limits().seconds_for(num_bytes)} if files.async_impl else {}


def _check_path(scheme: str, path: str) -> None:
    """Refuse a path that names no bucket or repository, or has keys of a login in it."""
    bucket = path.partition("://")[2].partition("/")[0]
    if scheme in ("gs", "s3") and not bucket:
        raise DatasetError(f"{shown(path)} names no bucket")
    if scheme in ("gs", "s3") and "@" in bucket:
        message = f"{shown(path)}: keys of a login are taken from variables, not from URLs"
        raise DatasetError(message)
    if scheme == "hf" and not _REPOSITORY.fullmatch(path):
        raise DatasetError(
            f"{shown(path)} names no repository; it must be hf://datasets/user/name/.. or"
            " hf://datasets/user/name@revision/.."
        )


def version_of(found: dict[str, Any]) -> str:
    """Return which version of a file an entry is, "" where it does not say.

    >>> version_of({"ETag": '"a"', "mtime": 1.5}), version_of({"size": 5})
    ('etag:"a"', '')
    """
    # A hash of the contents is the best version there is.
    blob = (found.get("lfs") or {}).get("sha256") or found.get("blob_id")  # of huggingface_hub
    if blob:
        return f"etag:{blob}"
    key = next((key for key in (*_EXACT, *_TIMES) if found.get(key)), None)
    if key is None:
        return ""
    value = found[key]
    name = key.lower() if key == "ETag" else key
    return f"{name}:{value.timestamp() if isinstance(value, datetime) else value}"


def _as_said(error: Exception, path: str, scheme: str, *, anonymous: bool) -> Exception:
    """Return what an exception of a file system comes to; FileNotFoundError is one itself."""
    chain = list(failures.causes(error))
    status, code = _answer_in(chain)
    names = [code, *(type(each).__name__ for each in chain)]
    end = next((_ENDS[name] for name in names if name in _ENDS), None)
    if scheme == "gs" and isinstance(error, FileNotFoundError) and _NO_BUCKET.fullmatch(str(error)):
        end = _ENDS["NoSuchBucket"]
    if end is None and (isinstance(error, FileNotFoundError) or status == 404):
        return FileNotFoundError()
    answer = f"{status} {said(code, 40)}" if code and not code.isdigit() else f"{status}"
    if end is None and (
        status in failures.RETRIED_STATUSES or any(word in code for word in _RETRIED_CODES)
    ):
        return failures.TransientError(f"the server answers {answer}")
    if "TransportError" in names:
        return failures.TransientError(f"the login of {_LOGINS[scheme].who} cannot be reached")
    if status in (412, 416):
        return failures.changed(path, "it is another file now")
    useless = next((name for name in names if _USELESS.match(name)), None)
    forbidden = status in (401, 403) or any(
        isinstance(each, PermissionError) or str(each).startswith("Forbidden") for each in chain
    )
    if end is None and (useless or forbidden):
        end = _refusal(scheme, useless or answer, anonymous=anonymous and useless is None)
    elif end is None and status:
        end = f"the server answers {answer}"
    if useless or forbidden or end == _ENDS["RepositoryNotFoundError"]:
        _ANONYMOUS.clear()  # so that a login is noticed
        _made.cache_clear()
    return failures.as_failure(error, path) if end is None else failures.end(path, end)


def _refusal(scheme: str, answer: str, *, anonymous: bool) -> str:
    """Return why a place refuses the login in use, with the way out."""
    login = _LOGINS.get(scheme)
    if login is None:
        return "no permission"
    if anonymous:
        return f"it is not open to everybody, and there are no {login.who} credentials: {login.how}"
    said = f"the {login.who} credentials are refused, or the account has no permission to read it"
    return f"{said} ({answer}): {login.how}"


def _answer_in(chain: list[BaseException]) -> tuple[int, str]:
    """Return the status and the code that a server answered, 0 and "" where none did."""
    for each in chain:
        response = getattr(each, "response", None)
        if isinstance(response, dict):  # of botocore
            status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            return int(status), str(response.get("Error", {}).get("Code", ""))
        # Of huggingface_hub, of aiohttp; and what gcsfs makes of them, of 502 too.
        names = {"ClientResponseError": "status", "HttpError": "code"}
        status = getattr(response, "status_code", None)
        status = status or getattr(each, names.get(type(each).__name__, ""), None)
        if status is not None:
            return int(status), ""
        if type(each).__name__ == "ProxyError":
            return 502, ""
    return 0, ""
