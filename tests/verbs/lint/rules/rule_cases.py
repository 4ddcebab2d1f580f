"""Ways to read a toy dataset, in a word or two, for the tables of cases that each rule has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from shardctl.dataset.dataset import COUNTED_FILES, Dataset, Split
from shardctl.draw.setting_origins import SettingOrigins
from shardctl.draw.tables import Screen
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages.text import parse_stages
from shardctl.verbs.lint.answer import Lint, lint
from shardctl.verbs.lint.context import Usage
from shardctl.verbs.lint.rule import Rule
from shardctl.verbs.lint.view import lint_table

MIB = 1024**2
GIB = 1024**3


def dataset(
    *,
    train: Sequence[int] = (100,) * 64,
    test: Sequence[int] = (50,) * 8,
    num_bytes: int | None = 10 * GIB,
    file_format: str = "tfrecord",
    ordered: bool = False,
    origin: str = "metadata",
) -> Dataset:
    """A dataset of 64 shards of 100 examples, unless said otherwise."""
    return Dataset(
        name="toy",
        splits=(
            Split(name="train", shard_lengths=tuple(train), num_bytes=num_bytes),
            Split(name="test", shard_lengths=tuple(test), num_bytes=num_bytes),
        ),
        file_format=file_format,
        ordered=ordered,
        origin=origin,
    )


@dataclass(frozen=True, kw_only=True)
class Case:
    """What a project reads, and how: read settings, then what `Usage` holds."""

    read: dict[str, Any] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)
    specs: tuple[str, ...] | None = None
    evaluated: tuple[str, ...] = ()
    layout: dict[str, Any] = field(default_factory=dict)

    def lint(self) -> Lint:
        """Return what is found."""
        return lint(
            dataset(**self.layout),
            self.specs,
            ReadSettings(**self.read),
            evaluated=self.evaluated,
            usage=Usage(**self.usage),
        )

    def codes(self) -> list[str]:
        """Return the codes of what is found."""
        return [finding.rule.code for finding in self.lint().findings]

    def check_fits_screens(self) -> None:
        """Check that no line of what is found is wider than a narrow screen."""
        origins = SettingOrigins(file="a/shardctl.yaml", lines={"epochs": 4, "hosts": 9})
        for width in (40, 60, 80):
            text = "".join(lint_table(self.lint(), origins, Screen(width=width)))
            assert max(map(len, text.splitlines())) <= width
            assert text.endswith("\n")
            assert not re.search(r" $", text, re.MULTILINE)


Row = tuple[str, Case, Case]  # a code, a case in which it is found, the nearest in which it is not


def codes_of(module: ModuleType) -> set[str]:
    """Return the codes of the rules of a module."""
    return {value.code for value in vars(module).values() if isinstance(value, Rule)}


def case(
    *specs: str,
    evaluated: tuple[str, ...] = (),
    usage: dict[str, Any] | None = None,
    layout: dict[str, Any] | None = None,
    **read: Any,
) -> Case:
    """Return a case; without specs the default one is read."""
    return Case(
        read=read, usage=usage or {}, specs=specs or None, evaluated=evaluated, layout=layout or {}
    )


HOSTS: dict[str, Any] = {"usage": {"hosts": 4}}
SEEDED: dict[str, Any] = {"shuffle_seed": 1, "buffer": 2000, "buffer_seed": 2}
ENDLESS: dict[str, Any] = {"repeat_files": True, "shuffle_seed": 1}
SOURCE: dict[str, Any] = {"usage": {"as_data_source": True}}
PARQUET: dict[str, Any] = {**SOURCE, "layout": {"file_format": "parquet"}}
SMALL: dict[str, Any] = {"layout": {"num_bytes": 100 * MIB}}
COUNTED: dict[str, Any] = {"layout": {"origin": COUNTED_FILES}}
ONE_FILE: dict[str, Any] = {"layout": {"train": (100,)}}


def staged(text: str, **others: Any) -> Case:
    """Return a case whose pipeline is written as stages."""
    return case(stages=parse_stages(text), **others)
