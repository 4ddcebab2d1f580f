"""Failures of networks: what is tried again, how long, and what is said, without a secret."""

from __future__ import annotations

import http.server
import socket
import ssl
import threading
import time
from pathlib import Path

import pytest

from shardctl.errors import DatasetError, UsageError
from shardctl.stores.failures import (
    TransientError,
    as_failure,
    attempted,
    limits,
    said,
    shown,
    surroundings,
    without_secrets,
)
from shardctl.stores.stores import store_of
from tests.golden import assert_answers


def caused(outer: Exception, inner: BaseException) -> Exception:
    outer.__cause__ = inner
    return outer


@pytest.mark.parametrize(
    "error",
    [
        *(TimeoutError("slow"), ConnectionResetError("reset"), BrokenPipeError("pipe")),
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
        (OSError("CERTIFICATE_VERIFY_FAILED"), "TLS: the certificate is refused"),
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


def test_https_where_http_is_served_is_said_at_once() -> None:
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), http.server.BaseHTTPRequestHandler
    ) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        path = f"https://localhost:{server.server_address[1]}/a"
        begun = time.monotonic()
        with pytest.raises(DatasetError, match="TLS: the server does not speak it there; http"):
            store_of(path).status(path)
        assert time.monotonic() - begun < 10
        server.shutdown()
        thread.join()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that waits move, and how long they were."""
    waited: list[float] = []
    monkeypatch.setattr("time.monotonic", lambda: sum(waited))
    monkeypatch.setattr("time.sleep", waited.append)
    monkeypatch.setattr("random.uniform", lambda low, high: high)
    return waited


def test_waits_grow_to_a_bound_and_end_with_the_patience(waits: list[float]) -> None:
    def fails(brief: bool) -> int:
        raise TransientError("busy", brief=brief)

    said = r"^cannot read 'gs://b/a': busy \(after 10 attempts in 37 s\)"
    with pytest.raises(DatasetError, match=said):
        attempted(lambda: fails(False), path="gs://b/a")
    assert waits == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 8.0, 8.0, 8.0])
    waits.clear()
    with pytest.raises(DatasetError, match="busy"):
        attempted(lambda: fails(True), path="x")  # a refused connection
    assert sum(waits) <= 4


def test_a_dead_place_is_given_up_within_about_a_minute_or_as_variables_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = limits()
    assert usual.patience + usual.timeout <= 60
    assert usual.connect_timeout <= 10
    for name, value in (("TIMEOUT", "2.5"), ("PATIENCE", " 300 "), ("REQUESTS", "64")):
        monkeypatch.setenv(f"SHARDCTL_REMOTE_{name}", value)
    found = limits()
    assert (found.timeout, found.patience, found.requests) == (2.5, 300, 64)
    assert found.seconds_for(20_000) == 3.5


@pytest.mark.parametrize("text", ["x", "0", "-1", "nan", "inf", "1e9"])
def test_what_is_no_number_of_seconds_is_refused(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHARDCTL_REMOTE_TIMEOUT", text)
    with pytest.raises(UsageError, match=r"SHARDCTL_REMOTE_TIMEOUT must be a number from 0\.01"):
        limits()


def test_a_login_by_a_variable_and_a_fork_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = surroundings("AWS_")
    assert surroundings("AWS_") == before
    monkeypatch.setenv("AWS_PROFILE", "other")
    assert surroundings("AWS_") != before
    monkeypatch.delenv("AWS_PROFILE")
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert surroundings("AWS_") != before


SECRET = "Zm9vYmFy-PLANTED/secret+x="


def test_urls_are_shown_without_their_secrets() -> None:
    def answer(url: str) -> str:
        assert "planted" not in shown(url)
        return without_secrets(url)

    assert_answers(Path(__file__).parent / "golden" / "urls.txt", answer)


@pytest.mark.parametrize(
    "text",
    [
        f"403 for https://u:{SECRET}@host/a",
        f"GET https://host/a?token={SECRET} failed",
        f"Authorization: Bearer {SECRET}",
        f"headers {{'Authorization': 'Basic {SECRET}'}}",
        f'{{"access_token": "{SECRET}"}}',
        f"<AWSAccessKeyId>x</AWSAccessKeyId> secret_access_key={SECRET}",
        f"password={SECRET}",
        f"AccountKey={SECRET};EndpointSuffix=x",
        f"x-amz-security-token: {SECRET}",
        f"could not use the value {SECRET} of a variable",
    ],
)
def test_what_libraries_say_is_shown_without_secrets(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_STORE_TOKEN", SECRET)
    assert "PLANTED" not in said(ValueError(text))
    assert "secret+x" not in said(ValueError(text))


def test_what_is_said_is_one_short_line() -> None:
    assert said(ValueError("a\nb")) == "a"
    assert said(ValueError("")) == "ValueError"
    assert len(said(ValueError("x" * 1000))) <= 160
