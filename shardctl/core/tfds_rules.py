"""Which version of TensorFlow's and TFDS's rules the orders follow: the one place that says so."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleSet:
    """A set of rules, and the versions of TensorFlow and TFDS that it was checked against.

    `version` grows by one whenever an order changes that shardctl gave before.
    """

    version: int
    tensorflow: str
    tensorflow_datasets: str

    def __str__(self) -> str:
        return f"{self.version} (TensorFlow {self.tensorflow}, TFDS {self.tensorflow_datasets})"


RULES = RuleSet(version=1, tensorflow="2.21", tensorflow_datasets="4.9.10")
