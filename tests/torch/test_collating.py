"""Tensors with the types of features; `test_loader.py` has them beside tf.data's."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from shardctl.errors import UsageError
from shardctl.torch import collate_as_tf_data
from tests.late_modules import LateModule, needs

torch: Any = LateModule("torch")
pytestmark = needs("torch", reason="PyTorch is not installed")


class Source(list[Any]):
    """A source that says of which types its features are, as TFDS's do."""

    def __init__(self, types: dict[str, Any], examples: list[Any]) -> None:
        super().__init__(examples)
        info = {name: SimpleNamespace(np_dtype=kind) for name, kind in types.items()}
        features = SimpleNamespace(get_tensor_info=lambda: info)
        self.dataset_info = SimpleNamespace(features=features)


def test_python_numbers_get_the_types_of_their_features() -> None:
    types = {"f": np.float32, "u": np.uint8, "s": np.int32, "t": np.object_}
    examples = [{"f": 0.1, "u": 3, "s": [i, 2], "t": [b"a", b"bc"]} for i in range(2)]
    collate = pickle.loads(pickle.dumps(collate_as_tf_data(Source(types, examples))))
    batch = collate(examples)
    assert batch["f"].dtype == torch.float32
    assert batch["u"].dtype == torch.uint8
    assert (batch["s"].dtype, batch["s"].tolist()) == (torch.int32, [[0, 2], [1, 2]])
    assert batch["t"] == [[b"a", b"bc"]] * 2


def test_sequences_of_several_lengths_make_no_batch() -> None:
    examples = [{"s": [1]}, {"s": [1, 2]}]
    with pytest.raises(ValueError, match="same shape"):
        collate_as_tf_data(Source({"s": np.int32}, examples))(examples)


def test_a_source_without_features_is_refused() -> None:
    with pytest.raises(UsageError, match=r"source: what tfds\.data_source returned"):
        collate_as_tf_data([1, 2])
