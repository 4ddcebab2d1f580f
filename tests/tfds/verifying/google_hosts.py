"""The hosts of Google, as far as this process goes: a server here answers what is asked of them.

TensorFlow's reader of `gs://` knows no other host. A proxy ends its TLS, by a certificate that the
environment says to trust, and hands the requests to the emulator of Google Cloud Storage.
"""

from __future__ import annotations

import contextlib
import datetime
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

_HOSTS = ("www.googleapis.com", "storage.googleapis.com")


@contextlib.contextmanager
def google_hosts(endpoint: str, folder: Path) -> Iterator[dict[str, str]]:
    """Answer for the hosts of Google by the server at an endpoint; yield the environment for it."""
    port = int(endpoint.rpartition(":")[2])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trusted = folder / "trusted.pem"
    context.load_cert_chain(_certificate(folder, trusted))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_serve, args=(listening, context, port), daemon=True).start()
        proxy = f"http://127.0.0.1:{listening.getsockname()[1]}"
        yield {
            "https_proxy": proxy,
            "HTTPS_PROXY": proxy,
            "NO_PROXY": "",
            "CURL_CA_BUNDLE": str(trusted),
            "REQUESTS_CA_BUNDLE": str(trusted),
            "NO_GCE_CHECK": "true",
        }


def _serve(listening: socket.socket, context: ssl.SSLContext, port: int) -> None:
    with contextlib.suppress(OSError):  # closed, at the end
        while True:
            client, _ = listening.accept()
            threading.Thread(target=_tunnel, args=(client, context, port), daemon=True).start()


def _tunnel(client: socket.socket, context: ssl.SSLContext, port: int) -> None:
    with contextlib.suppress(OSError), client:
        asked = b""
        while b"\r\n\r\n" not in asked:
            asked += client.recv(4096) or b"\r\n\r\n"
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        with (
            context.wrap_socket(client, server_side=True) as inner,
            socket.create_connection(("127.0.0.1", port)) as server,
        ):
            _relay(inner, server)


def _relay(inner: ssl.SSLSocket, server: socket.socket) -> None:
    """Hand on what either side sends; one thread does it, as no two may use a TLS connection."""
    while True:
        waiting = inner.pending()  # bytes that are decrypted already
        ready = [inner] if waiting else select.select([inner, server], [], [])[0]
        for source in ready:
            data = source.recv(1 << 16)
            if not data:
                return
            (server if source is inner else inner).sendall(data)


def _certificate(folder: Path, trusted: Path) -> Path:
    """Write a certificate for the hosts, its own authority, and return the file with its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tests")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(map(x509.DNSName, _HOSTS)), critical=False)
        .sign(key, hashes.SHA256())
    )
    trusted.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    both = folder / "server.pem"
    both.write_bytes(secret + trusted.read_bytes())
    return both
