"""The handler by which Orbax saves and restores a position, a file for each process."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any

import jax
import orbax.checkpoint as ocp
from etils import epath
from orbax.checkpoint.future import CommitFutureAwaitingContractedSignals

from shardctl.base.arguments import checked, keep_fields
from shardctl.base.text import choices, printable
from shardctl.errors import DatasetError
from shardctl.files.parse import parse_json
from shardctl.saved.position_file import position_of_text
from shardctl.spec.host import Host, HostLike, as_host
from shardctl.tfds.position import Position
from shardctl.tfds.training.read_config import check_host

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


def _reader_of(state: bytes, path: Any) -> Host | str | None:
    """Return who read what a state counts: a host; of a loader of Grain its sampler, as text."""
    document = parse_json(state, source=_shown(path))
    sampler = document.get("sampler") if isinstance(document, dict) else None
    if isinstance(sampler, str) and sampler.startswith("shardctl.grain.Sampler("):
        return sampler
    return host_of(state, source=_shown(path))


def own_state(directory: Any, process: Host, host: Host | None) -> bytes | None:
    """Return the state that this process wrote, if as many processes did and it was `host`'s.

    Of the other files only the names are looked at, as each process may have a disk of its own.

    Raises:
        DatasetError: as for `states`.
    """
    count, names = _files(directory)
    # Another number of processes, or another host: the state of this process is not the one to
    # resume.
    if count != process.count or file_of(process) not in names:
        return None
    path = directory / file_of(process)
    state = _read(path)
    return state if host_of(state, source=_shown(path)) == host else None


@checked
def states(folder: str | os.PathLike[str]) -> list[bytes]:
    """Return the states of all processes that saved an item of a checkpoint, one a host, in order.

    `folder` is that of the item, also a remote one: `run/checkpoints/120/data`. The item is one of
    `Save`, for `Position.set_states`, or one in which Grain's or MaxText's handler saved a loader
    of `shardctl.grain`, whose `states=` continues with any number of processes and workers.
    Several processes may have been one host, as all are that read everything; they have then come
    to one place. A state whose settings name no host is one of a run without hosts.

    Raises:
        DatasetError: no such file, one that is missing or damaged, files of several numbers of
            processes, or processes that were one host and have come to different places.
    """
    directory = epath.Path(folder)
    alone = directory / "process_0.json"
    if [*directory.glob("process_*")] == [alone]:  # MaxText's, of what is the same in all of them
        _reader_of(_read(alone), alone)
        return [_read(alone)]
    count, names = _files(directory)
    processes = [Host(index=i, count=count) for i in range(count)]
    if missing := [file_of(one) for one in processes if file_of(one) not in names]:
        raise DatasetError(
            f"{_shown(directory)}: {choices(missing)} missing; on another number of processes, or "
            "as another host, a position takes the files of all of them, together in one folder"
        )
    # For each host, the first process that was it, and its state.
    first: dict[Host | str | None, tuple[Host, bytes]] = {}
    for process in processes:
        path = directory / file_of(process)
        state = _read(path)
        host = _reader_of(state, path)
        other, same = first.setdefault(host, (process, state))
        if state != same:
            named = "no host" if host is None else "one sampler"
            if isinstance(host, Host):
                named = f"host {host.index} of {host.count}"
            raise DatasetError(
                f"{_shown(directory)}: {file_of(other)} and {file_of(process)} are both of "
                f"{named} and differ; where every process reads a part of its own, its settings "
                "say which: ReadSettings(host=Host(index=I, count=N))"
            )
    in_order = sorted(
        first, key=lambda host: (host.count, host.index) if isinstance(host, Host) else (0, 0)
    )
    return [first[host][1] for host in in_order]


def _files(directory: Any) -> tuple[int, set[str]]:
    """Return how many processes have written into a folder, and the names of all their files."""
    try:
        names = {path.name for path in directory.iterdir() if path.name.startswith("process_")}
    except OSError as error:
        raise DatasetError(f"{_shown(directory)}: cannot be read ({error})") from error
    if not names:
        raise DatasetError(
            f"{_shown(directory)}: no position is in this item of the checkpoint, of which each "
            "process writes a file such as process_0-of-1.json"
        )
    # Names that do not match have no process, and are refused below.
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
    return counts.pop(), names


def _read(path: Any) -> bytes:
    try:
        data: bytes = path.read_bytes()
    except OSError as error:
        raise DatasetError(f"{_shown(path)}: cannot be read ({error})") from error
    return data


def _shown(path: Any) -> str:
    return printable(str(path))


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
        position.set_states(states(directory), allow_version=allow_version)


# The handler by which Orbax saves and restores a position, and its arguments.


class PositionHandler(ocp.AsyncCheckpointHandler):
    """What Orbax calls for `Save` and `Restore`; it is registered for both, under any item name.

    The state is taken when the checkpoint is saved and written in the background, as Orbax writes
    the rest. Each process writes `process_I-of-N.json`, by `jax.process_index()`; `process`, `I/N`
    or a `Host`, is for runs whose processes JAX knows nothing of.
    """

    @checked
    def __init__(self, *, process: HostLike | None = None) -> None:
        self._process = None if process is None else as_host(process)

    def save(self, directory: Any, args: Save) -> None:
        """Write the state of `args.position` into the folder, which is there."""
        write_state(directory, self._process or this_process(), args.position.get_state())

    async def async_save(self, directory: Any, args: Save) -> list[Any]:
        """Take the state of `args.position`; return the future of its file."""
        # The state is taken now, on the caller's thread; only the writing is put off.
        process, state = self._process or this_process(), args.position.get_state()

        async def written() -> None:
            write_state(directory, process, state)

        # Orbax may create the folder in the background too, and signals when it is there.
        return [CommitFutureAwaitingContractedSignals(written(), name="position")]

    def restore(self, directory: Any, args: Restore | None = None) -> Any:
        """Bring `args.position` to where it was saved, and return it; see `Restore`.

        Raises:
            ShardctlError: as for `Restore`.
        """
        # `manager.restore(step)` without arguments cannot know a position, so it gets the states.
        if args is None or args.position is None:
            return states(directory)
        process = self._process or this_process()
        restore_position(args.position, directory, process, allow_version=args.allow_version)
        return args.position

    @classmethod
    def typestr(cls) -> str:
        """Return the name under which checkpoints know the handler, wherever its module lies."""
        return "shardctl.orbax.PositionHandler"


@ocp.args.register_with_handler(PositionHandler, for_save=True)
@dataclass
class Save(ocp.args.CheckpointArgs):
    """Save a position as an item of a checkpoint, at the very place where `save` is called.

    `host`, an index or `I/N`, is who this process is, where its settings name a host and JAX counts
    processes otherwise; as for `Position.dataset`.

        manager.save(
            step,
            args=ocp.args.Composite(
                state=ocp.args.StandardSave(state), data=shardctl_args.Save(position)
            ),
        )

    Raises:
        UsageError: the position is another host's than this process's.
    """

    position: Position
    host: int | HostLike | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        keep_fields(self)
        check_host_of(self.position, self.host)


@ocp.args.register_with_handler(PositionHandler, for_restore=True)
@dataclass
class Restore(ocp.args.CheckpointArgs):
    """Restore a position in place, from an item that `Save` has written.

    As many processes as saved take each its own state; another number, or other hosts, take the
    states of all of them by `Position.set_states`, and share what is left. What is restored is the
    position itself. Without a position, as where `manager.restore(step)` is given no arguments, it
    is the list of the states, one a host, as `states` returns it. `allow_version` is that of
    `Position.set_state`, `host` that of `Save`.

    Raises:
        DatasetError: a file is missing or damaged, or files are of several runs; the position is of
            another dataset, or the dataset has changed.
        UsageError: another spec or other settings; or as for `Save`.
    """

    position: Position | None = None
    allow_version: bool = field(default=False, kw_only=True)
    host: int | HostLike | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        keep_fields(self)
        if self.position is not None:
            check_host_of(self.position, self.host)


# A position as Orbax's next API (`orbax.checkpoint.v1`) takes it: an object with save and load.


class Checkpointable:
    """A position for `save_checkpointables` and `load_checkpointables`, which restores in place.

    It is a `StatefulCheckpointable` of Orbax's API v1, and writes the files that `Save` writes;
    `allow_version` and `host` are those of `Restore`.

        ocp.save_checkpointables(path, {"state": state, "data": Checkpointable(position)})

    Raises:
        UsageError: as for `Save`.
    """

    @checked
    def __init__(
        self, position: Position, *, allow_version: bool = False, host: int | HostLike | None = None
    ) -> None:
        check_host_of(position, host)
        self._position, self._allow_version = position, allow_version

    async def save(self, directory: Any) -> Awaitable[None]:
        """Take the state, and return what writes it once the folder is there."""
        process, state = this_process(), self._position.get_state()

        async def written() -> None:
            write_state(await directory.await_creation(), process, state)

        return written()

    async def load(self, directory: Any) -> Awaitable[None]:
        """Bring the position to where it was saved, and return what has nothing left to do.

        Orbax would hide an error of what is returned behind one about handlers.

        Raises:
            ShardctlError: as for `Restore`.
        """
        restore_position(
            self._position, directory, this_process(), allow_version=self._allow_version
        )
        return asyncio.sleep(0)
