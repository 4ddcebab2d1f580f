"""Network failures: each as one line without secrets; and which requests are tried again."""

from __future__ import annotations

import math
import os
import random
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from shardctl.base.text import counted, printable, quoted
from shardctl.errors import DatasetError, UsageError

# How long a remote place is waited for, and how many requests run at once.


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Limits in force in this process.

    timeout: seconds without a byte after which a request is given up and tried again.
    patience: seconds after which a place that answers nothing but errors is given up.
    requests: how many requests run at once, in all threads together.
    """

    timeout: float
    patience: float
    requests: int

    @property
    def connect_timeout(self) -> float:
        """Seconds to connect: a server that is there takes milliseconds."""
        return min(self.timeout, 10.0)

    def seconds_for(self, num_bytes: int) -> float:
        """Return how long one request may take: its time-out, and 20 kB/s from then on."""
        return self.timeout + num_bytes / 20_000


def limits() -> Limits:
    """Return the limits, as SHARDCTL_REMOTE_TIMEOUT, .._PATIENCE and .._REQUESTS say.

    Raises:
        UsageError: one of them is no number, or not positive.
    """
    return Limits(
        timeout=_number("SHARDCTL_REMOTE_TIMEOUT", 20.0, most=86_400),
        patience=_number("SHARDCTL_REMOTE_PATIENCE", 40.0, most=86_400),
        requests=int(_number("SHARDCTL_REMOTE_REQUESTS", 16, most=1024, least=1)),
    )


def slots() -> threading.BoundedSemaphore:
    """Return what keeps the requests of all threads of this process below the limit."""
    # By process: a semaphore that a forked child inherits may be held by a thread that is not
    # there.
    return _slots(os.getpid(), limits().requests)


@cache
def _slots(process: int, count: int) -> threading.BoundedSemaphore:
    return threading.BoundedSemaphore(count)


def _number(name: str, usual: float, most: float, least: float = 0.01) -> float:
    text = os.environ.get(name, "").strip()
    if not text:
        return usual
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not least <= number <= most:
        raise UsageError(f"{name} must be a number from {least:g} to {most:g}; it is {text[:40]!r}")
    return number


_SILENT = "no answer in time (SHARDCTL_REMOTE_TIMEOUT says how many seconds are waited)"
_BREAKS = (
    "ConnectionError", "ConnectionClosedError", "ProtocolError", "IncompleteRead", "PayloadError",
    "ServerDisconnected", "ChunkedEncodingError", "RemoteDisconnected", "HTTPClientError",
    "ClientOSError", "ResponseParserError", "RemoteProtocolError", "ReadError",
)  # fmt: skip
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNKNOWN_PROTOCOL")
_MALFORMED = ("InvalidURL", "InvalidSchema", "MissingSchema", "LocationParseError", "InvalidHeader")


def as_failure(error: BaseException, path: str) -> DatasetError | TransientError:
    """Return the failure that an exception of a network library comes to.

    Libraries differ in their classes, so names and causes decide.
    """
    chain = list(causes(error))
    names = [type(each).__name__ for each in chain]

    def is_called(words: Sequence[str], *kinds: type[BaseException]) -> bool:
        return any(word in name for name in names for word in words) or any(
            isinstance(each, kinds) for each in chain
        )

    # The order matters: the special cases first, since a proxy, TLS and DNS failures are connection
    # errors as well.
    if is_called(("ProxyError",)):
        return TransientError("the proxy (HTTP_PROXY, HTTPS_PROXY) does not connect", brief=True)
    refusal = next(filter(None, map(_tls_refusal, chain)), None)
    if refusal is not None:
        return end(path, f"TLS: {said(refusal, 100)}")
    unnamed = next((each for each in chain if isinstance(each, socket.gaierror)), None)
    if unnamed is not None and unnamed.errno != socket.EAI_AGAIN:
        return end(path, "there is no host of this name")
    if unnamed is not None:
        return TransientError("the name of the host cannot be resolved now", brief=True)
    if is_called((), ConnectionRefusedError):
        return TransientError("the connection was refused", brief=True)
    if any(name.endswith(_MALFORMED) for name in names) or isinstance(error, UnicodeError):
        return end(path, "it is not a valid URL")
    if "TooManyRedirects" in names:
        return end(path, "it is redirected again and again")
    if is_called(("Timeout", "TimedOut"), TimeoutError):
        return TransientError(_SILENT)
    if is_called(_BREAKS, ConnectionError, ssl.SSLError):
        return TransientError("the connection broke")
    return end(path, f"{type(error).__name__}: {said(error)}")


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and all that it came from, as causes, contexts or arguments."""
    waiting, seen = [error], set[int]()
    while waiting and len(seen) < 50:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        # urllib3 keeps the cause as `reason`, requests as an argument.
        held = (each.__cause__, each.__context__, getattr(each, "reason", None), *each.args)
        waiting += [one for one in held if isinstance(one, BaseException)]


