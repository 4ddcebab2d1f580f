"""Which examples, from which files, in which order, on which host: planned from metadata alone.

A function for each command, and what a command prints, the function of its name returns. DATASET is
a name as "mnist" or "imagenet2012:5.1.0", the path of a dataset or of a layout.yaml, record files
without metadata as "data/train-*.tfrecord", a list of these, or a Dataset. SPEC is a subsplit as
TFDS writes it, "train" where it is left out. SETTINGS is a ReadSettings or a dict of its values,
and says how the pipeline reads. help(shardctl.plan), or shardctl.plan? in a notebook, tells more
of one function.

>>> import shardctl
>>> shardctl.plan("mnist", "train", hosts=3)
<Plans mnist:3.0.1 train: 3 plans>
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
option, `--batch` for batch=), DatasetError, UnpredictableOrderError (says what would fix the order)
or MissingDependencyError. `shardctl.tfds` reads with TensorFlow what is planned here, and keeps the
position of a training loop (Position, ResumeFit) in checkpoints; `shardctl.orbax` in Orbax's;
`shardctl.grain` and `shardctl.torch` feed Grain and PyTorch tf.data's order.

Names are looked up in TFDS_DATA_DIR, ~/tensorflow_datasets and the built-in catalog. Importing
shardctl loads neither TensorFlow nor NumPy; each name loads what it needs when it is first used.
"""

from __future__ import annotations

import os
import sys

# Each public name is imported as itself.
# isort: off
from shardctl.base.hooks import PROVIDERS
from shardctl.errors import (
    DatasetError as DatasetError,
    MissingDependencyError as MissingDependencyError,
    ShardctlError as ShardctlError,
    UnpredictableOrderError as UnpredictableOrderError,
    UnprovenVersionWarning as UnprovenVersionWarning,
    UsageError as UsageError,
)

