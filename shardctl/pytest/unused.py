"""The end of a run: which snapshots were written, and which no test uses any more."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from shardctl.core.text import counted
from shardctl.pytest.file_names import belongs_to


def summary(reports: Sequence[Any], *, here: Path, ended: bool) -> Iterator[str]:
    """Yield lines about the snapshots of a run.

    Args:
        reports: of the tests that took `order_snapshot`; each has what `OrderSnapshot.kept` says.
        here: the folder that pytest was called in, from which paths are shown.
        ended: whether every test was run that was to be run.
    """
    kept = [report.order_snapshots for report in reports]
    written = sorted(
        os.path.relpath(Path(one["folder"], name), here) for one in kept for name in one["written"]
    )
    if written:
        yield f"{counted(len(written), 'order snapshot')} written:"
        yield from (f"  {path}" for path in written)
    unused = sorted(os.path.relpath(path, here) for path in _unused(reports, ended=ended))
    if unused:
        are = "is" if len(unused) == 1 else "are"
        yield f"{counted(len(unused), 'order snapshot')} {are} used by no test; delete what is old:"
        yield from (f"  {path}" for path in unused)


def _unused(reports: Sequence[Any], *, ended: bool) -> Iterator[Path]:
    """Yield files that no test uses, where the tests that ran are enough to say so.

    A test that failed or was skipped may not have come to its checks. Where only some of the tests
    were asked for, a file is unused if the test that it belongs to ran, and did without it.
    """
    folders: dict[Path, list[Any]] = {}
    for report in reports:
        folders.setdefault(Path(report.order_snapshots["folder"]), []).append(report)
    for folder, of_folder in folders.items():
        kept = [report.order_snapshots for report in of_folder]
        used = {name for one in kept for name in one["used"]}
        passed = [r.order_snapshots["stem"] for r in of_folder if r.outcome == "passed"]
        others = [r.order_snapshots["stem"] for r in of_folder if r.outcome != "passed"]
        whole = ended and not any(one["narrowed"] for one in kept)
        for file in sorted(folder.glob("*.yaml")):
            name = file.name
            if name in used or any(belongs_to(name, stem) for stem in others):
                continue
            if whole or any(belongs_to(name, stem) for stem in passed):
                yield file
