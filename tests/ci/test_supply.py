"""What `.ci/supply` writes: the lock file of `.ci/run`, and licences of what the extras bring."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
CI = ROOT / ".ci"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NOT_OF_USERS = {"test", "test-tensorflow", "browser", "dev", "mutants"}


def locked() -> dict[str, set[str]]:
    """Return the versions that the lock file has of each package, each with a hash."""
    versions: dict[str, set[str]] = {}
    for block in re.split(r"(?<!\\)\n", (CI / "lock.txt").read_text("utf-8")):
        if block and not block.startswith("#"):
            requirement = Requirement(block.partition(" \\")[0])
            assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), f"no hash: {requirement}"
            (version,) = requirement.specifier
            versions.setdefault(canonicalize_name(requirement.name), set()).add(version.version)
    return versions


def components() -> dict[str, dict[str, Any]]:
    """Return what the extras bring, by name."""
    document = json.loads((CI / "sbom.cdx.json").read_text("utf-8"))
    return {canonicalize_name(component["name"]): component for component in document["components"]}


def required(extra: str) -> list[Requirement]:
    """Return what an extra asks for here, with that of the extras that it names."""
    found = []
    for text in PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]:
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate():
            continue
        if requirement.name == "shardctl":
            found += [each for name in requirement.extras for each in required(name)]
        else:
            found.append(requirement)
    return found


def test_the_lock_file_has_what_ci_asks_for() -> None:
    versions = locked()
    for requirement in required("") + required("dev"):
        has = versions.get(canonicalize_name(requirement.name), set())
        assert any(requirement.specifier.contains(version) for version in has), (requirement, has)


@pytest.mark.parametrize("extra", ["", *sorted({*PROJECT["optional-dependencies"]} - NOT_OF_USERS)])
def test_what_an_extra_brings_is_known_with_its_licence(extra: str) -> None:
    known, versions = components(), locked()
    for requirement in required(extra):
        component = known[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(component["version"]), component
    for name, component in known.items():
        assert component["licenses"], name
        assert all(map(licence_of, component["licenses"])), component
        assert component["version"] in versions.get(name, {component["version"]}), component


def licence_of(entry: dict[str, Any]) -> Any:
    """Return an SPDX id or expression, or the name that the package gives."""
    licence = entry.get("license", {})
    return entry.get("expression") or licence.get("id") or licence.get("name")
