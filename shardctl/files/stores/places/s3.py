"""Objects of S3, `s3://`: Amazon's and whatever answers as it does.

s3fs makes the client (credentials, region, endpoint, fsspec's own settings); its requests are made
one by one here, so that ranges carry a condition and nothing is tried again behind our back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from shardctl.errors import DatasetError, MissingDependencyError, ShardctlError
from shardctl.files.stores.places.buckets import (
    ListedStore,
    Page,
    bucket_and_key,
    prefix_of,
    root_of,
)
from shardctl.files.stores.store import StoredFile
from shardctl.files.stores.transfer.failures import (
    RETRIED_STATUSES,
    Surroundings,
    TransientError,
    as_failure,
    attempted,
    limits,
    said,
    shown,
    slots,
    surroundings,
)
from shardctl.files.stores.transfer.web import changed

_LOGIN = (
    "log in (`aws configure`, `aws sso login`), or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
)
_PAGE = 1000  # the most that S3 gives
_SECONDS_TO_LOG_IN = 60.0
_RETRIED_CODES = ("SlowDown", "Throttl", "RequestTimeout", "InternalError", "ServiceUnavailable")
_LOGIN_CODES = (
    "ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch",
    "AuthFailure", "TokenRefreshRequired", "ExpiredTokenException", "UnrecognizedClientException",
)  # fmt: skip
_ADVICE = {
    "400": "often a login that has expired (`aws sso login`), or a region (AWS_DEFAULT_REGION)",
    "RequestTimeTooSkewed": "the clock of this machine is wrong",
    "InvalidObjectState": "it is archived; restore it first",
    "PermanentRedirect": "the bucket is in another region (AWS_DEFAULT_REGION)",
}
_MISSING = ("404", "NoSuchKey", "NotFound")
_LOGIN_ERRORS = (
    "PartialCredentials", "CredentialRetrieval", "SSO", "TokenRetrieval", "UnknownCredential",
    "RefreshWithMFA", "Login", "UnauthorizedSSO", "MetadataRetrieval",
)  # fmt: skip


class S3Store(ListedStore):
    """Objects by `s3://bucket/key`; read by everybody where there are no credentials."""

    def status(self, path: str) -> StoredFile | None:
        """Return the object at a path."""
        bucket, key = bucket_and_key(path)
        if not key or key.endswith("/"):
            return None
        found = self._asked("head_object", path, Bucket=bucket, Key=key)
        return None if found is None else _stored(path, found["ContentLength"], found)

    def pages(self, folder: str, *, at_most: int | None = None) -> Iterator[Page]:
        """Yield the objects and the beginnings of keys below a folder."""
        (bucket, prefix), root = prefix_of(folder), root_of(folder)
        asked = {"Bucket": bucket, "Prefix": prefix, "Delimiter": "/"}
        more: dict[str, Any] = {"MaxKeys": at_most or _PAGE}
        while True:
            found = self._asked("list_objects_v2", folder, **asked, **more)
            if found is None:
                raise DatasetError(f"cannot read {shown(folder)}: there is no bucket of this name")
            yield Page(
                files=[
                    _stored(f"{root}/{item['Key']}", item["Size"], item)
                    for item in found.get("Contents", [])
                    if item["Key"] != prefix
                ],
                folders=[f"{root}/{item['Prefix']}" for item in found.get("CommonPrefixes", [])],
            )
            token = found.get("NextContinuationToken")
            if not found.get("IsTruncated") or not token:
                return
            more["ContinuationToken"] = token

    def fetch(self, file: StoredFile, start: int, stop: int) -> bytes:
        """Return a range of an object that has the ETag of the listing."""
        bucket, key = bucket_and_key(file.path)
        asked = {"Bucket": bucket, "Key": key, "Range": f"bytes={start}-{stop - 1}"}
        if file.version:
            asked["IfMatch"] = file.version.removeprefix("etag:")
        found = self._asked("get_object", file.path, **asked)
        if found is None:
            raise changed(file.path, "it is gone")
        said_range = str(found.get("ContentRange", ""))
        if said_range.rpartition("/")[0] != f"bytes {start}-{stop - 1}":
            raise DatasetError(
                f"cannot read {shown(file.path)} in parts: the server ignores Range requests"
            )
        etag = f"etag:{found.get('ETag', '')}"
        another = file.version and etag not in ("etag:", file.version)
        if said_range.rpartition("/")[2] != str(file.num_bytes) or another:
            raise changed(file.path)
        data: bytes = found["data"]
        return data

    def _asked(self, method: str, path: str, **asked: Any) -> dict[str, Any] | None:
        """Return the answer of a call, None where there is no such object or bucket."""
        return attempted(lambda: _called(method, path, asked), path=path)


def _called(method: str, path: str, asked: dict[str, Any]) -> dict[str, Any] | None:
    around = surroundings("AWS_", "BOTO")
    seconds = limits().seconds_for(_asked_bytes(asked))
    try:
        filesystem = _filesystem(around, around in _ANONYMOUS)
        from fsspec.asyn import sync

        with slots():
            found: dict[str, Any] = sync(
                filesystem.loop, _answer, filesystem, method, asked, timeout=seconds
            )
        return found
    except (ShardctlError, TransientError):
        raise
    except Exception as error:
        failure = error
    # Outside the handler, so that no traceback shows what the server said.
    if type(failure).__name__ == "NoCredentialsError" and around not in _ANONYMOUS:
        _ANONYMOUS.add(around)
        return _called(method, path, asked)
    _raise_unless_missing(failure, path, anonymous=around in _ANONYMOUS)
    return None


# Where there were no credentials, so that buckets are read as by everybody.
_ANONYMOUS: set[Surroundings] = set()


async def _answer(filesystem: Any, method: str, asked: dict[str, Any]) -> dict[str, Any]:
    client = await filesystem.set_session()
    if filesystem.cache_regions:  # a setting of s3fs: a client for the region of the bucket
        client = await filesystem.get_s3(asked["Bucket"])
    call: Callable[..., Any] = getattr(client, method)
    found: dict[str, Any] = await call(**asked, **filesystem.req_kw)
    if "Body" in found:
        async with found["Body"] as body:
            found["data"] = await body.read()
        expected = found.get("ContentLength")
        if expected is not None and len(found["data"]) != expected:
            came = f"{len(found['data'])} of {expected} bytes came"
            raise TransientError(f"truncated: {came}, then the answer ended")
    return found


def _asked_bytes(asked: dict[str, Any]) -> int:
    first, _, last = str(asked.get("Range", "bytes=0-0")).removeprefix("bytes=").partition("-")
    return int(last) - int(first) + 1


def _raise_unless_missing(error: Exception, path: str, *, anonymous: bool) -> None:
    """Raise what an exception of botocore comes to; return where it says that nothing is there."""
    name = type(error).__name__
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        _raise_refusal(response, path, anonymous)
        return
    if name == "ProfileNotFound":
        raise _end(path, f"AWS_PROFILE names a profile that is not there; {_LOGIN}")
    if name.startswith(_LOGIN_ERRORS) or name == "NoCredentialsError":
        raise _end(path, f"the AWS credentials cannot be used ({name}): {_LOGIN}")
    if name == "ParamValidationError":
        raise _end(path, "this is no name of a bucket")
    raise as_failure(error, path) from None


def _raise_refusal(response: dict[str, Any], path: str, anonymous: bool) -> None:
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    code = str(response.get("Error", {}).get("Code", ""))
    if status in RETRIED_STATUSES or any(word in code for word in _RETRIED_CODES):
        raise TransientError(f"the server answers {status} {said(code, 40)}")
    if status == 412 or code in ("PreconditionFailed", "412", "InvalidRange", "416"):
        raise changed(path, "it is another file now")
    if code == "NoSuchBucket":
        raise _end(path, "there is no bucket of this name")
    if status == 404 or code in _MISSING:
        return
    if code in _LOGIN_CODES:
        raise _end(path, f"the AWS credentials are refused ({code}): {_LOGIN}")
    if code in _ADVICE:
        answer = status if code.isdigit() else f"{status} {code}"
        raise _end(path, f"the server answers {answer}: {_ADVICE[code]}")
    if status in (401, 403):
        if anonymous:
            _ANONYMOUS.clear()  # so that a login is noticed
            _filesystem.cache_clear()
            reason = "it is not open to everybody, and there are no AWS credentials"
            raise _end(path, f"{reason}: {_LOGIN}")
        if code in ("AccessDenied", "403", "Forbidden"):
            reason = "the account has no permission to read it (s3:GetObject, s3:ListBucket)"
            raise _end(path, reason)
    raise _end(path, f"the server answers {status} {said(code, 40)}")


def _end(path: str, reason: str) -> DatasetError:
    return DatasetError(f"cannot read {shown(path)}: {reason}")


def _stored(path: str, num_bytes: int, found: dict[str, Any]) -> StoredFile:
    etag = found.get("ETag", "")
    return StoredFile(path=path, num_bytes=int(num_bytes), version=f"etag:{etag}" if etag else "")


@cache
def _filesystem(around: Surroundings, anonymous: bool) -> Any:
    """Return s3fs's file system; its client waits and tries again as we say."""
    try:
        import fsspec
        import s3fs  # noqa: F401
        from fsspec.asyn import sync
    except ImportError as error:
        raise MissingDependencyError(
            "reading s3:// needs a package: pip install 'shardctl[s3]'"
        ) from error
    bounds = limits()
    config = {
        "connect_timeout": bounds.connect_timeout,
        "read_timeout": bounds.timeout,
        "retries": {"max_attempts": 0},
        "max_pool_connections": bounds.requests,
        **(fsspec.config.conf.get("s3") or {}).get("config_kwargs", {}),
    }
    anon = {"anon": True} if anonymous else {}
    made = fsspec.filesystem("s3", config_kwargs=config, skip_instance_cache=True, **anon)
    # Here, where no request's time-out counts: it reads megabytes of descriptions.
    sync(made.loop, made.set_session, timeout=_SECONDS_TO_LOG_IN)
    return made
