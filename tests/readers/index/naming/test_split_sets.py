from __future__ import annotations

from shardctl.readers.index.naming.shapes import shapes_of
from shardctl.readers.index.naming.shard_sets import Folders, SplitSets, sets_of
from tests.named_files import ROOT, files_named


def test_sets_are_said_by_their_globs() -> None:
    names = ["d/a[1]-0.tar", "d/a[1]-1.tar", "b.tfrecord"]
    folders = Folders(files=files_named(names), root=ROOT)
    sets = sets_of(shapes_of(folders.files) or [])
    assert [folders.glob(found) for found in sets] == ["d/a[[]1]-*.tar", "b.tfrecord"]
    assert [folders.below(found) for found in sets] == ["d/", ""]
    assert folders.said(sets) == "d/a[[]1]-*.tar (2 files), b.tfrecord (1 file)"
    assert folders.way_out(sets).endswith(
        "--split NAME='d/a[[]1]-*.tar' --split OTHER='b.tfrecord'"
    )
    assert [dict(folders.file_formats(found)) for found in sets] == [
        {"webdataset": "d/a[[]1]-*.tar"},
        {"tfrecord": "b.tfrecord"},
    ]
    assert SplitSets(name="train", sets=tuple(sets)).dataset is None
