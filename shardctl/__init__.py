"""Which examples, from which files, in which order, on which host: planned from metadata alone.

A function for each command, and what a command prints, the function of its name returns. DATASET is
a name as "mnist" or "imagenet2012:5.1.0", the path of a dataset or of a layout.yaml, record files
without metadata as "data/train-*.tfrecord", a list of these, or a Dataset. SPEC is a subsplit as
TFDS writes it, "train" where it is left out. SETTINGS is a ReadSettings or a dict of its values,
and says how the pipeline reads. help(shardctl.plan), or shardctl.plan? in a notebook, tells more
of one function.

>>> import shardctl
>>> shardctl.plan("mnist", "train", hosts=3)
<Plans mnist:3.0.1 train: 3 hosts, 60,000 examples, 3 file instructions>
>>> settings = shardctl.ReadSettings(shuffle_seed=42, batch=256)
>>> shardctl.locate("imagenet2012", "train", settings, step=91).matches[0].tfds_id
'imagenet2012-train.tfrecord-00543-of-01024__205'
>>> plan = shardctl.resume("imagenet2012", "train", settings, steps=1234)
>>> plan.remaining, shardctl.prove("imagenet2012", plan).holds
(965263, True)

What is read
    layout(DATASET, SPLIT..)               the shards: examples, bytes, ids, how even
    plan(DATASET, SPEC.., hosts=)          the file instructions, for each host
    simulate(DATASET, SPEC, SETTINGS)      the order of the ids; skip=, take=20, -1 for all
    locate(DATASET, SPEC, SETTINGS, ..)    where an example is: position=, step=, id=, tfds_id=
    plan_order(DATASET, SPEC, SETTINGS)    the Order itself, to ask for any position
    read_dataset(DATASET.., data_dir=)     the Dataset, from a data_dir that you name
    list_datasets(WORD.., data_dir=)       the datasets that names lead to; also shardctl.list

Record files without metadata
    index(PATH..)                          their examples, counted; its `dataset` is a DATASET
    check_index(LAYOUT)                    what changed since `shardctl index PATH -o LAYOUT`

After an interruption
    resume(.., consumed= or steps=)        how the same pipeline goes on exactly
    resume_loader(..)                      the same by its older name for loaders besides TFDS's
    resume_on_hosts(.., hosts=, to_hosts=) the same with another number of hosts
    resume_unseen(.., seen=)               what a log of the examples seen leaves
    prove(DATASET, PLAN)                   whether a plan loses, repeats or moves an example
    read_plan(path)                        the plan that `shardctl resume -o FILE` wrote

On many hosts
    hosts(.., hosts=)                      what each host reads, and how best to share
    evaluate(.., batch=, hosts=, devices=) remainder, padding, hangs; also shardctl.eval

To look at
    report(DATASET, SPEC, SETTINGS, ..)    pictures and figures of one pipeline; to_html() is a page
    compare_reports(A, B)                  two side by side: where they part, how each is shuffled

Whether it is right
    quality(DATASET, SPEC, SETTINGS)       how well the order is shuffled, from 0 to 1
    compare_loaders(DATASET, SPEC, ..)     the same of each loader, and how it ends and goes on
    lint(DATASET, SPECS, SETTINGS)         what is wrong with the settings
    snapshot(DATASET, SPEC, SETTINGS)      what fixes an order
    read_snapshot(path)                    the one that `shardctl snapshot -o FILE` wrote
    diff(A, B)                             where and why two snapshots or plans differ, or their
                                           files; without B a snapshot and the order as it is now
    verify(DATASET, SPEC, SETTINGS)        the order beside the one that TensorFlow reads
    verify_files(DATASET, SPLIT..)         every record of every file, without TensorFlow
    beam_runner(OPTION..)                  a Beam pipeline, as runner= of verify_files and index
    inspect(TF_DATASET, loop=)             the stages of a real tf.data.Dataset, where its order is
                                           open, and its ids

Answers are frozen values, with their warnings in `warnings`. Those with rows have `to_pandas()`,
where pandas is installed, and are tables in a notebook. A Host may be written "1/3"; numbers of
NumPy and TensorFlow are numbers. What goes wrong is a ShardctlError: UsageError (names the
argument), DatasetError, UnpredictableOrderError (says what would fix the order) or
MissingDependencyError. `shardctl.tfds` reads with TensorFlow what is planned here, and keeps the
position of a training loop (Position, ResumeFit) in checkpoints; `shardctl.orbax` in Orbax's;
`shardctl.grain` and `shardctl.torch` feed Grain and PyTorch tf.data's order.

Names are looked up in TFDS_DATA_DIR, ~/tensorflow_datasets and the built-in catalog. Importing
shardctl loads neither TensorFlow nor NumPy; each name loads what it needs when it is first used.
"""

