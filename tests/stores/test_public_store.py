"""Places are asked with what is secret of a URL, and answer without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardctl.base import text as secrets
from shardctl.base.text import public_url
from shardctl.errors import DatasetError
from shardctl.stores.stores import store_of
from tests.byte_sources import in_memory
from tests.children import run_command
from tests.stores.fault_server import Faults
from tests.stores.servers import status


@pytest.mark.parametrize("known_before", [True, False])
def test_no_path_that_comes_out_has_a_password(tmp_path: Path, known_before: bool) -> None:
    (tmp_path / "data" / "sub").mkdir(parents=True)
    (tmp_path / "data" / "a").write_bytes(b"abc")
    (tmp_path / "data" / "sub" / "b").write_bytes(b"")
    secret = in_memory(tmp_path / "data", user="me:pw@")
    folder = public_url(secret) if known_before else secret
    store = store_of(folder)
    assert store.is_folder(folder)
    assert store.subfolders(folder) == ["sub"]
    assert store.read(f"{folder}/a", max_num_bytes=3) == b"abc"
    (file,) = store.scan(folder)
    assert file == store.status(f"{folder}/a")
    assert file.path == f"{public_url(secret)}/a"
    with store.open(file) as source:
        assert source.read(1, 3) == b"bc"
    assert store.status(f"{folder}/no") is None


def test_what_fails_says_nothing_secret(faults: Faults) -> None:
    faults.fail, faults.status = 1, 403
    url = public_url(faults.url("data?sig=SECRET").replace("://", "://me:SECRET@"))
    with pytest.raises(DatasetError) as error:
        store_of(url).read(f"{url}/a.json", max_num_bytes=10)
    assert "SECRET" not in str(error.value)
    assert "403" in str(error.value)


@pytest.mark.parametrize(
    "command",
    [
        "resume --plan URL/plan.json", "diff URL/order.yaml", "diff URL/none.yaml -d mnist",
        "resume --plan URL/none.json", "simulate -d mnist --file-order URL/none.txt",
        "simulate -d mnist --stages filter(kept='URL/all.scan')",
        "snapshot test -d mnist --stages filter(kept='URL/all.txt')",
    ],
)  # fmt: skip
def test_files_that_commands_read_show_no_login(
    command: str, faults: Faults, tmp_path: Path
) -> None:
    for kind, file in (("resume --steps 9 --batch 4", "plan.json"), ("snapshot", "order.yaml")):
        made = run_command(*kind.split(), "-d", "mnist", "-o", file, folder=tmp_path)
        assert made.code == 0, made.errors
        faults.put(file, (tmp_path / file).read_bytes())
    faults.put("all.txt", b"".join(b"%d\n" % number for number in range(10_000)))
    url = faults.base.replace("//", "//me:PLANTED@")
    ran = run_command(*command.replace("URL", url).split(), folder=tmp_path)
    assert "PLANTED" not in ran.out + ran.errors
    readable = "none" not in command and ".scan" not in command and "kept" not in command
    assert (ran.code == 0) == readable


def test_what_a_query_chooses_is_a_version_of_its_own(
    faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults.put("get", b"0123456789")
    found = []
    for query in ("file=1", "file=2", "signature=1", "signature=2"):
        monkeypatch.setattr(secrets, "_KEPT", {})  # as in another run
        monkeypatch.setattr(secrets, "_IMPLIED", {})
        url = faults.url(f"get?{query}")
        file = status(url)
        assert file.path == faults.url("get")
        assert query not in file.version
        with store_of(file.path).open(file) as source:
            assert source.read(2, 4) == b"23"
        assert f"?{query}" in faults.requests[-1]
        found.append(file.version)
    assert len(set(found)) == 3
    assert found[2] == found[3]
