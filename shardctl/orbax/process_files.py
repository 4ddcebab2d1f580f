"""The files of positions in a checkpoint: one a process, named as Grain names its own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import jax

from shardctl.core.hosts.host import Host, HostLike
from shardctl.core.text import choices, printable
from shardctl.errors import DatasetError
from shardctl.files.position_file import position_of_text
from shardctl.tfds.position.position import Position
from shardctl.tfds.training.process_host import check_host

_FORM = re.compile(r"process_(0|[1-9]\d{0,8})-of-([1-9]\d{0,8})\.json")


def file_of(process: Host) -> str:
    """Return the name of the file that a process writes: `process_3-of-8.json`."""
    return f"process_{process.index}-of-{process.count}.json"


def write_state(directory: Any, process: Host, state: bytes) -> None:
    """Write the file of a process into a folder that is there; no other process touches it."""
    (directory / file_of(process)).write_bytes(state)


def host_of(state: bytes, *, source: str = "the state") -> Host | None:
    """Return the host whose position a state is, None where its settings name none.

    Raises:
        DatasetError: no state of a position, or a damaged one; `source` names it.
    """
    return position_of_text(state, source=source).settings.host


def own_state(directory: Any, process: Host, host: Host | None) -> bytes | None:
    """Return the state that this process wrote, if as many processes did and it was `host`'s.

    Of the other files only the names are looked at, as each process may have a disk of its own.

    Raises:
        DatasetError: as for `all_states`.
    """
    count = _count_of(directory)
    if count != process.count or file_of(process) not in _names(directory):
        return None
    state = _read(directory, process)
    return state if host_of(state, source=_shown(directory, process)) == host else None


def all_states(directory: Any) -> list[bytes]:
    """Return the states of all processes of the run that wrote them, one a host, in their order.

    Several processes may have been one host, as all are that read everything; they have then come
    to one place. A state whose settings name no host is one of a run without hosts.

    Raises:
        DatasetError: no such file, one that is missing or damaged, files of several numbers of
            processes, or processes that were one host and have come to different places.
    """
    processes = [Host(index=i, count=_count_of(directory)) for i in range(_count_of(directory))]
    names = _names(directory)
    if missing := [file_of(one) for one in processes if file_of(one) not in names]:
        raise DatasetError(
            f"{_shown(directory)}: {choices(missing)} missing; on another number of processes, or "
            "as another host, a position takes the files of all of them, together in one folder"
        )
    states = {one: _read(directory, one) for one in processes}
    hosts = {one: host_of(states[one], source=_shown(directory, one)) for one in processes}
    return [states[one] for one in _one_a_host(directory, states, hosts)]


def _one_a_host(
    directory: Any, states: Mapping[Host, bytes], hosts: Mapping[Host, Host | None]
) -> Sequence[Host]:
    first: dict[Host | None, Host] = {}
    for process, host in hosts.items():
        other = first.setdefault(host, process)
        if states[process] != states[other]:
            raise DatasetError(
                f"{_shown(directory)}: {file_of(other)} and {file_of(process)} are both of "
                f"{'no host' if host is None else f'host {host.index} of {host.count}'} and "
                "differ; where every process reads a part of its own, its settings say which: "
                "ReadSettings(host=Host(index=I, count=N))"
            )
    return [
        first[host] for host in sorted(first, key=lambda h: (h.count, h.index) if h else (0, 0))
    ]


def _names(directory: Any) -> set[str]:
    try:
        return {path.name for path in directory.iterdir() if path.name.startswith("process_")}
    except OSError as error:
        raise DatasetError(f"{_shown(directory)}: cannot be read ({error})") from error


def _count_of(directory: Any) -> int:
    """Return how many processes have written into a folder, as the names of all its files say."""
    names = _names(directory)
    if not names:
        raise DatasetError(
            f"{_shown(directory)}: no position is in this item of the checkpoint, of which each "
            "process writes a file such as process_0-of-1.json"
        )
    found = {name: _FORM.fullmatch(name) for name in names}
    counts = {int(match[2]) for match in found.values() if match}
    for name, match in sorted(found.items()):
        if match is None or int(match[1]) >= int(match[2]):
            raise DatasetError(f"{_shown(directory)}: {printable(name)} is the file of no process")
    if len(counts) > 1:
        raise DatasetError(
            f"{_shown(directory)}: files of {choices(sorted(counts))} processes are in one "
            "checkpoint; those of one run are needed, in a folder of their own"
        )
    return counts.pop()


def _read(directory: Any, process: Host) -> bytes:
    try:
        data: bytes = (directory / file_of(process)).read_bytes()
    except OSError as error:
        raise DatasetError(f"{_shown(directory, process)}: cannot be read ({error})") from error
    return data


def _shown(directory: Any, process: Host | None = None) -> str:
    return printable(str(directory if process is None else directory / file_of(process)))


# Which of the states in a checkpoint a position goes to, and who this process is.


def this_process() -> Host:
    """Return which process this is, by JAX."""
    return Host(index=jax.process_index(), count=jax.process_count())


def check_host_of(position: Position, host: int | HostLike | None) -> None:
    """Refuse a position of one host in a process that is said to be another one.

    Raises:
        UsageError: it is another host; see `check_host`.
    """
    planned = host_of(position.get_state())
    if planned is not None:
        check_host(planned, host, what="position")


def restore_position(
    position: Position, directory: Any, process: Host, *, allow_version: bool
) -> None:
    """Go to the state that this process has saved, or share what all of them had left.

    Raises:
        DatasetError: no states, or they cannot be used; `process_files` says why.
        ShardctlError: the position refuses them.
    """
    state = own_state(directory, process, host_of(position.get_state()))
    if state is not None:
        position.set_state(state, allow_version=allow_version)
    else:
        position.set_states(all_states(directory), allow_version=allow_version)
