from __future__ import annotations

from shardctl.readers.index.answer import ArrangedSplit, Arrangement


def test_an_arrangement_says_nothing_that_it_was_not_told() -> None:
    split = ArrangedSplit(name="train", files=())
    arranged = Arrangement(root="/d", splits=(split,))
    assert split.template is None
    assert (arranged.name, arranged.version, arranged.file_format) == (None, None, None)
    assert (arranged.problems, arranged.sidecars, arranged.ignored, arranged.notes) == ((),) * 4
