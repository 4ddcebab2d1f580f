"""Which versions of loaders are installed, and which were verified on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import shardctl.metadata.loader_versions as kept
from shardctl.loaders.loader import LOADERS, VerifiedVersion
from shardctl.metadata.loader_versions import installed_version
from tests.loaders.sources import proven_of

FOUND = VerifiedVersion(loader="torch", version="9.1.0", rule=1, num_settings=50, date="2026-11-22")


def folder() -> Path:
    return Path(os.environ["SHARDCTL_CACHE_DIR"], "loaders")


def test_what_was_kept_is_found_for_that_version_alone() -> None:
    assert kept.verified_version("torch", "9.1.0") is None
    assert kept.keep_verified(FOUND) is None
    assert kept.verified_version("torch", "9.1.0+cpu") == FOUND
    assert kept.verified_version("torch", "9.1.1") is None
    assert [file.name for file in folder().iterdir()] == ["torch-9.1.0.json"]
    kept.forget_verified("torch", "9.1.0")
    assert kept.verified_version("torch", "9.1.0") is None
    kept.forget_verified("torch", "9.1.0")


def test_another_rule_or_other_packages_beside_it_forget_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept.keep_verified(replace(FOUND, rule=2))
    assert kept.verified_version("torch", "9.1.0") is None
    kept.keep_verified(FOUND)
    monkeypatch.setattr(kept, "installed_version", lambda package: "3.0")
    other = replace(LOADERS["torch"], beside={"numpy": ("1.0",)})
    monkeypatch.setattr(kept, "LOADERS", {"torch": other})
    assert kept.verified_version("torch", "9.1.0") is None
    kept.keep_verified(replace(FOUND, beside={"numpy": "3.0"}))
    assert kept.verified_version("torch", "9.1.0") is not None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"loader": "torch"}', "[" * 50_000])
def test_a_damaged_file_is_as_none_and_is_written_anew(text: str) -> None:
    kept.keep_verified(FOUND)
    (folder() / "torch-9.1.0.json").write_text(text)
    assert kept.verified_version("torch", "9.1.0") is None
    kept.keep_verified(FOUND)
    assert kept.verified_version("torch", "9.1.0") == FOUND


def test_a_folder_that_cannot_be_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SHARDCTL_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert kept.keep_verified(FOUND) == "Not a directory"
    assert kept.verified_version("torch", "9.1.0") is None


def test_a_version_is_read_without_importing_the_package() -> None:
    program = (
        "import sys; from shardctl.metadata.loader_versions import installed_version as v;"
        "assert v('numpy'); print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"False\n"


def test_what_is_not_installed_has_none() -> None:
    assert installed_version("no-such-package") is None


def test_an_installed_library_has_the_source_that_its_version_had() -> None:
    for package, known in json.loads(kept.SOURCES.read_text("utf-8")).items():
        version, versions = installed_version(package), known["versions"]
        assert [*versions] == [one for one in proven_of(package) if one in versions]
        if version in versions:
            found = kept.same_source(package)
            assert found is not None
            assert versions[found] == versions[version]


def test_code_that_changes_an_order_has_another_digest() -> None:
    def digest(text: str, *names: str) -> str:
        return kept.source_digest({"a.py": names}, lambda name: text)

    source = "class A:\n    def f(self, n: int) -> int:\n        '''Doc.'''\n        return n % 3\n"
    same = source.replace("'''Doc.'''", "'''Other.'''\n\n        # why").replace(": int", ": 'I'")
    for names in ([], ["A"], ["A.f"]):
        assert digest(source, *names) == digest(same, *names)
        assert digest(source, *names) != digest(source.replace("3", "4"), *names)
    assert digest(source, "A.f") == digest(source + "B = 1\n", "A.f") != digest(source, "A.g")
