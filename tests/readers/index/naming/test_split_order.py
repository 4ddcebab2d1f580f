from __future__ import annotations

from shardctl.readers.index.naming.shapes import shapes_of
from shardctl.readers.index.naming.shard_sets import Folders, SplitSets, sets_of
from shardctl.readers.index.naming.splits_by_names import SplitOrder
from tests.named_files import ROOT, files_named


def order(*names: str) -> tuple[list[str], list[str]]:
    folders = Folders(files=files_named(names), root=ROOT)
    sets = tuple(sets_of(shapes_of(folders.files) or []))
    found = SplitOrder(folders, SplitSets(name="s", sets=sets))
    return [path.removeprefix(f"{ROOT}/") for path in found.files.paths()], found.notes


def test_sets_follow_each_other_by_their_names_in_which_10_comes_after_9() -> None:
    names = [f"d{folder}/{at}.tar" for folder in (10, 9) for at in (10, 9)]
    found, notes = order(*names)
    assert found == ["d9/9.tar", "d9/10.tar", "d10/9.tar", "d10/10.tar"]
    assert any("4 kinds" in note or "2 kinds" in note for note in notes)
    assert any("sort names as text" in note for note in notes)


def test_an_order_that_is_also_that_of_names_needs_no_note() -> None:
    assert order("a-1.tar", "a-0.tar") == (["a-0.tar", "a-1.tar"], [])
    assert order("b", "a") == (["a", "b"], [])
