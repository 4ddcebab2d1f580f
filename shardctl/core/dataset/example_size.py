"""What one decoded example takes in memory."""

from __future__ import annotations

from dataclasses import dataclass

from shardctl.core.arguments.checked import keep_fields


@dataclass(frozen=True, kw_only=True)
class ExampleSize:
    """The bytes of a decoded example, from the shapes and dtypes of its features.

    num_bytes: of the features of fixed shape. num_tensors: of all features; each adds to what a
    shuffle buffer takes. unknown: the features, such as texts and images of any size, whose bytes
    differ from example to example; then `num_bytes` is the least that an example takes.
    """

    num_bytes: int
    num_tensors: int
    unknown: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        keep_fields(self)
