"""Toys that are verified: against the real reader, with other settings, with files that changed."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shardctl.dataset.dataset import Split
from shardctl.settings.read_settings import ReadSettings
from shardctl.tfds.verifying.verify import verify
from shardctl.verbs.verify.answer import Verification
from tests.order.order_cases import changed
from tests.order.toy_pipelines import Case, Toys, predicted


def settings_of(toys: Toys, case: Case) -> ReadSettings:
    """Return the settings of a case, with an order of the files where it asks for one."""
    if case.file_order is None or case.toy == "several":  # there files share their names
        return case.settings
    splits = toys[case.toy].dataset.splits
    names = [name for split in splits for name in split.filenames]
    random.Random(case.file_order).shuffle(names)
    return changed(case.settings, file_order=tuple(names))


def check_agrees(toys: Toys, case: Case, pass_index: int, take: Any = None) -> Verification | None:
    """Verify a pass of a pipeline whose files are as they say, by files and by index ranges."""
    toy = toys[case.toy]
    settings = settings_of(toys, case)
    if not settings.repeat_files:
        settings = changed(settings, pass_index=pass_index)
    order = predicted(toy, case, settings)
    if order is None:
        return None
    found = verify(toy.dataset, case.spec, settings, take=take)
    assert found.equal, (case, pass_index, found.first_difference, found.files)
    if found.read != "files":  # a later pass of many files is over a small budget
        assert pass_index
        return found
    assert found.num_files == len({*zip(order.reads.split, order.reads.shard, strict=True)})
    nowhere = replace(toy.dataset, splits=tuple(map(without_folder, toy.dataset.splits)))
    over_ranges = verify(nowhere, case.spec, settings, take=take)
    assert over_ranges.equal, (case, pass_index, over_ranges.first_difference)
    assert (over_ranges.read, over_ranges.num_files) == ("index ranges", 0)
    return found


def without_folder(split: Split) -> Split:
    return replace(split, files=tuple(replace(part, data_dir=None) for part in split.files))


def other_reader(monkeypatch: pytest.MonkeyPatch, kind: type, method: str, **other: Any) -> None:
    """Let the real thing read with other settings than those that are predicted."""
    real = getattr(kind, method)

    def read(self: Any, given: Any, *more: Any) -> Any:
        if isinstance(given, ReadSettings):
            return real(self, changed(given, **other))
        return real(self, replace(given, settings=changed(given.settings, **other)), *more)

    monkeypatch.setattr(kind, method, read)


def tampered(toys: Toys, tmp_path: Path, name: str = "plain") -> Path:
    """Return a folder with a copy of a toy."""
    return Path(shutil.copytree(toys[name].dataset.data_dir or "", tmp_path / "copy"))
