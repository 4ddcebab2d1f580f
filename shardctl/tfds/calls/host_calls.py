"""What each host mode is in TFDS and tf.data: the calls by which a host gets its examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shardctl.core.hosts.host import Host
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.tfds.imports import tensorflow, tensorflow_datasets


@dataclass(frozen=True, kw_only=True)
class HostCalls:
    """The calls of one host mode, None where it leaves that step alone.

    split: what `as_dataset` is asked for in place of a spec.
    input_context: `ReadConfig.input_context`.
    instructions, examples: what is done with the dataset of file instructions, and with that of
        the examples behind the reader.
    """

    split: Callable[[str, Host], Any] | None = None
    input_context: Callable[[Host], Any] | None = None
    instructions: Callable[[Any, Host], Any] | None = None
    examples: Callable[[Any, Host], Any] | None = None


def _even_split(spec: str, host: Host) -> Any:
    return tensorflow_datasets().even_splits(spec, host.count, drop_remainder=False)[host.index]


def _input_context(host: Host) -> Any:
    return tensorflow().distribute.InputContext(
        num_input_pipelines=host.count, input_pipeline_id=host.index
    )


def _shard(elements: Any, host: Host) -> Any:
    return elements.shard(host.count, host.index)


HOST_CALLS = {
    "even": HostCalls(split=_even_split),
    "files": HostCalls(input_context=_input_context, instructions=_shard),
    "examples": HostCalls(examples=_shard),
}


def split_of_host(spec: str, settings: ReadSettings) -> Any:
    """Return what `as_dataset` is asked for on the settings' host."""
    call = HOST_CALLS[settings.host_by].split
    return spec if settings.host is None or call is None else call(spec, settings.host)


def input_context_of_host(settings: ReadSettings) -> Any:
    """Return the `InputContext` of the settings' host, None without one."""
    call = HOST_CALLS[settings.host_by].input_context
    return None if settings.host is None or call is None else call(settings.host)


def instructions_of_host(rows: Any, settings: ReadSettings) -> Any:
    """Return the file instructions of the settings' host, as TFDS's reader takes its own."""
    call = HOST_CALLS[settings.host_by].instructions
    return rows if settings.host is None or call is None else call(rows, settings.host)


def examples_of_host(examples: Any, settings: ReadSettings) -> Any:
    """Return the examples that the settings' host keeps of what its reader yields."""
    call = HOST_CALLS[settings.host_by].examples
    return examples if settings.host is None or call is None else call(examples, settings.host)
