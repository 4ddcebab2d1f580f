"""The public names and where each is defined.

Type checkers and editors read this file; `__init__.py` reads it too, and loads a name when it is
first used.
"""
# ruff: noqa: I001
# fmt: off

from collections.abc import Sequence

from shardctl import tfds as tfds
from shardctl.api.arguments import read_plan as read_plan, read_snapshot as read_snapshot
from shardctl.api.diff import compare_reports as compare_reports, diff as diff
from shardctl.api.list_datasets import list_datasets as list_datasets, read_dataset as read_dataset
from shardctl.dataset.dataset import Dataset as Dataset, FileFinding as FileFinding, Split as Split
from shardctl.errors import DatasetError as DatasetError
from shardctl.errors import MissingDependencyError as MissingDependencyError
from shardctl.errors import ShardctlError as ShardctlError
from shardctl.errors import UnpredictableOrderError as UnpredictableOrderError
from shardctl.errors import UnprovenVersionWarning as UnprovenVersionWarning
from shardctl.errors import UsageError as UsageError
from shardctl.metadata.index.index import Index as Index
from shardctl.metadata.index.beam_runner import beam_runner as beam_runner
from shardctl.metadata.index.index import index as index
from shardctl.metadata.index.planned_metadata import TfdsMetadata as TfdsMetadata
from shardctl.order.order import Order as Order
from shardctl.order.plan_order import PlannedOrder as PlannedOrder, plan_order as plan_order
from shardctl.saved.resume_plan import HostShare as HostShare, PlanListing as PlanListing
from shardctl.saved.resume_plan import ResumePlan as ResumePlan
from shardctl.saved.snapshot import Snapshot as Snapshot
from shardctl.saved.step_log import StepLog as StepLog
from shardctl.settings.read_settings import ReadSettings as ReadSettings
from shardctl.spec.host import Host as Host
from shardctl.spec.subsplit import FileInstruction as FileInstruction
from shardctl.tfds.inspecting.inspect import inspect as inspect
from shardctl.tfds.verifying.rehearsed_run import rehearse as rehearse
from shardctl.tfds.verifying.verify import verify as verify
from shardctl.verbs.audit.answer import Audit as Audit, AuditedEpoch as AuditedEpoch
from shardctl.verbs.audit.answer import AuditedRun as AuditedRun, audit as audit
from shardctl.verbs.diff.answer import Diff as Diff, PinnedOrder as PinnedOrder
from shardctl.verbs.diff.causes import Cause as Cause
from shardctl.verbs.diff.plans import PlansDiff as PlansDiff
from shardctl.verbs.eval.answer import Evaluation as Evaluation, Hang as Hang, evaluate as evaluate
from shardctl.verbs.hosts.answer import Comparison as Comparison, HostsPlan as HostsPlan
from shardctl.verbs.hosts.answer import hosts as hosts
from shardctl.verbs.hosts.sharing import Strategy as Strategy
from shardctl.verbs.index.check import IndexCheck as IndexCheck, check_index as check_index
from shardctl.verbs.inspect.answer import Cure as Cure, InspectedStage as InspectedStage
from shardctl.verbs.inspect.answer import Inspection as Inspection
from shardctl.verbs.inspect.answer import OpenStage as OpenStage, SourceLine as SourceLine
from shardctl.verbs.layout.answer import Layout as Layout, Shard as Shard
from shardctl.verbs.layout.answer import SplitLayout as SplitLayout, layout as layout
from shardctl.verbs.lint.answer import Finding as Finding, Lint as Lint, lint as lint
from shardctl.verbs.lint.context import Usage as Usage
from shardctl.verbs.lint.rule import Rule as Rule
from shardctl.verbs.list.answer import DatasetList as DatasetList, ListedDataset as ListedDataset
from shardctl.verbs.locate.answer import Located as Located, Match as Match, Query as Query
from shardctl.verbs.locate.answer import locate as locate
from shardctl.verbs.plan.answer import Plan as Plan, Plans as Plans, plan as plan
from shardctl.verbs.quality.answer import Quality as Quality, quality as quality
from shardctl.verbs.quality.compare_loaders import LoaderComparison as LoaderComparison
from shardctl.verbs.quality.compare_loaders import WayToRead as WayToRead
from shardctl.verbs.quality.compare_loaders import compare_loaders as compare_loaders
from shardctl.verbs.quality.metrics import Metric as Metric, Score as Score
from shardctl.verbs.rehearse.answer import HostRun as HostRun, Rehearsal as Rehearsal
from shardctl.verbs.report.answer import Report as Report, report as report
from shardctl.verbs.report.compare import ReportComparison as ReportComparison
from shardctl.verbs.report.answer import NotShown as NotShown
from shardctl.verbs.resume.answer import LoaderPlan as LoaderPlan, resume as resume
from shardctl.verbs.resume.answer import resume_loader as resume_loader
from shardctl.verbs.resume.answer import resume_unseen as resume_unseen
from shardctl.verbs.resume.hosts import resume_on_hosts as resume_on_hosts
from shardctl.verbs.resume.proof import Proof as Proof, prove as prove
from shardctl.verbs.simulate.answer import Simulation as Simulation, simulate as simulate
from shardctl.verbs.snapshot.answer import TakenSnapshot as TakenSnapshot, snapshot as snapshot
from shardctl.verbs.verify.answer import Verification as Verification
from shardctl.verbs.verify.verify_files import FilesVerification as FilesVerification
from shardctl.verbs.verify.verify_files import verify_files as verify_files

# Commands whose names are functions of Python already; `import *` leaves these alone.
eval = evaluate
list = list_datasets

__version__: str
__all__: Sequence[str]
