"""Which examples, from which files, in which order, on which host: planned from metadata alone.

What a command prints, a function of the same name returns as a frozen value. Importing the package
loads neither TensorFlow nor numpy; each name loads what it needs when it is first used.

>>> imagenet = read_dataset("imagenet2012")
>>> plan(imagenet, "train[44%:45%]").plans[0].num_examples
12812
>>> simulate(imagenet, "train", ReadSettings(cycle=3, block=2), take=8).ids().tolist()
[0, 1, 1251, 1252, 2502, 2503, 2, 3]
"""

from __future__ import annotations

import os

from shardctl.errors import ShardctlError

TYPE_CHECKING = False  # `typing` takes longer to load than all else here
if TYPE_CHECKING:
    from typing import Any

    from shardctl.core.dataset.dataset import Dataset, Split
    from shardctl.core.hosts.host import Host
    from shardctl.core.instructions.file_instruction import FileInstruction
    from shardctl.core.order.order import Order
    from shardctl.core.settings.read_settings import ReadSettings
    from shardctl.planning.diff.diff import diff
    from shardctl.planning.diff.pinned_order import PinnedOrder
    from shardctl.planning.eval.eval import evaluate
    from shardctl.planning.hosts.hosts import hosts
    from shardctl.planning.layout import layout
    from shardctl.planning.lint.context import Usage
    from shardctl.planning.lint.lint import lint
    from shardctl.planning.locate import Query, locate
    from shardctl.planning.order import plan_order
    from shardctl.planning.plan import plan
    from shardctl.planning.quality.quality import quality
    from shardctl.planning.resume.hosts import resume_on_hosts
    from shardctl.planning.resume.proof import prove
    from shardctl.planning.resume.resume import resume
    from shardctl.planning.resume.seen import resume_unseen
    from shardctl.planning.simulate import simulate
    from shardctl.planning.snapshot import snapshot
    from shardctl.readers.records.verify_files import verify_files

__version__ = "0.1.0"

__all__ = [
    "Dataset",
    "FileInstruction",
    "Host",
    "Order",
    "PinnedOrder",
    "Query",
    "ReadSettings",
    "ShardctlError",
    "Split",
    "Usage",
    "diff",
    "evaluate",
    "hosts",
    "layout",
    "lint",
    "locate",
    "plan",
    "plan_order",
    "prove",
    "quality",
    "read_dataset",
    "resume",
    "resume_on_hosts",
    "resume_unseen",
    "simulate",
    "snapshot",
    "verify_files",
]

_HOMES = {
    "Dataset": "core.dataset.dataset",
    "FileInstruction": "core.instructions.file_instruction",
    "Host": "core.hosts.host",
    "Order": "core.order.order",
    "Query": "planning.locate",
    "PinnedOrder": "planning.diff.pinned_order",
    "ReadSettings": "core.settings.read_settings",
    "Split": "core.dataset.dataset",
    "Usage": "planning.lint.context",
    "diff": "planning.diff.diff",
    "evaluate": "planning.eval.eval",
    "hosts": "planning.hosts.hosts",
    "layout": "planning.layout",
    "lint": "planning.lint.lint",
    "locate": "planning.locate",
    "plan": "planning.plan",
    "plan_order": "planning.order",
    "prove": "planning.resume.proof",
    "quality": "planning.quality.quality",
    "resume": "planning.resume.resume",
    "resume_on_hosts": "planning.resume.hosts",
    "resume_unseen": "planning.resume.seen",
    "simulate": "planning.simulate",
    "snapshot": "planning.snapshot",
    "verify_files": "readers.records.verify_files",
}


def read_dataset(
    *refs: str | os.PathLike[str], data_dir: str | os.PathLike[str] | None = None
) -> Dataset:
    """Return the dataset that a reference stands for, or several references as one dataset.

    A reference is a folder with dataset_info.json, `name[/config][:version]`, looked up under
    `data_dir`, `TFDS_DATA_DIR` and `~/tensorflow_datasets` and then in the built-in catalog, or a
    layout.yaml.

    Raises:
        ShardctlError: a reference that leads nowhere, or to something broken.
    """
    from shardctl.files.file_text import working_folder
    from shardctl.readers.reference import read_dataset as read

    return read(refs, data_dir=data_dir, env=os.environ, cwd=working_folder())


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'shardctl' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"shardctl.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