def _tls_refusal(error: BaseException) -> str | None:
    """Return why TLS comes to nothing however often it is tried, None where it may pass."""
    if isinstance(error, ssl.SSLError) and getattr(error, "reason", "") in _NO_TLS:
        return "the server does not speak it there; http:// may be meant"
    if not isinstance(error, ssl.SSLCertVerificationError) and "CERTIFICATE_VERIFY" not in str(
        error
    ):
        return None
    message = getattr(error, "verify_message", "")
    return f"the certificate is refused ({message})" if message else "the certificate is refused"


def end(path: str, reason: str) -> DatasetError:
    """Return the error of a place that no further attempt would read."""
    return DatasetError(f"cannot read {shown(path)}: {reason}")


def changed(path: str, how: str = "") -> DatasetError:
    """Return the error of a file that is not what was listed."""
    return DatasetError(f"{shown(path)} changed while it was read{how and ': '}{how}")


# What clients that are kept depend on: the process, and the variables that they were made of.

Surroundings = tuple[object, ...]


def surroundings(*prefixes: str) -> Surroundings:
    """Return a key that is another in a forked process, and after a login by variables.

    Connections and event loops of fsspec do not outlive a fork, and in a notebook a variable that
    is set after an error must count.
    """
    names = ("FSSPEC_", "SHARDCTL_REMOTE_", *prefixes)
    found = sorted(item for item in os.environ.items() if item[0].startswith(names))
    return (os.getpid(), *found)


# Requests tried again where another attempt may help, with waits that grow, and an end.

# Answers after which the same request may succeed (gcsfs, botocore and urllib3 retry these too).
RETRIED_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})

_FIRST_WAIT, _LONGEST_WAIT = 0.2, 8.0  # seconds
_BRIEF_PATIENCE = 4.0

Answer = TypeVar("Answer")


class TransientError(Exception):
    """A request failed in a way that another attempt may not.

    brief: it is rarely over soon, as a refused connection, so it is tried for seconds only.
    """

    def __init__(self, reason: str, *, wait: float = 0.0, brief: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.wait, self.brief = reason, wait, brief


def attempted(request: Callable[[], Answer], *, path: str) -> Answer:
    """Return the answer of a request, tried again for as long as `limits().patience` says.

    Raises:
        DatasetError: none of the attempts succeeded.
    """
    patience = limits().patience
    begun, attempts = time.monotonic(), 0
    while True:
        try:
            return request()
        except TransientError as error:
            now = time.monotonic()
            attempts += 1
            # Doubled each time, and random, so that many clients do not ask again at the same
            # moment.
            wait = min(_FIRST_WAIT * 2 ** (attempts - 1), _LONGEST_WAIT) * random.uniform(0.5, 1)  # noqa: S311
            allowed = min(patience, _BRIEF_PATIENCE) if error.brief else patience
            left = begun + allowed - now
            if wait > left:
                tried = f"after {counted(attempts, 'attempt')} in {now - begun:.0f} s"
                message = f"cannot read {shown(path)}: {error.reason} ({tried})"
                raise DatasetError(message) from None
            wait = max(wait, min(error.wait, left))  # what the server asks for, but once
        time.sleep(wait)


# What messages say of URLs and of what servers and libraries say: never a credential.

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
    # Elsewhere `?` may be a letter of an object's name.
    query = ""
    if scheme.lower() in _WITH_QUERY and (found := re.search(r"[?#]", rest)):
        rest, query = rest[: found.start()], f"{found[0]}{_HIDDEN}"
    authority, slash, path = rest.partition("/")
    # Anything that is not plainly host[:port] may be a password.
    if not _AUTHORITY.fullmatch(authority):
        _, at, after = rest.rpartition("@")
        rest = f"{_HIDDEN}@{after}" if at else f"{_HIDDEN}{slash}{path}"
    rest = _PAIR.sub(rf"\1\2{_HIDDEN}", rest)
    return f"{scheme}://{rest}{query}"


def said(error: object, limit: int = 160) -> str:
    """Return the first line of what a library or a server says, without anything secret.

    Values of the environment whose names tell that they are secret are hidden too.

    >>> said(ValueError("GET https://h/a?token=9 failed: Authorization: Bearer abcdefgh12"))
    'GET https://h/a?*** failed: Authorization: ***'
    """
    lines = str(error).strip().splitlines()
    text = lines[0] if lines else type(error).__name__
    for name, value in os.environ.items():
        # Shorter values would be found in ordinary words.
        if len(value) >= 6 and _SECRET_NAME.search(name.upper()):
            text = text.replace(value, _HIDDEN)
    text = _URL.sub(lambda found: without_secrets(found[0]), text)
    text = _BEARER.sub(rf"\1 {_HIDDEN}", _PAIR.sub(rf"\1\2{_HIDDEN}", text))
    return printable(text, limit)
