"""ElementKeys: what is put in comes out again, for readers of any size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.errors import UsageError
from shardctl.order.reader_node import ElementKeys
from tests.cases import check_cases


def test_a_ticket_holds_the_reader_the_reading_and_the_position() -> None:
    def check(case: tuple[int, int, int, int]) -> None:
        size, num_readers, reading, place = case
        several = [
            ElementKeys(size=size, reader=reader, num_readers=num_readers)
            for reader in range(num_readers)
        ]
        positions = np.array([place % size, size - 1])
        for reader, tickets in enumerate(several):
            made = positions + tickets.first(reading)
            assert tickets.position(made).tolist() == positions.tolist()
            assert tickets.reading(made).tolist() == [reading] * 2
            # Any reader's tickets say whose a ticket is.
            assert several[0].readers(made).tolist() == [reader] * 2

    check_cases(
        st.tuples(st.integers(1, 1 << 40), st.integers(1, 9), st.integers(0, 9000), st.integers(0)),
        check,
        200,
    )


def test_more_readings_than_a_ticket_counts_are_refused() -> None:
    tickets = ElementKeys(size=1 << 50, reader=3, num_readers=4)
    assert tickets.first(2**11 - 1) > 0
    with pytest.raises(UsageError, match="2,048 times and more"):
        tickets.first(2**11)
