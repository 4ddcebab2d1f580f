"""Writes the digests of proven versions: `python -m tests.loaders.sources WHEEL_OR_FOLDER ..`.

A folder is one that wheels are unpacked in, as `site-packages`. `decides` is written by hand.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from zipfile import Path as InWheel

from shardctl.loaders.loader import LOADERS, public_version
from shardctl.metadata.loader_versions import SOURCES, source_digest


def proven_of(package: str) -> tuple[str, ...]:
    """Return the proven versions of a package, which may be one beside a library."""
    known = {name: found for one in LOADERS.values() for name, found in one.beside.items()}
    return {**known, **{one.library: one.proven for one in LOADERS.values()}}[package]


def main(paths: list[str]) -> None:
    sources = json.loads(SOURCES.read_text("utf-8"))
    for path in paths:
        place = Path(path) if Path(path).is_dir() else InWheel(path)

        def read(name: str, place: Path | InWheel = place) -> str:
            return (place / name).read_text("utf-8")

        for info in place.iterdir():
            found = re.fullmatch(r"(\w+)-(.+)\.dist-info", info.name)
            name = found[1].replace("_", "-") if found else ""
            if found and name in sources and public_version(found[2]) in proven_of(name):
                known = sources[name]
                digest = source_digest(known["decides"], read)
                known["versions"][public_version(found[2])] = digest
    for package, known in sources.items():
        digests, order = known["versions"], proven_of(package)
        known["versions"] = {version: digests[version] for version in order if version in digests}
    SOURCES.write_text(json.dumps(sources, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
