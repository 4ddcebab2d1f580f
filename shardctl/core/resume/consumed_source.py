"""How much of each source a pipeline with stages has handed out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsumedSource:
    """A reader of the stages, in the order of the script, and how many examples came from it.

    data, spec: as in `read(spec, data=..)`; None is that of the plan.
    """

    data: str | None
    spec: str | None
    consumed: int

    def __str__(self) -> str:
        read = self.spec or "read"
        return read if self.data is None else f"{read} of {self.data}"
