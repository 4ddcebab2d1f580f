"""Passwords and signatures are no part of a path, and are there when its place is asked."""

from __future__ import annotations

import pytest

from shardctl.base.text import full_url, public_url, without_secrets
from shardctl.errors import UsageError


@pytest.mark.parametrize(
    ("given", "public"),
    [
        ("https://me:pw@secrets-a.org/data", "https://secrets-a.org/data"),
        ("https://token@secrets-b.org:8080/data?sig=x/y", "https://secrets-b.org:8080/data"),
        ("http://[::1]:80/data?x=1?y=2", "http://[::1]:80/data"),
        ("http://secrets-c.org?x=1", "http://secrets-c.org"),
        ("s3://KEY:SEC/RET@secrets-f/data", "s3://secrets-f/data"),
        ("ftp://me:p@w@secrets-d.org/data", "ftp://me@secrets-d.org/data"),
        # Nothing secret: an @ and a ? in names, a revision of the hub.
        ("hf://datasets/me/toy@main/data", "hf://datasets/me/toy@main/data"),
        ("gs://bucket/a?b@c", "gs://bucket/a?b@c"),
        ("memory://a@b", "memory://b"),
        ("sftp://me:pw@secrets-e.org:22/data", "sftp://me@secrets-e.org:22/data"),
        ("abfss://container@account.dfs.core.windows.net/data",) * 2,
        ("/data/a@b?c", "/data/a@b?c"),
    ],
)
def test_what_is_secret_is_taken_out_and_put_back(given: str, public: str) -> None:
    assert public_url(given) == public
    assert full_url(public) == given
    assert public_url(public) == public


def test_what_lies_below_is_asked_with_the_same_secrets() -> None:
    folder = public_url("https://me:pw@secrets-below.org/data/toy/?sig=7")
    assert folder == "https://secrets-below.org/data/toy/"
    url = "https://secrets-below.org/data/toy/1.0.0/a.json"
    assert full_url(url) == "https://me:pw@secrets-below.org/data/toy/1.0.0/a.json?sig=7"
    # The user is that of the place; the signature is not.
    beside = full_url("https://secrets-below.org/data/other")
    assert beside == "https://me:pw@secrets-below.org/data/other"


def test_what_lies_beside_a_file_is_asked_with_its_signature() -> None:
    public_url("https://secrets-beside.org/data/layout.yaml?sig=7")
    below = "https://secrets-beside.org/data/toy/a.tfrecord"
    assert full_url(below) == f"{below}?sig=7"
    elsewhere = "https://secrets-beside.org/other/a.tfrecord"
    assert full_url(elsewhere) == elsewhere
    public_url("https://secrets-beside.org/single.yaml?sig=8")
    assert full_url(elsewhere) == elsewhere


def test_one_address_is_not_another_that_begins_with_it() -> None:
    public_url("https://secrets-begin.org/data?sig=1")
    assert full_url("https://secrets-begin.org/database") == "https://secrets-begin.org/database"
    assert full_url("https://secrets-begin.org.com/data") == "https://secrets-begin.org.com/data"


def test_the_last_secrets_of_an_address_count() -> None:
    public_url("https://old@secrets-last.org/data")
    public_url("https://new@secrets-last.org/data")
    assert full_url("https://secrets-last.org/data/a") == "https://new@secrets-last.org/data/a"


def test_a_line_shows_what_is_public_of_the_urls_in_it() -> None:
    line = "error: 'https://me:pw@host/a?sig=1' and s3://KEY:SEC/RET@b/x, not gs://b/a@b"
    assert without_secrets(line) == "error: 'https://host/a' and s3://b/x, not gs://b/a@b"


def test_files_that_differ_in_their_query_alone_are_not_taken_for_one() -> None:
    assert public_url("https://drive/get?file=1") == "https://drive/get"
    assert public_url("https://drive/get?file=1") == "https://drive/get"
    with pytest.raises(UsageError, match="'https://drive/get' was given with two queries"):
        public_url("https://drive/get?file=2")
    assert full_url("https://drive/get") == "https://drive/get?file=1"


def test_a_file_may_be_signed_again() -> None:
    public_url("https://signed/a?X-Amz-Date=1&X-Amz-Signature=a")
    assert public_url("https://signed/a?X-Amz-Date=2&X-Amz-Signature=b") == "https://signed/a"
    assert full_url("https://signed/a").endswith("X-Amz-Signature=b")
