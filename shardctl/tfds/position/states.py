"""The states of all processes of a run: whose they are, and whether they are of one run."""

from __future__ import annotations

from collections.abc import Sequence

from shardctl.core.resume.stretch import Stretch
from shardctl.core.text import choices
from shardctl.errors import UsageError
from shardctl.files.position_file import PositionRecord, position_of_text

_MOST_NAMED = 8


def records_of(states: Sequence[bytes]) -> list[PositionRecord]:
    """Return the positions of all hosts of a run, host 0 first, in whatever order they are given.

    Raises:
        DatasetError: one of them is no position, or was edited.
        UsageError: a host is missing or there twice, or they are of several runs.
    """
    if not states:
        raise UsageError("states: none are given; those of all processes of the run are needed")
    records = [
        position_of_text(state, source=f"states[{index}]") for index, state in enumerate(states)
    ]
    for index, record in enumerate(records):
        if others := _differing(records[0], record):
            raise UsageError(
                f"states[{index}] is not of the same run as states[0]: {choices(others)}"
            )
    hosts = [record.settings.host for record in records]
    if hosts == [None]:
        return records
    places: dict[int, int] = {}
    for place, host in enumerate(hosts):
        if host is None:
            raise UsageError(f"states[{place}] is of a process alone, and {len(states)} are given")
        if host.index in places:
            raise UsageError(
                f"states[{places[host.index]}] and states[{place}] are both of host "
                f"{host.index} of {host.count}; give one of each"
            )
        places[host.index] = place
    count = 1 if hosts[0] is None else hosts[0].count
    if missing := [str(index) for index in range(count) if index not in places]:
        more = ", .." if len(missing) > _MOST_NAMED else ""
        raise UsageError(
            f"states of {len(states)} of {count} hosts: {', '.join(missing[:_MOST_NAMED])}{more} "
            "missing; what a host has left is known from its own state alone"
        )
    return [records[places[index]] for index in range(count)]


def stretch_of(records: Sequence[PositionRecord]) -> Stretch:
    """Return what the hosts of a run have handed out since it was last shared."""
    settings = records[0].settings
    return Stretch(
        consumed=tuple(record.consumed for record in records),
        batch=settings.batch,
        host_by=settings.host_by,
        alone=settings.host is None,
    )


def _differing(first: PositionRecord, record: PositionRecord) -> list[str]:
    """Return what is not as in the first of several states, besides host and dataset."""
    found = []
    if record.spec != first.spec:
        found.append(f"spec is {record.spec}, not {first.spec}")
    for key, value in vars(first.settings).items():
        if key != "host" and getattr(record.settings, key) != value:
            found.append(f"{key} is {getattr(record.settings, key)}, not {value}")
    counts = [1 if r.settings.host is None else r.settings.host.count for r in (first, record)]
    if counts[0] != counts[1]:
        found.append(f"it has {counts[1]} hosts, not {counts[0]}")
    if record.stretches != first.stretches:
        found.append("the run was shared anew at another place before")
    return found
