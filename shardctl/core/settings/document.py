"""Read settings as the mapping that stands in shardctl.yaml, in answers, plans and snapshots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shardctl.core.hosts.host import Host
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.text import choices, quoted
from shardctl.errors import UsageError

SettingsDocument = dict[str, Any]


def settings_in_force(settings: ReadSettings, *, ordered: bool) -> SettingsDocument:
    """Return every setting by its option's name, with the defaults that are in force.

    What no part of the pipeline reads is None. Read back it gives the same order.

    >>> document = settings_in_force(ReadSettings(shuffle_seed=32), ordered=False)
    >>> document["cycle"], document["shuffle_files"], document["reshuffle"], document["buffer"]
    (16, True, True, None)
    """
    shuffles, buffers = settings.shuffles_files, settings.buffer is not None
    return {
        # The number that "auto" comes to on those CPUs, so nothing is left to say about them.
        "cycle": settings.cycle_length(ordered=ordered),
        "cpus": None,
        "block": settings.block,
        "shuffle_files": shuffles,
        "shuffle_seed": settings.shuffle_seed if shuffles else None,
        "reshuffle": settings.reshuffle is not False if shuffles else None,
        "deterministic": settings.deterministic,
        "buffer": settings.buffer,
        "buffer_seed": settings.buffer_seed,
        "buffer_reshuffle": settings.buffer_reshuffle is not False if buffers else None,
        "global_seed": settings.global_seed,
        "epochs": settings.epochs,
        "repeat_files": settings.repeat_files,
        "reverse": settings.reverse,
        "file_order": None if settings.file_order is None else list(settings.file_order),
        "host": None if settings.host is None else str(settings.host),
        "host_by": settings.host_by,
        "batch": settings.batch,
        "drop_remainder": settings.drop_remainder,
        "pass": settings.pass_index,
        "loop": settings.loop,
    }


def settings_from_document(document: Mapping[str, object], where: str) -> dict[str, Any]:
    """Return the arguments of `ReadSettings` that a mapping holds; those that are None left out.

    Names may be written with `-` or `_`, as in `shuffle-seed`. `where` names the file in errors.

    Raises:
        UsageError: an unknown name, or a value of another kind; the message says which.

    >>> settings_from_document({"shuffle-seed": 32, "host": "1/4"}, "shardctl.yaml")
    {'shuffle_seed': 32, 'host': Host(index=1, count=4)}
    """
    arguments: dict[str, Any] = {}
    for key, value in document.items():
        name = str(key).replace("-", "_")
        if name not in _KINDS:
            raise UsageError(f"{where}: no setting {quoted(key)}; there are: {choices(_KINDS, 30)}")
        if value is None:
            continue
        if name in arguments:
            raise UsageError(f"{where}: setting {quoted(key)} stands there twice")
        arguments["pass_index" if name == "pass" else name] = _KINDS[name](
            value, f"{where}: {name}"
        )
    return arguments


def _whole(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"{what} {quoted(value)}: a whole number is needed")
    return value


def _flag(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{what} {quoted(value)}: true or false is needed")
    return value


def _word(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{what} {quoted(value)}: a word is needed")
    return value


def _cycle(value: object, what: str) -> object:
    return value if value == "auto" else _whole(value, what)


def _host(value: object, what: str) -> Host:
    try:
        return Host.parse(_word(value, what))
    except UsageError as error:
        raise UsageError(f"{what}: {error}") from None


def _files(value: object, what: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise UsageError(f"{what} {quoted(value)}: a list of file names is needed")
    return tuple(value)


_KINDS: dict[str, Callable[[object, str], object]] = {
    "cycle": _cycle,
    "cpus": _whole,
    "block": _whole,
    "shuffle_files": _flag,
    "shuffle_seed": _whole,
    "reshuffle": _flag,
    "deterministic": _flag,
    "buffer": _whole,
    "buffer_seed": _whole,
    "buffer_reshuffle": _flag,
    "global_seed": _whole,
    "epochs": _whole,
    "repeat_files": _flag,
    "reverse": _flag,
    "file_order": _files,
    "host": _host,
    "host_by": _word,
    "batch": _whole,
    "drop_remainder": _flag,
    "pass": _whole,
    "loop": _word,
}
