"""What the libraries raise, as one line, or as what is tried again."""

from __future__ import annotations

import contextlib
import http.server
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shardctl.errors import DatasetError
from shardctl.stores.failures import TransientError, as_failure
from shardctl.stores.stores import store_of
from tests.stores.servers import lead_to


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


@pytest.mark.long
def test_a_certificate_that_nobody_signed_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving_tls(tmp_path) as endpoint:
        lead_to(monkeypatch, {"AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "x"})
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", endpoint)
        for path in (f"{endpoint}/a", "s3://bucket/a", "gs://bucket/a"):
            begun = time.monotonic()
            with pytest.raises(DatasetError, match="a': TLS: the certificate is refused"):
                store_of(path).status(path)
            assert time.monotonic() - begun < 10


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


@contextlib.contextmanager
def serving_tls(folder: Path) -> Iterator[str]:
    """Serve HTTPS with a certificate of our own."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), 7, now, now + timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    file = folder / "server.pem"
    file.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain) + signed.public_bytes(pem)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"https://localhost:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
