"""Examples of a data source with the types that tf.data gives them."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np

from shardctl.live.key_order import says_types, typed, with_types

TYPES = {"f": np.float32, "u": np.uint8, "s": np.int32, "t": np.object_}


class Source(list[Any]):
    """A source that says of which types its features are, as TFDS's do."""

    def __init__(self, *examples: Any) -> None:
        super().__init__(examples)
        info = {name: SimpleNamespace(np_dtype=kind) for name, kind in TYPES.items()}
        self.dataset_info = SimpleNamespace(features=SimpleNamespace(get_tensor_info=lambda: info))

    def __reduce__(self) -> Any:
        return Source, tuple(self)

    def __repr__(self) -> str:
        return "the source"


def test_numbers_and_lists_get_the_types_of_their_features() -> None:
    source = Source({"f": 0.1, "u": 3, "s": [1, 2], "t": b"a"}, {"f": 1, "u": 0, "s": [], "t": ""})
    found = pickle.loads(pickle.dumps(with_types(source)))
    assert (len(found), len(list(found)), repr(found)) == (2, 2, "the source")
    assert found[0]["f"] == np.float32(0.1)
    assert [type(found[i][name]) for i in (0, 1) for name in "fu"] == [np.float32, np.uint8] * 2
    assert [found[i]["s"].dtype for i in (0, 1)] == [np.dtype("int32")] * 2
    assert [found[i]["t"] for i in (0, 1)] == [b"a", ""]


def test_what_has_a_type_or_none_stays() -> None:
    array, rows = np.arange(3), [[1], [1, 2]]
    assert typed(array, "int64") is array
    assert typed(rows, "int64") is rows
    assert typed({"x": 5}, {}) == {"x": 5}
    assert typed({"x": {"y": 5}}, {"x": {"y": "uint8"}}) == {"x": {"y": np.uint8(5)}}


def test_a_source_that_knows_no_types_is_itself() -> None:
    plain = [1, 2]
    assert not says_types(plain)
    assert with_types(plain) is plain
