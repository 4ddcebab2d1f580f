"""The ways in which people read a dataset, a row each, and the settings in force in each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from shardctl.core.loaders.hugging_face.eras import era_of, is_read
from shardctl.core.loaders.loader import LOADERS
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.settings.table import SETTING_BY_FIELD

Access = Literal["in a row", "by index"]
Continued = Literal["exactly", "not by itself", "loses examples"]

DEFAULT_BATCH = 256
_BUFFERS = (1_000, 10_000)  # of tf.data, as tutorials and the guides of TFDS have them
_OTHER_BUFFER = 1_000  # the default of `IterableDataset.shuffle`
_SEED, _BUFFER_SEED = 1, 2
# Of Hugging Face's streams alone.
_OF_STREAMS = ("input_shards", "arrow", "before_shuffle")
# What the rows say themselves, or what would make one row another question than the next.
_OF_THE_ROWS = frozenset(
    {"buffer", "buffer_seed", "epochs", "stages", "loader", "loader_version", "repeat_files"}
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
    return (
        *_of_tfds(settings),
        *_of_hugging_face(settings, file_format),
        *_of_grain(settings),
        *_of_torch(settings),
    )


def _for(settings: ReadSettings, loader: str, **own: Any) -> ReadSettings:
    """Return the settings that a loader takes, with those of the row in their place."""
    same = settings.loader == loader
    kept = {
        field.name: getattr(settings, field.name)
        for field in fields(settings)
        if field.name not in _OF_THE_ROWS and SETTING_BY_FIELD[field.name].is_read_by(loader)
    }
    kept["batch"] = DEFAULT_BATCH if settings.batch is None else settings.batch
    if same:
        kept["loader_version"] = settings.loader_version
    if same and settings.loader == "tfds":
        kept["host_by"] = settings.host_by
    return ReadSettings(**{**kept, "loader": loader, **own})


def _seed(settings: ReadSettings) -> int:
    return _SEED if settings.shuffle_seed is None else settings.shuffle_seed


def _buffer_seed(settings: ReadSettings) -> int:
    return _BUFFER_SEED if settings.buffer_seed is None else settings.buffer_seed


def _of_tfds(settings: ReadSettings) -> Iterator[Way]:
    files = settings.loader != "tfds" or settings.shuffle_files is not False
    for buffer in _BUFFERS if settings.buffer is None else (settings.buffer,):
        own: dict[str, Any] = {"buffer": buffer, "buffer_seed": _buffer_seed(settings)}
        if files:
            own["shuffle_seed"] = _seed(settings)
        found = _for(settings, "tfds", **own)
        if found.deterministic is False:
            found = replace(found, deterministic=True)
        size = "whole epoch" if buffer < 0 else f"{buffer:,}"
        yield Way(
            reader=f"TFDS: {'files, ' if files else ''}shuffle({size})",
            settings=found,
            access="in a row",
            continued="exactly",
            by="Position",
            held=buffer,
        )


def _of_hugging_face(settings: ReadSettings, file_format: str) -> Iterator[Way]:
    buffer = _OTHER_BUFFER if settings.buffer is None else settings.buffer
    seed = _seed(settings)
    for version in _streaming_versions(settings):
        own: dict[str, Any] = {"streaming": True, "shuffle_seed": seed, "buffer": buffer}
        if settings.arrow is None and not is_read(file_format):
            own["arrow"] = True
        if era_of(version).interleave == "never":
            own["input_shards"] = None
        yield Way(
            reader=f"HF {version}: shuffle({buffer:,})",
            settings=_for(settings, "hf", **own, loader_version=version),
            access="in a row",
            continued="loses examples",
            by="state_dict",
            held=buffer,
        )
    yield Way(
        reader="HF: Dataset.shuffle",
        settings=_for(settings, "hf", shuffle_seed=seed, **dict.fromkeys(_OF_STREAMS)),
        access="by index",
        continued="not by itself",
    )


def _streaming_versions(settings: ReadSettings) -> tuple[str, ...]:
    """Return the version that is named, else the newest before and after the order changed."""
    if settings.loader == "hf" and settings.loader_version is not None:
        return (settings.loader_version,)
    proven = LOADERS["hf"].proven
    old = [version for version in proven if version.startswith("4.")]
    return old[-1], proven[-1]


def _of_grain(settings: ReadSettings) -> Iterator[Way]:
    window = _OTHER_BUFFER if settings.buffer is None else settings.buffer
    yield Way(
        reader="Grain: IndexSampler",
        settings=_for(settings, "grain", shuffle_seed=_seed(settings)),
        access="by index",
        continued="exactly",
        by="get_state",
    )
    own: dict[str, Any] = {"buffer": window, "buffer_seed": _buffer_seed(settings)}
    yield Way(
        reader=f"Grain: window shuffle({window:,})",
        settings=_for(settings, "grain", **own, host_by="examples", drop_shard_remainder=False),
        access="by index",
        continued="exactly",
        by="get_state",
        held=window,
    )


def _of_torch(settings: ReadSettings) -> Iterator[Way]:
    seed, host = _seed(settings), settings.host
    drawn: dict[str, Any] = {"shuffle": True, "host": None}
    generator = settings.global_seed
    drawn["global_seed"] = seed if generator is None else generator
    drawn["drop_shard_remainder"] = False
    yield Way(
        reader="torch: DistributedSampler",
        settings=_for(settings, "torch", shuffle_seed=seed, host=host or "0/1"),
        access="by index",
        continued="not by itself",
    )
    yield Way(
        reader="torch: DataLoader(shuffle)",
        settings=_for(settings, "torch", **drawn),
        access="by index",
        continued="not by itself",
        shares=False,
    )
    yield Way(
        reader="StatefulDataLoader",
        settings=_for(settings, "stateful", **drawn)
        if host is None
        else _for(settings, "stateful", shuffle_seed=seed),
        access="by index",
        continued="exactly",
        by="state_dict",
    )
    yield Way(
        reader="Accelerate",
        settings=_for(settings, "accelerate", shuffle_seed=seed),
        access="by index",
        continued="exactly",
        by="skip_first_batches",
    )
