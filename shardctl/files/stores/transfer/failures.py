"""What the libraries of networks raise, as one line: to be tried again, or the end."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

from shardctl.errors import DatasetError
from shardctl.files.stores.transfer.attempts import TransientError
from shardctl.files.stores.transfer.redaction import said, shown

_SILENT = "no answer in time (SHARDCTL_REMOTE_TIMEOUT says how many seconds are waited)"
_BROKE = "the connection broke"
_TIME_OUTS = ("Timeout", "TimedOut")
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
    chain = list(_chain(error))
    if any("ProxyError" in type(each).__name__ for each in chain):
        return TransientError("the proxy (HTTP_PROXY, HTTPS_PROXY) does not connect", brief=True)
    for each in chain:
        refusal = _tls_refusal(each)
        if refusal is not None:
            return _end(path, f"TLS: {said(refusal, 100)}")
        if isinstance(each, socket.gaierror):
            return _name_failure(each, path)
        if isinstance(each, ConnectionRefusedError):
            return TransientError("the connection was refused", brief=True)
    names = [type(each).__name__ for each in chain]
    if any(name.endswith(_MALFORMED) for name in names) or isinstance(error, UnicodeError):
        return _end(path, "it is not a valid URL")
    if "TooManyRedirects" in names:
        return _end(path, "it is redirected again and again")
    if any(word in name for name in names for word in _TIME_OUTS):
        return TransientError(_SILENT)
    if any(isinstance(each, TimeoutError) for each in chain):
        return TransientError(_SILENT)
    if any(word in name for name in names for word in _BREAKS):
        return TransientError(_BROKE)
    if any(isinstance(each, ConnectionError | ssl.SSLError) for each in chain):
        return TransientError(_BROKE)
    return _end(path, f"{type(error).__name__}: {said(error)}")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and all that it came from, as causes, contexts or arguments."""
    waiting, seen = [error], set[int]()
    while waiting and len(seen) < 50:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
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


def _name_failure(error: socket.gaierror, path: str) -> DatasetError | TransientError:
    if error.errno == socket.EAI_AGAIN:
        return TransientError("the name of the host cannot be resolved now", brief=True)
    return _end(path, "there is no host of this name")


def _end(path: str, reason: str) -> DatasetError:
    return DatasetError(f"cannot read {shown(path)}: {reason}")
