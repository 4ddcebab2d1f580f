"""What each host mode is in code: the calls of `tfds/calls/host_calls.py`, written down."""

from __future__ import annotations

from dataclasses import dataclass

from shardctl.core.settings.read_settings import ReadSettings


@dataclass(frozen=True, kw_only=True)
class HostCode:
    """The code of one host mode for `host` of `num_hosts`, "" where it leaves that step alone.

    split: what `as_dataset` is asked for, where {} is the spec.
    input_context: `ReadConfig.input_context`.
    files: what stands behind a list of files of which a sort function returns this host's.
    examples: what stands behind the examples of the reader.
    """

    split: str = "{}"
    input_context: str = ""
    files: str = ""
    examples: str = ""


HOST_CODE = {
    "even": HostCode(split="tfds.even_splits({}, n=num_hosts)[host]"),
    "files": HostCode(
        input_context="tf.distribute.InputContext(num_hosts, host)", files="[host::num_hosts]"
    ),
    "examples": HostCode(examples=".shard(num_shards=num_hosts, index=host)"),
}


def code_of_host(settings: ReadSettings) -> HostCode:
    """Return the code of the settings' host mode, which changes nothing without a host.

    >>> code_of_host(ReadSettings(host_by="files")).files
    ''
    """
    return HostCode() if settings.host is None else HOST_CODE[settings.host_by]