from __future__ import annotations

import os
import sys

from shardctl.core.provided import PROVIDERS
from shardctl.errors import (
    DatasetError,
    MissingDependencyError,
    ShardctlError,
    UnpredictableOrderError,
    UnprovenVersionWarning,
    UsageError,
)

TYPE_CHECKING = False  # `typing` takes longer to load than all else here
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType

    from shardctl import tfds as tfds
    from shardctl.api.arguments import read_plan, read_snapshot
    from shardctl.api.compare_reports import compare_reports
    from shardctl.api.diff import diff
    from shardctl.api.list_datasets import list_datasets
    from shardctl.core.dataset.dataset import Dataset, Split
    from shardctl.core.dataset.file_finding import FileFinding
    from shardctl.core.hosts.host import Host
    from shardctl.core.instructions.file_instruction import FileInstruction
    from shardctl.core.order.order import Order
    from shardctl.core.resume.resume_plan import HostShare, PlanListing, ResumePlan
    from shardctl.core.settings.read_settings import ReadSettings
    from shardctl.core.snapshot.snapshot import Snapshot
    from shardctl.planning.diff.causes import Cause
    from shardctl.planning.diff.diff import Diff
    from shardctl.planning.diff.pinned_order import PinnedOrder
    from shardctl.planning.diff.plans import PlansDiff
    from shardctl.planning.eval.eval import evaluate
    from shardctl.planning.eval.evaluation import Evaluation, Hang
    from shardctl.planning.hosts.hosts import Comparison, HostsPlan, hosts
    from shardctl.planning.hosts.strategy import Strategy
    from shardctl.planning.inspect import InspectedStage, Inspection, OpenStage, SourceLine
    from shardctl.planning.layout import Layout, Shard, SplitLayout, layout
    from shardctl.planning.lint.context import Usage
    from shardctl.planning.lint.lint import Finding, Lint, lint
    from shardctl.planning.lint.rule import Rule
    from shardctl.planning.list import DatasetList, ListedDataset
    from shardctl.planning.locate import Located, Match, Query, locate
    from shardctl.planning.order import PlannedOrder, plan_order
    from shardctl.planning.plan import Plan, Plans, plan
    from shardctl.planning.quality.loaders.compare import (
        LoaderComparison,
        WayToRead,
        compare_loaders,
    )
    from shardctl.planning.quality.quality import Quality, quality
    from shardctl.planning.quality.score import Metric, Score
    from shardctl.planning.report.compare import ReportComparison
    from shardctl.planning.report.report import Report, report
    from shardctl.planning.report.shown import NotShown
    from shardctl.planning.resume.hosts import resume_on_hosts
    from shardctl.planning.resume.proof import Proof, prove
    from shardctl.planning.resume.resume import LoaderPlan, resume, resume_loader
    from shardctl.planning.resume.seen import resume_unseen
    from shardctl.planning.simulate import Simulation, simulate
    from shardctl.planning.snapshot import TakenSnapshot, snapshot
    from shardctl.planning.verify import Verification
    from shardctl.readers.index.answer import Index
    from shardctl.readers.index.beam_runner import beam_runner
    from shardctl.readers.index.check import IndexCheck, check_index
    from shardctl.readers.index.index import index
    from shardctl.readers.index.tfds_metadata import TfdsMetadata
    from shardctl.readers.verifying.verify_files import FilesVerification, verify_files
    from shardctl.tfds.inspecting.inspect import inspect
    from shardctl.tfds.verifying.verify import verify

    eval = evaluate
    list = list_datasets

__version__ = "0.2.0"

