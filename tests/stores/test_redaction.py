"""No credential is shown: of URLs, of what libraries say, of the environment."""

from __future__ import annotations

import pytest

from shardctl.stores.failures import said, shown, without_secrets

SECRET = "Zm9vYmFy-PLANTED/secret+x="


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://me:planted@host/a", "https://***@host/a"),
        ("https://planted@host:80/a", "https://***@host:80/a"),
        ("https://host/a?X-Amz-Signature=planted&X-Amz-Credential=planted", "https://host/a?***"),
        ("https://host/a?download=planted", "https://host/a?***"),
        ("https://host/a#access_token=planted", "https://host/a#***"),
        ("https://me:plan/ted@host/a", "https://***@host/a"),
        ("https://me:p@plan/ted@host/a", "https://***@host/a"),
        ("https://me:planted", "https://***"),
        ("ftp://me:planted@host/a", "ftp://***@host/a"),
        ("sftp://me:planted@host/a@2", "sftp://***@2"),
        ("s3://AKIA:planted@bucket/a", "s3://***@bucket/a"),
        ("s3://bucket/a?X-Amz-Signature=planted", "s3://bucket/a?X-Amz-Signature=***"),
        ("az://c/a?sv=1&sig=planted%2B&se=2", "az://c/a?sv=1&sig=***&se=2"),
        ("hf://datasets/u/d@main/a@2", "hf://datasets/u/d@main/a@2"),
        ("gs://bucket/prefix@1024", "gs://bucket/prefix@1024"),
        ("http://[::1]:80/a", "http://[::1]:80/a"),
        ("data/train-00000-of-00001", "data/train-00000-of-00001"),
    ],
)
def test_urls_are_shown_without_their_secrets(url: str, expected: str) -> None:
    assert without_secrets(url) == expected
    assert "planted" not in shown(url)


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


@pytest.mark.parametrize(
    "text",
    [
        f"403 for https://u:{SECRET}@host/a",
        f"GET https://host/a?token={SECRET} failed",
        f"Authorization: Bearer {SECRET}",
        f'{{"access_token": "{SECRET}"}}',
        f"password={SECRET}",
    ],
)
def test_secrets_that_no_variable_holds_are_known_by_their_names(text: str) -> None:
    assert "PLANTED" not in said(ValueError(text))


def test_what_is_said_is_one_short_line() -> None:
    assert said(ValueError("a\nb")) == "a"
    assert said(ValueError("")) == "ValueError"
    assert len(said(ValueError("x" * 1000))) <= 160