TYPE_CHECKING = False  # `typing` takes longer to load than all else here
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType

    from shardctl import tfds as tfds
    from shardctl.api.arguments import read_plan as read_plan, read_snapshot as read_snapshot
    from shardctl.api.diff import compare_reports as compare_reports
    from shardctl.api.diff import diff as diff
    from shardctl.api.list_datasets import list_datasets as list_datasets
    from shardctl.dataset.dataset import Dataset as Dataset, Split as Split
    from shardctl.dataset.dataset import FileFinding as FileFinding
    from shardctl.spec.host import Host as Host
    from shardctl.spec.subsplit import FileInstruction as FileInstruction
    from shardctl.order.order import Order as Order
    from shardctl.saved.resume_plan import (
        HostShare as HostShare,
        PlanListing as PlanListing,
        ResumePlan as ResumePlan,
    )
    from shardctl.settings.read_settings import ReadSettings as ReadSettings
    from shardctl.saved.snapshot import Snapshot as Snapshot
    from shardctl.verbs.diff.causes import Cause as Cause
    from shardctl.verbs.diff.answer import Diff as Diff
    from shardctl.verbs.diff.answer import PinnedOrder as PinnedOrder
    from shardctl.verbs.diff.plans import PlansDiff as PlansDiff
    from shardctl.verbs.eval.answer import evaluate as evaluate
    from shardctl.verbs.eval.answer import Evaluation as Evaluation, Hang as Hang
    from shardctl.verbs.hosts.answer import (
        Comparison as Comparison,
        HostsPlan as HostsPlan,
        hosts as hosts,
    )
    from shardctl.verbs.hosts.sharing import Strategy as Strategy
    from shardctl.verbs.inspect.answer import (
        InspectedStage as InspectedStage,
        Inspection as Inspection,
        OpenStage as OpenStage,
        SourceLine as SourceLine,
    )
    from shardctl.verbs.layout.answer import (
        Layout as Layout,
        Shard as Shard,
        SplitLayout as SplitLayout,
        layout as layout,
    )
    from shardctl.verbs.lint.context import Usage as Usage
    from shardctl.verbs.lint.answer import Finding as Finding, Lint as Lint, lint as lint
    from shardctl.verbs.lint.rule import Rule as Rule
    from shardctl.verbs.list.answer import (
        DatasetList as DatasetList,
        ListedDataset as ListedDataset,
    )
    from shardctl.verbs.locate.answer import (
        Located as Located,
        Match as Match,
        Query as Query,
        locate as locate,
    )
    from shardctl.order.plan_order import PlannedOrder as PlannedOrder, plan_order as plan_order
    from shardctl.verbs.plan.answer import Plan as Plan, Plans as Plans, plan as plan
    from shardctl.verbs.quality.loaders import (
        LoaderComparison as LoaderComparison,
        WayToRead as WayToRead,
        compare_loaders as compare_loaders,
    )
    from shardctl.verbs.quality.answer import Quality as Quality, quality as quality
    from shardctl.verbs.quality.metrics import Metric as Metric, Score as Score
    from shardctl.verbs.report.compare import ReportComparison as ReportComparison
    from shardctl.verbs.report.answer import Report as Report, report as report
    from shardctl.verbs.report.question import NotShown as NotShown
    from shardctl.verbs.resume.hosts import resume_on_hosts as resume_on_hosts
    from shardctl.verbs.resume.proof import Proof as Proof, prove as prove
    from shardctl.verbs.resume.answer import (
        LoaderPlan as LoaderPlan,
        resume as resume,
        resume_loader as resume_loader,
    )
    from shardctl.verbs.resume.answer import resume_unseen as resume_unseen
    from shardctl.verbs.simulate.answer import Simulation as Simulation, simulate as simulate
    from shardctl.verbs.snapshot.answer import TakenSnapshot as TakenSnapshot, snapshot as snapshot
    from shardctl.verbs.verify.answer import Verification as Verification
    from shardctl.metadata.index.answer import Index as Index
    from shardctl.metadata.index.beam_runner import beam_runner as beam_runner
    from shardctl.verbs.index.check import IndexCheck as IndexCheck, check_index as check_index
    from shardctl.metadata.index.index import index as index
    from shardctl.metadata.index.tfds_metadata import TfdsMetadata as TfdsMetadata
    from shardctl.verbs.verify.verify_files import (
        FilesVerification as FilesVerification,
        verify_files as verify_files,
    )
    from shardctl.tfds.inspecting.inspect import inspect as inspect
    from shardctl.tfds.verifying.verify import verify as verify

    # isort: on
    eval = evaluate
    list = list_datasets  # type: ignore[has-type]  # which imports this module

__version__ = "0.2.0"

