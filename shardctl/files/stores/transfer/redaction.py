"""What messages say of URLs and of what servers and libraries say: never a credential."""

from __future__ import annotations

import os
import re

from shardctl.core.text import printable, quoted

_HIDDEN = "***"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+")
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.%]*\]|[^:@\[\]]*)(:[0-9]*)?")
# What is a secret beside an equals sign or a colon, in keys of objects, headers, bodies of errors.
_PAIR = re.compile(
    r"""((?:x-amz|x-goog)-[\w-]+|sig(?:nature)?|(?:access|session|security|refresh|id|auth|sas)?[_-]?token
    |(?:api|access|secret|account|shared|private)[_-]?(?:access[_-]?)?key(?:[_-]?id)?|awsaccesskeyid
    |googleaccessid|client[_-]?secret|credentials?|passw(?:or)?d|pwd|authorization)
    (["']?\s*[=:]\s*["']?)((?:bearer|basic)\s+)?[^\s&;,"'<>]+""",
    re.IGNORECASE | re.VERBOSE,
)
_BEARER = re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{8,}", re.IGNORECASE)
_SECRET_NAME = re.compile(r"SECRET|TOKEN|PASSW|CREDENTIAL|_KEY|_SAS|CONNECTION_STRING")
_WITH_QUERY = ("http", "https", "ftp", "ftps", "webdav", "webhdfs")


def shown(url: str, limit: int = 200) -> str:
    """Return a path or URL in quotation marks, without its user, password, signature or token.

    >>> print(shown("https://me:pw@host/a.tfrecord?X-Amz-Signature=77"))
    'https://***@host/a.tfrecord?***'
    """
    return quoted(without_secrets(url), limit)


def chained(url: str) -> str:
    """Return why a URL of several schemes, as fsspec chains them, is refused.

    >>> chained("simplecache::https://me:pw@host/a").split(": ")[0]
    "'simplecache::https://***@host/a'"
    """
    return f"{shown(url)}: URLs that fsspec chains by :: are not read; give the last one alone"


def without_secrets(url: str) -> str:
    """Return a URL without what may be secret: of web servers the whole query, else known names.

    Where the part before the host is malformed, as a password that holds a slash makes it, all up
    to the last `@` is hidden.

    >>> without_secrets("s3://KEY:SECRET/x@bucket/a"), without_secrets("hf://datasets/u/d@main/a")
    ('s3://***@bucket/a', 'hf://datasets/u/d@main/a')
    """
    scheme, mark, rest = url.partition("://")
    if not mark:
        return _PAIR.sub(rf"\1\2{_HIDDEN}", url)
    if scheme.lower() in _WITH_QUERY:
        rest, query, _ = _cut(rest)
    else:
        query = ""
    authority, slash, path = rest.partition("/")
    if not _AUTHORITY.fullmatch(authority):
        _, at, after = rest.rpartition("@")
        rest = f"{_HIDDEN}@{after}" if at else f"{_HIDDEN}{slash}{path}"
    rest = _PAIR.sub(rf"\1\2{_HIDDEN}", rest)
    return f"{scheme}://{rest}{query}"


def _cut(rest: str) -> tuple[str, str, str]:
    """Return what is before a query or a fragment, what is shown of it, and it."""
    found = re.search(r"[?#]", rest)
    if found is None:
        return rest, "", ""
    return rest[: found.start()], f"{found[0]}{_HIDDEN}", rest[found.start() :]


def said(error: object, limit: int = 160) -> str:
    """Return the first line of what a library or a server says, without anything secret.

    Values of the environment whose names tell that they are secret are hidden too.

    >>> said(ValueError("GET https://h/a?token=9 failed: Authorization: Bearer abcdefgh12"))
    'GET https://h/a?*** failed: Authorization: ***'
    """
    lines = str(error).strip().splitlines()
    text = lines[0] if lines else type(error).__name__
    for name, value in os.environ.items():
        if len(value) >= 6 and _SECRET_NAME.search(name.upper()):
            text = text.replace(value, _HIDDEN)
    text = _URL.sub(lambda found: without_secrets(found[0]), text)
    text = _BEARER.sub(rf"\1 {_HIDDEN}", _PAIR.sub(rf"\1\2{_HIDDEN}", text))
    return printable(text, limit)
