"""Slow and obvious answers, which share no formula with the code they check."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence


def interleave_by_hand(lengths: Sequence[int], cycle: int, block: int) -> list[tuple[int, int]]:
    """Return the (shard, offset) that an interleave yields, by playing the machine.

    >>> interleave_by_hand([2, 1], 2, 1)
    [(0, 0), (1, 0), (0, 1)]
    """
    waiting = deque(
        deque((shard, offset) for offset in range(length)) for shard, length in enumerate(lengths)
    )
    slots: list[deque[tuple[int, int]] | None] = [None] * cycle
    order = []
    turn = 0
    while waiting or any(contents is not None for contents in slots):
        if slots[turn] is None and waiting:
            slots[turn] = waiting.popleft()
        contents = slots[turn]
        if contents is not None:
            for _ in range(block):
                if not contents:
                    slots[turn] = None
                    break
                order.append(contents.popleft())
        turn = (turn + 1) % cycle
    return order
