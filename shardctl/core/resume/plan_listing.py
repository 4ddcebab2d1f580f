"""What a plan file lists: which stretch of which file is read, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shardctl.core.dataset.identity import DatasetHead
from shardctl.core.instructions.reads import Reads


@dataclass(frozen=True, kw_only=True)
class ListedPlan:
    """One plan of a file: `title` is its spec and its host, as far as it has them."""

    title: str
    reads: Reads


@dataclass(frozen=True, kw_only=True)
class PlanListing:
    """The plans in a file of kind `plan` or `resume`.

    `dataset` is what the file's head says; `pipeline` and `state` hold what else a
    resumed reading depends on, by name.
    """

    kind: str
    dataset: DatasetHead
    plans: tuple[ListedPlan, ...]
    pipeline: Mapping[str, object] = field(default_factory=dict)
    state: Mapping[str, object] = field(default_factory=dict)
