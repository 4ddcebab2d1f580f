"""S3: long listings, conditions, faults, logins."""

from __future__ import annotations

import time

import pytest

from shardctl.errors import DatasetError
from shardctl.stores import failures as attempts
from shardctl.stores.fsspec_store import FsspecStore
from shardctl.stores.store import StoredFile
from tests.stores.fault_server import Faults
from tests.stores.servers import S3Server, lead_to, status

pytestmark = pytest.mark.long

DATA = bytes(range(256)) * 400


@pytest.fixture
def broken(s3: S3Server, faults: Faults, monkeypatch: pytest.MonkeyPatch) -> Faults:
    """A server that fails in front of moto; `s3://` leads to it."""
    monkeypatch.setattr(attempts, "_FIRST_WAIT", 0.01)
    faults.behind = s3.endpoint
    limits = {"SHARDCTL_REMOTE_PATIENCE": "30", "SHARDCTL_REMOTE_TIMEOUT": "1"}
    lead_to(monkeypatch, s3.variables() | limits | {"AWS_ENDPOINT_URL": faults.base})
    s3.put("faults/a.bin", DATA)
    return faults


def listed(s3: S3Server) -> StoredFile:
    return status(s3.url("faults/a.bin"))


def read(file: StoredFile, start: int = 100, stop: int = 60_000) -> bytes:
    with FsspecStore("s3").open(file) as source:
        return source.read(start, stop)


@pytest.mark.parametrize("code", [429, 500])
def test_what_may_pass_is_tried_again(s3: S3Server, broken: Faults, code: int) -> None:
    file = listed(s3)
    broken.requests.clear()
    broken.fail, broken.status = 2, code
    assert read(file) == DATA[100:60_000]
    assert len(broken.requests) == 4  # none by botocore or s3fs; the last looks at the version


def test_slow_down_is_tried_again_and_ends(
    s3: S3Server, broken: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = listed(s3)
    monkeypatch.setenv("SHARDCTL_REMOTE_PATIENCE", "0.3")
    broken.body = b"<Error><Code>SlowDown</Code><Message>key=PLANTED</Message></Error>"
    broken.fail = 10_000
    with pytest.raises(DatasetError, match=r"the server answers 503 SlowDown \(after"):
        read(file)


def test_bodies_that_end_early_are_read_again(
    s3: S3Server, broken: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = listed(s3)
    broken.truncate = 2
    assert read(file) == DATA[100:60_000]
    monkeypatch.setenv("SHARDCTL_REMOTE_PATIENCE", "0.3")
    broken.truncate = 10_000
    with pytest.raises(DatasetError, match=r"truncated|the connection broke"):
        read(file)


def test_a_silent_endpoint_is_given_up(
    s3: S3Server, broken: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = listed(s3)
    monkeypatch.setenv("SHARDCTL_REMOTE_PATIENCE", "0.3")
    broken.delay = 4
    begun = time.monotonic()
    with pytest.raises(DatasetError, match="no answer in time"):
        read(file)
    assert time.monotonic() - begun < 3.5


def test_a_server_that_ignores_range_is_refused(s3: S3Server, broken: Faults) -> None:
    file = listed(s3)
    broken.fail, broken.status, broken.body = 1, 200, DATA
    with pytest.raises(DatasetError, match="the server ignores Range requests"):
        read(file)


def test_no_bucket_is_one_line(s3: S3Server) -> None:
    with pytest.raises(DatasetError, match="'s3://nobucket/a': there is no bucket of this name"):
        list(FsspecStore("s3").scan("s3://nobucket/a"))
    with pytest.raises(DatasetError, match="ParamValidationError"):
        FsspecStore("s3").status("s3://no bucket!/a")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("AccessDenied", r"the account has no permission to read it \(403 AccessDenied\): log in"),
        ("ExpiredToken", r"the AWS credentials are refused, .* \(ExpiredToken\): log in"),
        ("InvalidObjectState", r"\(403 InvalidObjectState\)"),
        ("OtherCode", r"\(403 OtherCode\)"),
        ("InvalidAccessKeyId", r"\(InvalidAccessKeyId\): log in \(`aws configure`"),
    ],
)
def test_a_refusal_says_the_way_out(s3: S3Server, broken: Faults, code: str, said: str) -> None:
    secret = "secret-of-the-tests"
    body = f"<Error><Code>{code}</Code><Message>{secret} AKIATESTTESTTEST</Message></Error>"
    broken.fail, broken.status, broken.body = 10, 403, body.encode()
    with pytest.raises(DatasetError, match=said) as refused:
        list(FsspecStore("s3").scan(s3.url("faults")))
    assert secret not in str(refused.value)
    assert "AKIATEST" not in str(refused.value)


def test_without_credentials_buckets_are_read_as_by_everybody(
    s3: S3Server, broken: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    s3.client.put_object(Bucket="bucket", Key="faults/a.bin", Body=DATA, ACL="public-read")
    assert read(listed(s3)) == DATA[100:60_000]
    assert set(broken.logins) == {""}
    broken.fail, broken.status = 10, 403
    broken.body = b"<Error><Code>AccessDenied</Code></Error>"
    with pytest.raises(DatasetError, match="there are no AWS credentials: log in"):
        list(FsspecStore("s3").scan(s3.url("faults")))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATESTTESTTEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    broken.fail = 0
    assert listed(s3)  # a login is noticed
    assert broken.logins[-1].startswith("AWS4-HMAC-SHA256")
