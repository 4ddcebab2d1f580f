"""Settings as keywords of public functions, with their types: what editors and type checkers read.

`@checked` joins them with `settings` (see `Kind.join`), so that a function has one `settings` and
no keywords. A function whose own arguments have the names of some takes a class that lacks these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict
from typing import Unpack as Unpack  # noqa: PLC0414  # for the modules that name these

if TYPE_CHECKING:
    from shardctl.base.tfds_rules import Loop
    from shardctl.loaders.loader import LoaderName
    from shardctl.spec.host import Host, HostBy
    from shardctl.stages.stages import Pipeline


class ReaderSettings(TypedDict, total=False):
    """Those that no function has an argument for."""

    cycle: int | Literal["auto"] | None
    cpus: int | None
    block: int
    shuffle_files: bool | None
    shuffle_seed: int | None
    reshuffle: bool | None
    deterministic: bool | None
    buffer: int | None
    buffer_seed: int | None
    buffer_reshuffle: bool | None
    global_seed: int | None
    repeat_files: bool
    reverse: bool
    file_order: Sequence[str] | None
    host_by: HostBy
    drop_remainder: bool
    stages: Pipeline | str | Sequence[str | Mapping[str, Any]] | None
    pass_index: int
    loop: Loop
    loader: LoaderName
    loader_version: str | None
    shuffle: bool | None
    persistent_workers: bool | None
    drop_shard_remainder: bool
    streaming: bool | None
    arrow: bool | None
    input_shards: int | None


class FitSettings(ReaderSettings, total=False):
    """Those beside arguments for epochs, the host and workers."""

    batch: int | None


class HostSettings(FitSettings, total=False):
    """Those beside arguments for the host and workers."""

    epochs: int


class LoaderSettings(HostSettings, total=False):
    """Those beside an argument for workers."""

    host: Host | str | None


class OrderSettings(LoaderSettings, total=False):
    """All of them."""

    workers: int | None
