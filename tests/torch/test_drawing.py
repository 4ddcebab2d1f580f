"""Which loader draws, seen from its calls: the real ones of PyTorch and torchdata."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from shardctl import ReadSettings
from shardctl.errors import UsageError
from shardctl.torch.loader import Drawing, asked_by_torchdata, check_drawing, drawing


class Asks:
    """Yields numbers, and keeps how they are drawn and who asks for its state."""

    found: Drawing
    by_torchdata: bool

    def __len__(self) -> int:
        return 8

    def __iter__(self) -> Iterator[int]:
        self.found = drawing()
        yield from range(8)

    def state_dict(self) -> dict[str, int]:
        self.by_torchdata = asked_by_torchdata()
        return {}

    def load_state_dict(self, state: object) -> None:
        raise AssertionError


def test_outside_of_a_loader_nothing_is_known() -> None:
    asks = Asks()
    assert list(asks) == [*range(8)]
    assert asks.found == Drawing()
    asks.state_dict()
    assert not asks.by_torchdata


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("batch", [None, 3, 4])
def test_loaders_are_known(workers: int, batch: int | None) -> None:
    torch_data = pytest.importorskip("torch.utils.data", reason="PyTorch is not installed")
    stateful = pytest.importorskip(
        "torchdata.stateful_dataloader", reason="torchdata is not installed"
    )
    for kind in (torch_data.DataLoader, stateful.StatefulDataLoader):
        for drop_last in (False, batch is not None):
            asks, given = Asks(), {"batch_size": batch, "drop_last": drop_last}
            loader = kind([*range(8)], sampler=asks, num_workers=workers, **given)
            next(iter(loader))
            assert asks.found == Drawing(workers=workers, batch=batch, drop_last=drop_last)
            asks.state_dict()
            assert not asks.by_torchdata
            if kind is stateful.StatefulDataLoader:
                loader.state_dict()
                assert asks.by_torchdata or workers  # with workers when each batch is drawn


@pytest.mark.parametrize(
    ("found", "settings", "words"),
    [
        (Drawing(), {"batch": 8}, None),
        (Drawing(batch=8), {"batch": 8}, None),
        (Drawing(batch=1), {}, None),
        (Drawing(batch=8), {}, "batches of 8, and the settings of 1"),
        (Drawing(batch=8), {"batch": 4}, "batches of 8, and the settings of 4"),
        (Drawing(batch=5, drop_last=True), {"batch": 5}, None),
        (Drawing(batch=8, drop_last=True), {"batch": 8}, "--drop-remainder"),
    ],
)
def test_other_batches_are_refused(
    found: Drawing, settings: dict[str, Any], words: str | None
) -> None:
    if words is None:
        check_drawing(found, ReadSettings(**settings), 25)
        return
    with pytest.raises(UsageError, match=words):
        check_drawing(found, ReadSettings(**settings), 25)
