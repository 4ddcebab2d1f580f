"""What the libraries raise, as one line, or as what is tried again."""

from __future__ import annotations

import socket
import ssl

import pytest

from shardctl.errors import DatasetError
from shardctl.files.stores.transfer.attempts import TransientError
from shardctl.files.stores.transfer.failures import as_failure


def caused(outer: Exception, inner: BaseException) -> Exception:
    outer.__cause__ = inner
    return outer


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError("slow"),
        ConnectionResetError("reset"),
        BrokenPipeError("pipe"),
        caused(OSError("x"), ConnectionRefusedError("refused")),
        caused(OSError("x"), socket.gaierror(socket.EAI_AGAIN, "later")),
        ssl.SSLEOFError("unexpected end"),
    ],
)
def test_what_may_pass_is_tried_again(error: Exception) -> None:
    assert isinstance(as_failure(error, "gs://b/a"), TransientError)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (caused(OSError("x"), socket.gaierror(socket.EAI_NONAME, "no")), "no host of this name"),
        (ssl.SSLCertVerificationError("self-signed"), "TLS: the certificate is refused"),
        (ValueError("at https://u:planted@h/?token=planted"), r"ValueError: at https://\*\*\*@h/"),
    ],
)
def test_what_does_not_pass_is_one_line(error: Exception, said: str) -> None:
    failure = as_failure(error, "https://u:planted@h/a")
    assert isinstance(failure, DatasetError)
    with pytest.raises(DatasetError, match=said):
        raise failure
    assert "planted" not in str(failure)


def test_exceptions_that_hold_one_another_in_a_circle_end() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__context__, second.__context__ = second, first
    assert "ValueError: a" in str(as_failure(first, "x"))
