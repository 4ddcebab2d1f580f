"""What a decoded example takes, as a dataset knows it."""

from __future__ import annotations

from dataclasses import replace

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.element_size import ExampleSize

_SPLITS = (Split(name="train", shard_lengths=(3,)),)
_SIZE = ExampleSize(num_bytes=72, num_tensors=2)


def test_the_size_is_asked_for_once_and_only_when_needed() -> None:
    asked = []

    def features() -> ExampleSize:
        asked.append(1)
        return _SIZE

    dataset = Dataset(name="d", splits=_SPLITS, features=features)
    assert not asked
    assert dataset.example_size == _SIZE
    assert dataset.example_size == _SIZE
    assert len(asked) == 1


def test_it_is_no_part_of_what_tells_datasets_apart() -> None:
    plain = Dataset(name="d", splits=_SPLITS)
    known = replace(plain, features=lambda: _SIZE)
    assert plain.example_size is None
    assert (plain == known, hash(plain) == hash(known)) == (True, True)
    assert plain.identity == known.identity
    assert repr(plain) == repr(known)
