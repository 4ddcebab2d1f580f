"""Quantities as people read them."""

import numpy as np
import pytest

from shardctl.base.text import counted
from shardctl.draw.quantities import (
    bytes_between,
    counts_between,
    first_few,
    human_bytes,
    in_ranges,
    numbered,
    percent_over,
    subject,
)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (human_bytes(0), "0 B"),
        (human_bytes(1023), "1023 B"),
        (human_bytes(1024), "1.0 KiB"),
        (human_bytes(1536), "1.5 KiB"),
        (human_bytes(1024**2 - 1), "1.0 MiB"),
        (human_bytes(1023 * 1024), "1023.0 KiB"),
        (human_bytes(146_999_114_192), "136.9 GiB"),
        (human_bytes(2**63 - 1), "8.0 EiB"),
        (human_bytes(2**80), "1048576.0 EiB"),
        (counted(1, "shard"), "1 shard"),
        (counted(5000, "shard"), "5,000 shards"),
        (bytes_between(5, 5), "5 B"),
        (bytes_between(5, 7), "5–7 B"),
        (bytes_between(1000, 2048), "1000 B–2.0 KiB"),
        (bytes_between(2048, 2049), "2.0 KiB"),
        (bytes_between(2048, 4096), "2.0–4.0 KiB"),
        (counts_between(1000, 1000), "1,000"),
        (counts_between(0, 2000), "0–2,000"),
        (numbered(1000, 1000), "1000"),
        (numbered(0, 2000), "0–2000"),
        (in_ranges(np.array([4])), "4"),
        (in_ranges(np.array([4, 5, 6])), "4–6"),
        (in_ranges(np.array([1, 3, 4, 9])), "1, 3–4, 9"),
        (in_ranges(np.array([1, 3, 5, 7])), "1, 3, 5, …"),
        (in_ranges(np.array([1, 2, 4, 6, 7, 9, 11])), "1–2, 4, 6–7, …"),
        (subject("host", np.array([3]), "has", "have"), "host 3 has"),
        (subject("host", np.arange(2000), "has", "have"), "2,000 hosts (0–1999) have"),
        (percent_over(0), "+0.0%"),
        (first_few(["0", "1", "2"], 2), ["0", "1", "2"]),  # a line for one is no shorter
        (first_few(["0", "1", "2", "3"], 2), ["0", "1", "and 2 more"]),
        (first_few([], 2), []),
    ],
)
def test_quantities_are_said_so(said: object, text: object) -> None:
    assert said == text
