"""The ways in which people read a dataset, a row each, and the settings in force in each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from shardctl.loaders.loader import LOADERS, READERS, library_of
from shardctl.settings.read_settings import ReadSettings
from shardctl.settings.table import OF_EPOCHS, SETTING_BY_FIELD

Access = Literal["in a row", "by index"]
Continued = Literal["exactly", "not by itself", "loses examples"]

DEFAULT_BATCH = 256
_BUFFERS = (1_000, 10_000)  # of tf.data, as tutorials and the guides of TFDS have them
OTHER_BUFFER = 1_000  # the default of `IterableDataset.shuffle`
_SEED, _BUFFER_SEED = 1, 2
# What the rows say themselves, or what would make one row another question than the next.
_OF_THE_ROWS = frozenset(
    {*OF_EPOCHS, "buffer", "buffer_seed", "loader", "loader_version"}
    | {"streaming", "shuffle", "shuffle_files", "shuffle_seed", "global_seed", "host_by"}
)


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way to read: who reads, with which settings, and what can be said before it is measured.

    reader: who, in the words of the library. access: whether files are read in a row or by index.
    continued: what the library's own state is worth where a job stopped; by: what does it; of
        TFDS's reader that is our Position.
    held: examples that a shuffle buffer holds, which such a state may lose.
    shares: False where it knows no hosts, so that each of several reads everything.
    """

    reader: str
    settings: ReadSettings
    access: Access
    continued: Continued
    by: str | None = None
    held: int | None = None
    shares: bool = True


def ways_to_read(settings: ReadSettings, file_format: str = "parquet") -> tuple[Way, ...]:
    """Return the ways that are compared; a setting is left out where a loader does not take it.

    The buffer that is given stands for the usual ones, the seed for the stand-ins; Hugging Face
    reads tables in place of a format that it has no reader of.

    >>> [way.reader for way in ways_to_read(ReadSettings())][:3]
    ['TFDS: files, shuffle(1,000)', 'TFDS: files, shuffle(10,000)', 'HF 4.8.5: \
shuffle(1,000)']
    """
    ways = [*_of_tfds(settings)]
    # Those that stream come first, as TFDS's reader does.
    for loader in sorted(LOADERS.values(), key=lambda loader: "streaming" not in loader.takes):
        seed = {"shuffle_seed": seed_of(settings)} if "shuffle_seed" in loader.takes else {}
        found = [*library_of(loader).ways(settings, file_format)]
        ways += found or [way(settings, loader.name, loader.title, **seed)]
    return tuple(ways)


def way(settings: ReadSettings, loader: str, reader: str, **more: Any) -> Way:
    """Return a way to read with a loader: by index, and not continued, unless `more` says so.

    Fields of a `Way` are taken as such; the others are settings of the row.
    """
    own = {name: more.pop(name) for name in [*more] if name in SETTING_BY_FIELD}
    return Way(
        reader=reader,
        settings=settings_for(settings, loader, **own),
        **{"access": "by index", "continued": "not by itself", **more},
    )


def settings_for(settings: ReadSettings, loader: str, **own: Any) -> ReadSettings:
    """Return the settings that a loader takes, with those of the row in their place."""
    same = settings.reader is READERS[loader]
    kept = {
        name: getattr(settings, name)
        for name in SETTING_BY_FIELD
        if name not in _OF_THE_ROWS and SETTING_BY_FIELD[name].is_read_by(loader)
    }
    kept["batch"] = DEFAULT_BATCH if settings.batch is None else settings.batch
    if same:
        kept["loader_version"] = settings.loader_version
    if same and settings.reader.shares_in_modes:
        kept["host_by"] = settings.host_by
    return ReadSettings(**{**kept, "loader": loader, **own})


def seed_of(settings: ReadSettings) -> int:
    """Return the seed of the files or of the examples, as given or the stand-in."""
    return _SEED if settings.shuffle_seed is None else settings.shuffle_seed


def buffer_seed_of(settings: ReadSettings) -> int:
    """Return the seed of a buffer, as given or the stand-in."""
    return _BUFFER_SEED if settings.buffer_seed is None else settings.buffer_seed


def _of_tfds(settings: ReadSettings) -> Iterator[Way]:
    files = not settings.reader.has_blocks or settings.shuffle_files is not False
    for buffer in _BUFFERS if settings.buffer is None else (settings.buffer,):
        own: dict[str, Any] = {"buffer": buffer, "buffer_seed": buffer_seed_of(settings)}
        if files:
            own["shuffle_seed"] = seed_of(settings)
        if settings.deterministic is False:
            own["deterministic"] = True
        size = "whole epoch" if buffer < 0 else f"{buffer:,}"
        reader = f"TFDS: {'files, ' if files else ''}shuffle({size})"
        own |= {"access": "in a row", "continued": "exactly", "by": "Position", "held": buffer}
        yield way(settings, "tfds", reader, **own)
