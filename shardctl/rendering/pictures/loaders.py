"""All ways to read a dataset as bars: from how many shards a batch of each comes."""

from __future__ import annotations

from shardctl.core.text import counted
from shardctl.planning.quality.loaders.compare import LoaderComparison, WayToRead
from shardctl.rendering.pictures.axes import Drawn
from shardctl.rendering.pictures.bars import Bar, Part, bars, sentences
from shardctl.rendering.pictures.picture import Numbers, Picture
from shardctl.rendering.quality.quality import ends

_WIDEST_NAMES = 0.5  # of the width: what tells readers apart is at the end of their names
_NOBODY = "No loader reads it so; the table says why."


def loaders_pictures(comparison: LoaderComparison) -> tuple[Picture, ...]:
    """Return from how many shards a batch of each way to read comes, beside a uniform permutation.

    How each ends, and what is not read so, is in the table of its numbers.
    """
    read = [way for way in comparison.ways if way.mixing is not None]
    drawn = _bars(comparison, read) if read else sentences([_NOBODY], top=0)
    uniform = comparison.uniform_shards
    said = [
        f"{way.reader}: {way.mixing.shards:.1f} ({way.mixing.verdict})"
        for way in read
        if way.mixing is not None
    ]
    shards = counted(comparison.num_shards, "shard")
    alternative = (
        f"Of {shards} a batch of {comparison.batch:,} comes from this many. {'; '.join(said)}; "
        f"a uniform permutation: {uniform:.1f}."
        if read
        else _NOBODY
    )
    return (
        Picture(
            name="loaders",
            title=f"From how many of {shards} a batch comes",
            caption="The longer a bar, the better a batch is mixed; the dashed line is a uniform "
            "permutation of all.",
            alternative=alternative,
            height=drawn.bottom + 4,
            marks=drawn.marks,
            numbers=Numbers(
                headings=("reader", "shards in a batch", "at the end", "score", "verdict", "ends"),
                rows=[_row(way) for way in comparison.ways],
            ),
            note=_note(comparison, read),
        ),
    )


def _bars(comparison: LoaderComparison, read: list[WayToRead]) -> Drawn:
    return bars(
        [
            Bar(
                name=way.reader,
                parts=(Part(way.mixing.shards),),
                text=f"{way.mixing.shards:.1f}",
                title=f"{way.reader}: {way.mixing.shards:.1f} shards in a batch, "
                f"{way.mixing.verdict}",
            )
            for way in read
            if way.mixing is not None
        ],
        top=4,
        expected=comparison.uniform_shards,
        most_names=_WIDEST_NAMES,
    )


def _row(way: WayToRead) -> tuple[object, ...]:
    if way.mixing is None or way.ending is None:
        reason = "" if way.refused is None else way.refused
        return (way.reader, "", "", "", "not read so", reason)
    mixing = way.mixing
    return (
        way.reader,
        f"{mixing.shards:.1f}",
        f"{mixing.at_end:.1f}",
        f"{mixing.score:.3f}",
        mixing.verdict,
        ends(way.ending),
    )


def _note(comparison: LoaderComparison, read: list[WayToRead]) -> str | None:
    said = []
    left_out = len(comparison.ways) - len(read)
    if left_out:
        said.append(f"{counted(left_out, 'way')} of {len(comparison.ways)} cannot read it.")
    if comparison.num_hosts > 1:
        said += [f"Measured on host {way.settings.host}." for way in read[:1]]
    errors = [
        way.mixing.shards_error
        for way in read
        if way.mixing is not None and way.mixing.shards_error
    ]
    if errors:
        said.append(f"Measured in samples, sampling error at most {max(errors):.2f}.")
    return " ".join(said) or None
