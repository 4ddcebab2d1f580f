"""What of a URL is nobody's business: passwords and signatures, kept apart from the paths.

A path in an answer, a message or a file never has them. They stay in this process, by the address
that they were given with, for whoever asks the place itself.
"""

from __future__ import annotations

import re
import zlib

from shardctl.errors import UsageError

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)", re.DOTALL)
_PLACE = re.compile(r"(?P<user>[^/@]*@)?[\w.~%-]*(\[[0-9a-fA-F:.]*\])?(:[0-9]*)?(?=[/?#]|$)")
_IN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+")
_SIGNED = re.compile(r"[?&](x-(amz|goog)-signature|sig|signature|token|access_token)=", re.I)
_WEB = ("http", "https")
# Where what stands before the `@` is a container, or a user that alone opens nothing.
_NAMED = ("abfs", "abfss", "wasb", "wasbs", "sftp", "ssh", "ftp", "smb", "hdfs", "webhdfs")
_KEPT: dict[str, tuple[str, str]] = {}  # what is public -> the same with secrets, and the query
_IMPLIED: dict[str, tuple[str, str]] = {}  # the same, of what lies beside and above


def public_url(url: str) -> str:
    """Return a URL without user, password and, of a web address, its query; they are remembered.

    Of a password with a slash in it all up to the last `@` is taken for one. Other texts stay.

    >>> public_url("https://me:pw@host/data?signature=x"), public_url("gs://bucket/a?b")
    ('https://host/data', 'gs://bucket/a?b')
    >>> public_url("s3://KEY:SEC/RET@my-data/a"), public_url("hf://datasets/me/toy@main")
    ('s3://my-data/a', 'hf://datasets/me/toy@main')
    >>> public_url("sftp://me:pw@host/a"), public_url("abfss://container@account/a")
    ('sftp://me@host/a', 'abfss://container@account/a')

    Raises:
        UsageError: another query was given with this address that is no signature, so that what is
            public does not tell which file is meant.
    """
    public, full, query = _parted(url)
    if public != full or query:
        address = public.rstrip("/")
        _, known = _KEPT.get(address, ("", query))
        if _choosing(known) != _choosing(query):
            raise UsageError(
                f"{public[:200]!r} was given with two queries, so the files cannot be told"
                " apart by their paths; name them one at a time, or copy them to a disk"
            )
        _KEPT[address] = (full.rstrip("/"), query)
        _imply(address, full.rstrip("/"), query)
    return public


def _imply(public: str, full: str, query: str) -> None:
    """Remember what else the secrets of a URL open: what lies beside a file, all of its place.

    A signature is of a folder or of one file; a user logs in to a whole place.
    """
    scheme, _, path = public.partition("://")
    place, _, below = path.partition("/")
    folder, _, name = below.rpartition("/")
    if folder and "." in name and not _choosing(query):
        _IMPLIED[public.rpartition("/")[0]] = (full.rpartition("/")[0], query)
    if public != full:
        _IMPLIED[f"{scheme}://{place}"] = (full.removesuffix(f"/{below}"), "")


def _choosing(query: str) -> str:
    """Return the query that chooses a file, "" where it is a signature."""
    return "" if _SIGNED.search(query) else query


def query_mark(url: str) -> str:
    """Return what tells apart files at one address by the query that chooses them, "" for none.

    Nobody can read the query from it.

    >>> query_mark("https://host/get?file=b"), query_mark("https://host/a?signature=x")
    (' of query 7f70fa04', '')
    """
    query = _choosing(_parted(url)[2])
    return f" of query {zlib.crc32(query.encode('utf-8', 'replace')):08x}" if query else ""


def full_url(url: str) -> str:
    """Return a URL as its place is to be asked: with what was given with it, or with one above it.

    >>> _ = public_url("https://me:pw@host/data?signature=x")
    >>> full_url("https://host/data/a.json"), full_url("https://host/other")
    ('https://me:pw@host/data/a.json?signature=x', 'https://me:pw@host/other')
    """
    address = url.rstrip("/") if _KEPT else ""
    while address:
        found = _KEPT.get(address) or _IMPLIED.get(address)
        if found is not None:
            return found[0] + url[len(address) :] + found[1]
        address = address.rpartition("/")[0]
    return url


def without_secrets(text: str) -> str:
    """Return a line with what is public of each URL in it.

    >>> without_secrets("no split 'https://me:pw@host/a?sig=1' in toy")
    "no split 'https://host/a' in toy"
    """
    return _IN_TEXT.sub(lambda found: _parted(found[0])[0], text) if "://" in text else text


def _parted(url: str) -> tuple[str, str, str]:
    """Return what is public of a URL, all of it but its query, and that."""
    match = _URL.fullmatch(url)
    if match is None:
        return url, url, ""
    scheme, rest, query = match["scheme"].lower(), match["rest"], ""
    if scheme in _WEB:
        rest, _, query = rest.partition("?")
    place = _PLACE.match(rest)
    cut = rest.rfind("@") + 1 if place is None else len(place["user"] or "")
    name = f"{rest[:cut].rpartition('@')[0].partition(':')[0]}@" if cut and scheme in _NAMED else ""
    return f"{scheme}://{name}{rest[cut:]}", f"{scheme}://{rest}", f"?{query}" if query else ""
