"""What whole numbers can be."""

from __future__ import annotations

INT64_MAX = 2**63 - 1