__all__ = [
    "Cause",
    "Comparison",
    "Dataset",
    "DatasetError",
    "DatasetList",
    "Diff",
    "Evaluation",
    "FileFinding",
    "FileInstruction",
    "FilesVerification",
    "Finding",
    "Hang",
    "Host",
    "HostShare",
    "HostsPlan",
    "Index",
    "IndexCheck",
    "InspectedStage",
    "Inspection",
    "Layout",
    "Lint",
    "ListedDataset",
    "LoaderComparison",
    "LoaderPlan",
    "Located",
    "Match",
    "Metric",
    "MissingDependencyError",
    "NotShown",
    "OpenStage",
    "Order",
    "PinnedOrder",
    "Plan",
    "PlanListing",
    "PlannedOrder",
    "Plans",
    "PlansDiff",
    "Proof",
    "Quality",
    "Query",
    "ReadSettings",
    "Report",
    "ReportComparison",
    "ResumePlan",
    "Rule",
    "Score",
    "Shard",
    "ShardctlError",
    "Simulation",
    "Snapshot",
    "SourceLine",
    "Split",
    "SplitLayout",
    "Strategy",
    "TakenSnapshot",
    "TfdsMetadata",
    "UnpredictableOrderError",
    "UnprovenVersionWarning",
    "Usage",
    "UsageError",
    "Verification",
    "WayToRead",
    "beam_runner",
    "check_index",
    "compare_loaders",
    "compare_reports",
    "diff",
    "evaluate",
    "hosts",
    "index",
    "inspect",
    "layout",
    "lint",
    "list_datasets",
    "locate",
    "plan",
    "plan_order",
    "prove",
    "quality",
    "read_dataset",
    "read_plan",
    "read_snapshot",
    "report",
    "resume",
    "resume_loader",
    "resume_on_hosts",
    "resume_unseen",
    "simulate",
    "snapshot",
    "verify",
    "verify_files",
]

_HOMES = {
    "Cause": "planning.diff.causes",
    "Comparison": "planning.hosts.hosts",
    "Dataset": "core.dataset.dataset",
    "DatasetList": "planning.list",
    "Diff": "planning.diff.diff",
    "Evaluation": "planning.eval.evaluation",
    "FileFinding": "core.dataset.file_finding",
    "FileInstruction": "core.instructions.file_instruction",
    "FilesVerification": "readers.verifying.verify_files",
    "Finding": "planning.lint.lint",
    "Hang": "planning.eval.evaluation",
    "Host": "core.hosts.host",
    "HostShare": "core.resume.resume_plan",
    "HostsPlan": "planning.hosts.hosts",
    "InspectedStage": "planning.inspect",
    "Index": "readers.index.answer",
    "IndexCheck": "readers.index.check",
    "Inspection": "planning.inspect",
    "Layout": "planning.layout",
    "Lint": "planning.lint.lint",
    "ListedDataset": "planning.list",
    "LoaderComparison": "planning.quality.loaders.compare",
    "LoaderPlan": "planning.resume.resume",
    "Located": "planning.locate",
    "Match": "planning.locate",
    "Metric": "planning.quality.score",
    "NotShown": "planning.report.shown",
    "OpenStage": "planning.inspect",
    "Order": "core.order.order",
    "PinnedOrder": "planning.diff.pinned_order",
    "Plan": "planning.plan",
    "PlanListing": "core.resume.resume_plan",
    "PlannedOrder": "planning.order",
    "Plans": "planning.plan",
    "PlansDiff": "planning.diff.plans",
    "Proof": "planning.resume.proof",
    "Quality": "planning.quality.quality",
    "Query": "planning.locate",
    "ReadSettings": "core.settings.read_settings",
    "Report": "planning.report.report",
    "ReportComparison": "planning.report.compare",
    "ResumePlan": "core.resume.resume_plan",
    "Rule": "planning.lint.rule",
    "Score": "planning.quality.score",
    "Shard": "planning.layout",
    "Simulation": "planning.simulate",
    "Snapshot": "core.snapshot.snapshot",
    "SourceLine": "planning.inspect",
    "Split": "core.dataset.dataset",
    "SplitLayout": "planning.layout",
    "Strategy": "planning.hosts.strategy",
    "TakenSnapshot": "planning.snapshot",
    "TfdsMetadata": "readers.index.tfds_metadata",
    "Usage": "planning.lint.context",
    "Verification": "planning.verify",
    "WayToRead": "planning.quality.loaders.compare",
    "beam_runner": "readers.index.beam_runner",
    "check_index": "readers.index.check",
    "compare_loaders": "planning.quality.loaders.compare",
    "compare_reports": "api.compare_reports",
    "diff": "api.diff",
    "evaluate": "planning.eval.eval",
    "hosts": "planning.hosts.hosts",
    "index": "readers.index.index",
    "inspect": "tfds.inspecting.inspect",
    "layout": "planning.layout",
    "lint": "planning.lint.lint",
    "list_datasets": "api.list_datasets",
    "locate": "planning.locate",
    "plan": "planning.plan",
    "plan_order": "planning.order",
    "prove": "planning.resume.proof",
    "quality": "planning.quality.quality",
    "read_plan": "api.arguments",
    "read_snapshot": "api.arguments",
    "report": "planning.report.report",
    "resume": "planning.resume.resume",
    "resume_loader": "planning.resume.resume",
    "resume_on_hosts": "planning.resume.hosts",
    "resume_unseen": "planning.resume.seen",
    "simulate": "planning.simulate",
    "snapshot": "planning.snapshot",
    "verify": "tfds.verifying.verify",
    "verify_files": "readers.verifying.verify_files",
}

