"""Metadata that TFDS reads record files by: what was written, or how files have to be renamed."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from shardctl.core.columns import RecordStream, picked, records_of, stream_of
from shardctl.core.text import counted
from shardctl.core.tfds_rules import DEFAULT_TEMPLATE
from shardctl.files.documents import Document
from shardctl.files.head import kind_head
from shardctl.files.stores.stores import is_remote
from shardctl.readers.index.tfds_metadata import Rename, TfdsMetadata
from shardctl.rendering.text.tables import Screen, cells_of, columns, paragraph, table

_MAX_RENAMES = 20  # that a terminal shows
_COLUMNS = columns("<name=split num_examples=examples num_shards=shards *template")
# What moves an object of a store, by its scheme.
_MOVES = {"": "mv -n --", "gs": "gcloud storage mv --no-clobber", "s3": "aws s3 mv"}


def tfds_metadata_table(metadata: TfdsMetadata, screen: Screen) -> Iterator[str]:
    """Yield what TFDS reads now, or, as a script for a shell, the renames that it needs first."""
    if not metadata.readable:
        yield from _script(metadata, screen)
        return
    title = f"{metadata.name}:{metadata.version}: {metadata.file_format}, {metadata.folder}"
    yield paragraph(title, screen, style="bold")
    yield table(_COLUMNS, cells_of(_COLUMNS, metadata.splits), screen)
    yield paragraph(f"wrote {', '.join(metadata.written)}", screen)
    yield paragraph(f"next: tfds.builder_from_directory({metadata.folder!r})", screen)


def _script(metadata: TfdsMetadata, screen: Screen) -> Iterator[str]:
    """Yield lines of a shell; what is for people is a comment in it."""
    number = len(metadata.renames)
    yield f"# TFDS has no template for {counted(number, 'name')}: nothing was written.\n"
    yield f"# As {DEFAULT_TEMPLATE} they are:\n"
    if not is_remote(metadata.folder):
        yield f"cd {shlex.quote(os.path.abspath(metadata.folder))} || exit\n"
    moves = list(_moves(metadata))
    shown = moves[:_MAX_RENAMES] if screen.abridged else moves
    yield from (f"{line}\n" for line in shown)
    if len(shown) < len(moves):
        yield f"# and {len(moves) - len(shown):,} more: all are in a pipe or a file, | sh\n"


def _moves(metadata: TfdsMetadata) -> Iterator[str]:
    scheme, remote, _ = metadata.folder.partition("://")
    move = _MOVES.get(scheme if remote else "")
    base = f"{metadata.folder.rstrip('/')}/" if remote else ""
    for old, new in _in_order(metadata.renames):
        words = shlex.join([base + old, base + new])
        yield f"# {words}" if move is None else f"{move} {words}"


def _in_order(renames: Sequence[Rename]) -> Iterator[tuple[str, str]]:
    """Yield renames that overwrite nothing: in two steps where an old name is a new one too."""
    taken = {each.old for each in renames}
    if not any(each.new in taken for each in renames):
        yield from ((each.old, each.new) for each in renames)
        return
    yield from ((each.old, f"{each.new}.renamed") for each in renames)
    yield from ((f"{each.new}.renamed", each.new) for each in renames)


def tfds_metadata_document(metadata: TfdsMetadata) -> Document:
    """Return the document."""
    return {
        **kind_head("tfds_metadata"),
        **picked(metadata, "name version folder file_format"),
        "splits": list(map(asdict, metadata.splits)),
        "written": list(metadata.written),
        "renames": records_of("split from=old to=new", metadata.renames),
    }


def tfds_metadata_rows(metadata: TfdsMetadata) -> RecordStream:
    """Return a row for each split, then one for each file to rename."""
    splits = ((*asdict(split).values(), None, None) for split in metadata.splits)
    renames = ((each.split, None, None, None, each.old, each.new) for each in metadata.renames)
    fields = "split num_examples num_shards template old_name new_name"
    return stream_of(fields, [*splits, *renames])