# The modules of the public names, each loaded when a name of it is first used.
_NAMES = {
    "api.arguments": "read_plan read_snapshot",
    "api.diff": "compare_reports diff",
    "api.list_datasets": "list_datasets",
    "dataset.dataset": "Dataset FileFinding Split",
    "metadata.index.answer": "Index",
    "metadata.index.beam_runner": "beam_runner",
    "metadata.index.index": "index",
    "metadata.index.tfds_metadata": "TfdsMetadata",
    "order.order": "Order",
    "order.plan_order": "PlannedOrder plan_order",
    "saved.resume_plan": "HostShare PlanListing ResumePlan",
    "saved.snapshot": "Snapshot",
    "settings.read_settings": "ReadSettings",
    "spec.host": "Host",
    "spec.subsplit": "FileInstruction",
    "tfds.inspecting.inspect": "inspect",
    "tfds.verifying.verify": "verify",
    "verbs.diff.answer": "Diff PinnedOrder",
    "verbs.diff.causes": "Cause",
    "verbs.diff.plans": "PlansDiff",
    "verbs.eval.answer": "Evaluation Hang evaluate",
    "verbs.hosts.answer": "Comparison HostsPlan hosts",
    "verbs.hosts.sharing": "Strategy",
    "verbs.index.check": "IndexCheck check_index",
    "verbs.inspect.answer": "InspectedStage Inspection OpenStage SourceLine",
    "verbs.layout.answer": "Layout Shard SplitLayout layout",
    "verbs.lint.answer": "Finding Lint lint",
    "verbs.lint.context": "Usage",
    "verbs.lint.rule": "Rule",
    "verbs.list.answer": "DatasetList ListedDataset",
    "verbs.locate.answer": "Located Match Query locate",
    "verbs.plan.answer": "Plan Plans plan",
    "verbs.quality.answer": "Quality quality",
    "verbs.quality.loaders": "LoaderComparison WayToRead compare_loaders",
    "verbs.quality.metrics": "Metric Score",
    "verbs.report.answer": "Report report",
    "verbs.report.compare": "ReportComparison",
    "verbs.report.question": "NotShown",
    "verbs.resume.answer": "LoaderPlan resume resume_loader resume_unseen",
    "verbs.resume.hosts": "resume_on_hosts",
    "verbs.resume.proof": "Proof prove",
    "verbs.simulate.answer": "Simulation simulate",
    "verbs.snapshot.answer": "TakenSnapshot snapshot",
    "verbs.verify.answer": "Verification",
    "verbs.verify.verify_files": "FilesVerification verify_files",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}
# Written out, for checkers of types and editors, which run no code; a test holds the two together.
# fmt: off
__all__ = [
    "Cause", "Comparison", "Dataset", "DatasetError", "DatasetList", "Diff", "Evaluation",
    "FileFinding", "FileInstruction", "FilesVerification", "Finding", "Hang", "Host", "HostShare",
    "HostsPlan", "Index", "IndexCheck", "InspectedStage", "Inspection", "Layout", "Lint",
    "ListedDataset", "LoaderComparison", "LoaderPlan", "Located", "Match", "Metric",
    "MissingDependencyError", "NotShown", "OpenStage", "Order", "PinnedOrder", "Plan",
    "PlanListing", "PlannedOrder", "Plans", "PlansDiff", "Proof", "Quality", "Query",
    "ReadSettings", "Report", "ReportComparison", "ResumePlan", "Rule", "Score", "Shard",
    "ShardctlError", "Simulation", "Snapshot", "SourceLine", "Split", "SplitLayout", "Strategy",
    "TakenSnapshot", "TfdsMetadata", "UnpredictableOrderError", "UnprovenVersionWarning", "Usage",
    "UsageError", "Verification", "WayToRead", "beam_runner", "check_index", "compare_loaders",
    "compare_reports", "diff", "evaluate", "hosts", "index", "inspect", "layout", "lint",
    "list_datasets", "locate", "plan", "plan_order", "prove", "quality", "read_dataset",
    "read_plan", "read_snapshot", "report", "resume", "resume_loader", "resume_on_hosts",
    "resume_unseen", "simulate", "snapshot", "verify", "verify_files",
]
# fmt: on

# Commands whose names are functions of Python already: not in `__all__`, which `*` imports.
_COMMANDS = {"eval": "evaluate", "list": "list_datasets"}

PROVIDERS.update(
    dataset="api.arguments:dataset_of_argument",
    plan="api.arguments:read_plan",
    html="api.tables:html_of",
    installed_version="metadata.loader_versions:installed_version",
    kept="metadata.seen_file:read_kept",
    listed="metadata.index.listing:listed_spec",
    comparison_body="verbs.report.compared:comparison_body",
    comparison_page="verbs.report.compared:comparison_page",
    report_body="verbs.report.page:report_body",
    report_page="verbs.report.page:report_page",
    to_pandas="api.tables:to_pandas",
    verify_loader="live.verify:verify_loader",
    verified_version="metadata.loader_versions:verified_version",
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
    from shardctl.metadata.reference import read_dataset as read
    from shardctl.stores.stores import working_folder

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
