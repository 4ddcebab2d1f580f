"""Which store has the files of a path?

Remote places are reached as fsspec reaches them, whose file systems `etils.epath` uses too:
`pip install tensorflow-datasets` brings fsspec along (etils[epath] asks for it), and a login that
works for one works for the other. Not through epath itself: it tells no versions and reads no
ranges, only files that read ahead; and where TensorFlow is installed it asks tf.io.gfile instead,
which knows gs:// alone.
"""

from __future__ import annotations

import re
from functools import cache

from shardctl.errors import DatasetError, MissingDependencyError
from shardctl.files.stores.local import LocalStore
from shardctl.files.stores.store import Store

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)(::.*)?://")
_ONE_SLASH = re.compile(r"(?:^|/)[a-z][a-z0-9]+:/[^/]")
A_SLASH_LOST = "a URL has two slashes, of which pathlib makes one: give it as text"


def is_remote(path: str) -> bool:
    """Return whether a path names its scheme.

    >>> is_remote("gs://bucket/data"), is_remote("data/mnist")
    (True, False)
    """
    return _SCHEME.match(path) is not None


def has_lost_a_slash(path: str) -> bool:
    """Return whether a path, or one made absolute, is what pathlib makes of a URL.

    >>> [has_lost_a_slash(path) for path in ("gs:/bucket/a", "/home/me/s3:/bucket", "C:/a", "a:b")]
    [True, True, False, False]
    """
    return _ONE_SLASH.search(path) is not None


def store_of(path: str) -> Store:
    """Return the store of a path, by its scheme.

    Raises:
        MissingDependencyError: the package that reaches the place is not installed.
        DatasetError: nobody knows the scheme, or there are several.
    """
    scheme = _SCHEME.match(path)
    if scheme is None:
        return LocalStore()
    if scheme[2]:
        from shardctl.files.stores.transfer.redaction import chained

        raise DatasetError(chained(path))
    from shardctl.files.stores.public_store import PublicStore

    return PublicStore(_remote(scheme[1].lower(), path))


def _remote(scheme: str, path: str) -> Store:
    if path.startswith("hf://buckets/") or scheme not in _KNOWN:
        _known_to_fsspec(scheme, path)
        return _store("fsspec", scheme)
    return _store(scheme, scheme)


_KNOWN = ("http", "https", "s3", "s3a", "gs", "gcs", "hf")


@cache
def _store(kind: str, scheme: str) -> Store:
    """Return the store of a kind; its libraries are imported when it is first asked."""
    if kind in ("http", "https"):
        from shardctl.files.stores.places.web_server import WebServerStore

        return WebServerStore()
    if kind in ("s3", "s3a"):
        from shardctl.files.stores.places.s3 import S3Store

        return S3Store()
    if kind in ("gs", "gcs"):
        from shardctl.files.stores.places.gcs import GcsStore

        return GcsStore()
    if kind == "hf":
        from shardctl.files.stores.places.hub import HubStore

        return HubStore()
    from shardctl.files.stores.places.other import OtherStore

    return OtherStore(scheme)


def _known_to_fsspec(scheme: str, path: str) -> None:
    try:
        from fsspec.registry import known_implementations, registry
    except ImportError as error:
        raise MissingDependencyError(
            f"reading {scheme}:// needs a package: pip install fsspec"
        ) from error
    if scheme not in known_implementations and scheme not in registry:
        from shardctl.files.stores.transfer.redaction import shown

        raise DatasetError(
            f"{shown(path)}: nobody knows the scheme {scheme}://; there are gs, s3, hf, http, https"
            " and those of fsspec"
        )