# Commands whose names are functions of Python already: not in `__all__`, which `*` imports.
_COMMANDS = {"eval": "evaluate", "list": "list_datasets"}

PROVIDERS.update(
    dataset="api.arguments:dataset_of_argument",
    plan="api.arguments:read_plan",
    html="api.tables:html_of",
    installed_version="readers.loader_versions:installed_version",
    kept="readers.seen_file:read_kept",
    listed="readers.index.listed:listed_spec",
    comparison_body="rendering.report.compared:comparison_body",
    comparison_page="rendering.report.compared:comparison_page",
    report_body="rendering.report.page:report_body",
    report_page="rendering.report.page:report_page",
    to_pandas="api.tables:to_pandas",
    verify_loader="loaders.verify:verify_loader",
    verified_version="readers.loader_versions:verified_version",
)


def read_dataset(
    *refs: str | os.PathLike[str],
    data_dir: str | os.PathLike[str] | None = None,
    cache: bool = True,
) -> Dataset:
    """Return the dataset that a reference stands for, or several references as one dataset.

    Args:
        refs: each a folder with dataset_info.json, a layout.yaml, `name[/config][:version]`, which
            is looked up in data dirs and then in the built-in catalog, or record files without
            metadata, which are counted: a file, a folder, a glob, `prefix@1024`.
        data_dir: a folder or URL to look into before `TFDS_DATA_DIR` and `~/tensorflow_datasets`.
        cache: take counts of files that have not changed from the user's cache folder, and keep new
            ones there.

    Returns:
        The dataset, which every function takes in place of a reference.

    Raises:
        DatasetError: a reference that leads nowhere, or to something broken.

    >>> import shardctl
    >>> shardctl.read_dataset("mnist")
    <Dataset mnist:3.0.1: train of 60,000 examples in 1 shard, test of 10,000 examples in 1 shard>
    """
    from shardctl.files.file_text import working_folder
    from shardctl.readers.reference import read_dataset as read

    return read(refs, data_dir=data_dir, env=os.environ, cwd=working_folder(), cache=cache)


if not TYPE_CHECKING:  # which would believe that every name is there

    def __getattr__(name):
        home = _COMMANDS.get(name, name)
        if home not in _HOMES and name != "tfds":
            raise AttributeError(f"module 'shardctl' has no attribute {name!r}")
        import importlib

        if name == "tfds":
            return importlib.import_module("shardctl.tfds")
        value = getattr(importlib.import_module(f"shardctl.{_HOMES[home]}"), home)
        if name == home:  # `eval` and `list` stay Python's own in here
            globals()[name] = value
        return value


def __dir__() -> Iterable[str]:
    # pydoc writes all that is listed out, a thousand lines and more; help(shardctl) is the text at
    # the top instead, and help() of a name its own.
    return [] if _asked_by("pydoc") else sorted((*__all__, *_COMMANDS))


def _asked_by(module: str) -> bool:
    frame: FrameType | None = sys._getframe(2)
    for _ in range(4):
        if frame is None or frame.f_globals.get("__name__") == module:
            return frame is not None
        frame = frame.f_back
    return False
