"""Fits a plan to the builder and host that read it, and turns it into a `tfds.ReadConfig`."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import index
from typing import Any

from shardctl.base.arguments import checked
from shardctl.base.text import choices, quoted
from shardctl.dataset.dataset import Dataset
from shardctl.errors import DatasetError, UsageError
from shardctl.order.plan_order import order_of
from shardctl.order.reader_order import ReaderOrder
from shardctl.order.sources import resolved_reading
from shardctl.saved.resume_plan import PlanOrPath, ResumePlan, plan_of_tfds
from shardctl.settings.read_settings import ReadSettings, with_any_buffer_seed
from shardctl.settings.short_form import settings_of_read, stages_of
from shardctl.spec.host import Host, HostLike, as_host
from shardctl.spec.reads import Reads
from shardctl.spec.subsplit import Resolved
from shardctl.stages.part import KernelPair
from shardctl.stages.pipelines import parts_of
from shardctl.stages.stages import Read, SampleFromDatasets, Shuffle
from shardctl.tfdata.shuffle_seeds import ScriptSeeds
from shardctl.tfds.builder_layout import Builder, RecordFiles, dataset_of, in_order_of
from shardctl.tfds.imports import tensorflow, tensorflow_datasets
from shardctl.tfds.training.records import RecordReader, paths_of
from shardctl.verbs.resume.answer import codes_of
from shardctl.verbs.resume.apply_plan import applied


def check_host(planned: Host, host: int | HostLike | None, *, what: str = "plan") -> None:
    """Refuse a plan, or `what` it is, for one host in a process that says that it is another.

    `host` is what the caller says, an index, a whole `Host` or its text `I/N`, and is believed.
    Without it these are asked, as far as they are in use; nothing is imported or started for it:

    - JAX, where `jax` is imported: `jax.process_index()` and `process_count()` once its backends
      are there, before that what `jax.distributed.initialize` was told;
    - a `tf.distribute.MultiWorkerMirroredStrategy` in whose scope the call is made: the task of its
      cluster resolver;
    - `TF_CONFIG`, which such a strategy reads: chief first, then the workers.

    A process that is alone says nothing, nor does one of a cluster with parameter servers, or an
    evaluator.

    Raises:
        UsageError: it is another host.
    """
    host = as_host(host) if isinstance(host, str) else host
    if host is not None:
        # A `Host` is compared as a whole, an index with the index alone.
        own = planned if isinstance(host, Host) else planned.index
        if host != own:
            said = f"{host.index} of {host.count}" if isinstance(host, Host) else str(index(host))
            raise UsageError(
                f"host={said.partition(' ')[0]}: the {what} is for host {_named(planned)}, and "
                f"this process is said to be host {said}; give each host its own {what}"
            )
        return
    for source, found in hosts_said():
        if found != planned:
            raise UsageError(
                f"the {what} is for host {_named(planned)}, and by {source} this process is host "
                f"{_named(found)}; give this host its own {what}, or name the host with host=I"
            )


def hosts_said() -> Iterator[tuple[str, Host]]:
    """Yield who says which host this process is, and which; see `check_host`."""
    # A strategy in scope has read TF_CONFIG by itself, so the variable is not asked as well.
    found = {"jax.process_index()": _of_jax()}
    strategy = _of_strategy()
    if strategy is None:
        found["TF_CONFIG"] = _of_tf_config()
    found["the tf.distribute strategy in scope"] = strategy
    for source, one in found.items():
        # A process alone says (0, 1), which is no statement; values that make no sense are ignored.
        if one is not None and one[1] > 1 and 0 <= one[0] < one[1]:
            yield source, Host(index=one[0], count=one[1])


def _named(host: Host) -> str:
    return f"{host.index} of {host.count}"


def _of_jax() -> tuple[int, int] | None:
    """Return what JAX says; its own functions start a backend that is not there yet."""
    jax = sys.modules.get("jax")
    # Nothing is imported: where JAX was not imported by the script, it says nothing.
    if jax is None or not hasattr(jax, "process_index"):
        return None
    bridge = sys.modules.get("jax._src.xla_bridge")
    # `jax.process_index()` would start the backends, which a later `jax.distributed.initialize`
    # refuses.
    started = getattr(bridge, "backends_are_initialized", None)
    if started is None or started():
        return index(jax.process_index()), index(jax.process_count())
    # Private state of JAX, and therefore read with defaults.
    state = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    if getattr(state, "client", None) is None:
        return None
    return index(getattr(state, "process_id", 0)), index(getattr(state, "num_processes", None) or 1)


def _of_strategy() -> tuple[int, int] | None:
    tf = sys.modules.get("tensorflow")
    if tf is None or not tf.distribute.has_strategy():
        return None
    strategy = tf.distribute.get_strategy()
    # Other strategies run in one process, or share datasets by another rule.
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return None
    resolver = strategy.cluster_resolver
    return _of_task(resolver.cluster_spec().as_dict(), resolver.task_type, resolver.task_id)


def _of_tf_config() -> tuple[int, int] | None:
    """Return what the environment variable says, None where it is not what TensorFlow reads."""
    try:
        config = json.loads(os.environ.get("TF_CONFIG") or "{}")
        task = config["task"]
        return _of_task(config["cluster"], task["type"], task["index"])
    # Malformed TF_CONFIG is not an error here; TensorFlow itself reports it.
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _of_task(cluster: Any, kind: object, position: Any) -> tuple[int, int] | None:
    """Return (index, count) of a task among those that read: the chief, if any, then the workers.

    Source: TensorFlow's distribute/multi_worker_util.py, id_in_cluster and worker_count.
    """
    if "ps" in cluster or kind not in ("chief", "worker") or position is None:
        return None
    num_chiefs, num_workers = (len(cluster.get(job, ())) for job in ("chief", "worker"))
    place = int(position) + (num_chiefs if kind == "worker" else 0)
    return place, num_chiefs + num_workers


# A plan fitted to the builder that is to read it, and as a `tfds.ReadConfig` for a `tfds.load`.


# What the plan fixes; anything else in its place would read another order.
_OF_THE_PLAN = (
    "experimental_interleave_sort_fn",
    "interleave_cycle_length",
    "interleave_block_length",
    "shuffle_seed",
    "shuffle_reshuffle_each_iteration",
    "repeat_filenames",
    "input_context",
)


@checked
def read_config(
    plan: PlanOrPath,
    builder: Builder | None = None,
    *,
    host: int | HostLike | None = None,
    allow_version: bool = False,
    **options: Any,
) -> Any:
    """Return the `tfds.ReadConfig` with which an ordinary TFDS pipeline resumes as planned.

    `plan` is a `ResumePlan` or the path of a plan file; give the `ReadConfig` to `tfds.load` or
    `builder.as_dataset` with `split=plan.spec` and without `shuffle_files`. What is read is the
    rest of the epoch in which the plan begins; `resume_epochs` reads those that follow. `host`, an
    index or a `Host`, chooses among the hosts of a plan for several; a plan for one of them is
    refused where this process is another, as `resume` does. What the plan has in `after_read` is
    left to the caller.

    With `builder` the plan is checked against all of its dataset at once, without it when a builder
    reads with this `ReadConfig`: name, config, version, layout, order of the folders.
    `allow_version` takes another version or config of the same layout. Every planned file must be
    among those that TFDS reads. `options` are fields of `ReadConfig` that leave the order
    alone, such as `add_tfds_id`; `try_autocache` is off unless asked for: a rest is read once.

    Raises:
        DatasetError: the dataset is another one or has changed; the text says how.
        UsageError: an option that the plan fixes, no such host, a plan for another host,
            `shuffle_files=True`; a global seed in force as for `resume`, now or when a builder
            reads with this; a plan in exact order through a buffer, or for a host of
            `ds.shard` whose buffer held examples, both of which `shardctl.tfds.resume` reads.
        MissingDependencyError: TensorFlow or TFDS is not installed.

        config = shardctl.tfds.read_config("plan.yaml", builder)
        dataset = builder.as_dataset(split="train", read_config=config)
    """
    _check_options(options)
    plan = plan_of_tfds(plan)
    if plan.continued_by == "shardctl.tfds":
        what = "the stages" if plan.shared is None else "the shared rest"
        raise UsageError(
            f"file instructions alone do not continue {what} of this plan; "
            "shardctl.tfds.resume does"
        )
    reads_of_host(plan, host)  # which is refused now
    _refuse_buffered_examples(plan)
    here = None if builder is None else fitted(builder, plan, host, allow_version=allow_version)
    check_global_seed_of_plan(plan)

    def sort(files: Sequence[Any]) -> list[Any]:
        # TFDS calls the sort function from its reader, whose local variables are the only way to
        # see `shuffle_files`.
        caller = sys._getframe(1)
        # TFDS passes it only to its own reader, which shuffles what this returns.
        if caller.f_locals.get("shuffle_files") is True:
            raise UsageError("shuffle_files=True would shuffle the plan; leave it out")
        own = here
        # Without a builder the plan is fitted when a builder reads, which is found in the stack.
        if own is None:
            own = fitted(_builder_that_reads(caller), plan, host, allow_version=allow_version)
        check_global_seed_of_plan(plan)  # the dataset is made here, which may be long after
        return _planned(plan, files, own.reads)

    # `try_autocache` may be given in `options`, hence in this order.
    return tensorflow_datasets().ReadConfig(
        **{"try_autocache": False, **options},
        experimental_interleave_sort_fn=sort,
        interleave_cycle_length=plan.cycle_length,
        interleave_block_length=plan.settings.block,
    )


def _check_options(options: dict[str, Any]) -> None:
    taken = [name for name in options if name in _OF_THE_PLAN]
    if taken:
        raise UsageError(f"{choices(taken)}: the plan says this; leave it out")
    deterministic = getattr(options.get("options"), "deterministic", None)
    if deterministic is False:
        raise UsageError(
            "options.deterministic=False yields examples in order of completion, which is not "
            "the planned order; leave it out"
        )


def _refuse_buffered_examples(plan: ResumePlan) -> None:
    settings = plan.settings
    if plan.mode == "exact-order" and plan.pending:
        raise UsageError(
            f"this plan continues a shuffle buffer that held {len(plan.pending)} examples, and a "
            "ReadConfig cannot fill it: use shardctl.tfds.resume, or plan with mode exactly-once"
        )
    if plan.num_pending_instructions and settings.host and settings.host_mode.reads_all:
        raise UsageError(
            "what this host's buffer held is its own, and the rest is shared by ds.shard: one "
            "reader cannot do both; shardctl.tfds.resume reads them one after the other"
        )


def _planned(plan: ResumePlan, files: Sequence[Any], reads: Reads) -> list[Any]:
    """Return the planned instructions, made of those that TFDS has for the same files."""
    if not len(reads):
        return [files[0].replace(skip=0, take=0)]  # TFDS takes no empty list
    # TFDS's own instructions, of which only skip and take change: true lengths of the files stay
    # (`examples_in_shard`), since TFDS decides by them whether to cut.
    known = {os.fspath(file.filename): file for file in files}
    planned = []
    rows = zip(paths_of(reads), reads.skip.tolist(), reads.take.tolist(), strict=True)
    # A file may come several times, with different skips.
    for path, skip, take in rows:
        file = known.get(path)
        if file is None:
            raise DatasetError(
                f"the plan reads {quoted(path, 200)}, which is not one of the {len(files)} files "
                f"of this split; ask TFDS for split={plan.spec!r} of {plan.dataset.title}"
            )
        planned.append(file.replace(skip=skip, take=take))
    return planned


def _builder_that_reads(caller: Any) -> Any:
    """Return the builder whose `as_dataset` calls the sort function, looked up in the calls.

    TFDS hands the sort function file instructions alone.
    """
    kinds = (tensorflow_datasets().core.DatasetBuilder, RecordFiles)
    while caller is not None:
        found = caller.f_locals.get("self")
        if isinstance(found, kinds):
            return found
        caller = caller.f_back
    raise UsageError("no builder of TFDS reads here: give it, as in read_config(plan, builder)")


# A plan checked against the builder that is to read it.


@dataclass(frozen=True, kw_only=True)
class FittedPlan:
    """A plan whose files are found in a builder's dataset, as one host reads it.

    `settings` are those with which the host reads the epochs after the one the plan begins in: of
    a plan for other hosts, as the new host.
    """

    plan: ResumePlan
    dataset: Dataset
    reads: Reads
    settings: ReadSettings

    @property
    def num_examples(self) -> int:
        """Number of examples of the epoch that this host is still to yield."""
        if self.plan.hosts:
            return self.reads.num_examples
        return self.plan.remaining

    @cached_property
    def order(self) -> ReaderOrder:
        """The order of which the further epochs are a part.

        Of a plan without a seed it is the order in which their buffers read.
        """
        settings = self.settings
        if self.plan.unseeded is not None:
            # Any seed: only the reading below the buffer is used.
            settings = with_any_buffer_seed(settings)
        return order_of(self._resolved, settings).of_reader

    def reader(self, kind: type[RecordReader], **how: Any) -> RecordReader:
        """Return what reads the records, with the codes of the spec and the plan's interleave."""
        codes = codes_of(self._resolved)  # also where nothing fixes an order
        return kind(codes=codes, cycle=self.plan.cycle_length, block=self.settings.block, **how)

    @cached_property
    def _resolved(self) -> Resolved:
        return resolved_reading(self.dataset, self.plan.spec, self.plan.settings)


def fitted(
    source: Any, plan: PlanOrPath, host: int | HostLike | None, *, allow_version: bool = False
) -> FittedPlan:
    """Return a plan as host `host` reads it from the files of a builder, or of a Dataset.

    Raises:
        DatasetError: the dataset is not the one the plan was made for; the text says what changed.
        UsageError: a plan for several hosts and none is chosen, or the other way round; or a plan
            for another host, or of another loader.
    """
    plan = plan_of_tfds(plan)
    dataset = dataset_for(plan, source)
    plan = applied(plan, dataset, allow_version=allow_version)
    reads, settings = reads_of_host(plan, host), plan.settings
    if plan.hosts:
        settings = replace(settings, host=_chosen(plan, host))
    return FittedPlan(plan=plan, dataset=dataset, reads=reads, settings=settings)


def dataset_for(plan: ResumePlan, source: Any) -> Dataset:
    """Return the dataset of a builder with the splits in the plan's order; TFDS may have none."""
    # A builder over several folders lists its splits in no fixed order.
    dataset = source if isinstance(source, Dataset) else dataset_of(source)
    return in_order_of(dataset, [split.name for split in plan.dataset.splits])


def reads_of_host(plan: ResumePlan, host: int | HostLike | None) -> Reads:
    """Return what one host reads of a plan; see `check_host` for a plan that is for one alone.

    Raises:
        UsageError: see `fitted`.
    """
    if plan.hosts:
        return plan.hosts[_chosen(plan, host).index].instructions
    check_host_of_plan(plan, host)
    return plan.instructions


def check_host_of_plan(plan: ResumePlan, host: int | HostLike | None) -> None:
    """Refuse a host of a plan for one reader that is not the one that it is for.

    Raises:
        UsageError: see `check_host`; or it is for no host.
    """
    if plan.settings.host is not None:
        check_host(plan.settings.host, host)
    elif host is not None:
        raise UsageError(f"host={host}: this plan is for one reader; leave host out")


def _chosen(plan: ResumePlan, host: int | HostLike | None) -> Host:
    count = len(plan.hosts)
    host = as_host(host) if isinstance(host, str) else host
    # A `Host` must be one of as many hosts as the plan is for; an index must be one of them.
    if isinstance(host, Host) and host.count == count:
        return host
    chosen = None if host is None or isinstance(host, Host) else index(host)
    if chosen is None or not 0 <= chosen < count:
        raise UsageError(
            f"host={host}: the plan is for {count} hosts; choose one of 0 to {count - 1}"
        )
    return Host(index=chosen, count=count)


def epochs_that_follow(plan: ResumePlan) -> range:
    """Return the epochs after the one that a plan begins in."""
    return range(plan.epoch + 1, plan.epoch + 1 + plan.num_further_epochs)


# A `tf.random.set_seed` that is in force while a dataset is made, and the orders it changes.


def seed_in_force() -> int | None:
    """Return the seed of `tf.random.set_seed` as it was given, None where none is set.

    A graph takes it over whole, where `tf.compat.v1.random.get_seed` has it modulo 2**31 - 1; and
    no number is drawn from it.
    """
    # The name of a FuncGraph has no meaning. A new one takes over the eager context's seed, without
    # drawing from it.
    seed = tensorflow().__internal__.FuncGraph("seed_in_force").seed
    return None if seed is None else int(seed)


def check_global_seed(settings: ReadSettings, *, of_plan: bool = False) -> None:
    """Refuse a global seed that is in force and with which a pipeline of settings reads otherwise.

    It counts besides an explicit seed (tensorflow/python/framework/random_seed.py), and is mostly
    set for other reasons: `keras.utils.set_random_seed` calls `tf.random.set_seed`. No seed in
    force is no sign of a wrong order, since a process that resumes need not set any; nor is one
    where nothing is shuffled.

    tf.data takes the seed when a dataset is built, so one that is set later changes nothing of it,
    and one that was in force in another process, or only while the dataset was built by hand, is
    not seen.

    Raises:
        UsageError: the order would be another one.
    """
    # No shuffle, no question: TensorFlow is then not even imported.
    drawn = list(_drawn_seeds(settings))
    in_force = seed_in_force() if drawn else None
    if in_force is None:
        return
    # Kernel seeds of each shuffle, under the seed of the settings and under the one in force.
    as_said, real = (
        [seeds.kernel(seed) for seed in drawn]
        for seeds in (ScriptSeeds(settings.global_seed), ScriptSeeds(in_force))
    )
    # None: a shuffle without any seed, which is nondeterministic either way.
    if None in as_said or as_said == real:
        return  # nothing fixes an order that could change, or it is the same
    said = settings.global_seed
    has = "no global_seed" if said is None else f"global_seed={said}"
    what, cure = "the settings have", f"say so with ReadSettings(global_seed={in_force})"
    if of_plan:
        what, cure = "the plan has", f"plan again with global_seed={in_force}"
    raise UsageError(
        f"tf.random.set_seed({in_force}) is in force (keras.utils.set_random_seed sets it too) and "
        f"changes the order, and {what} {has}: if the pipeline was built with it, {cure}; if not, "
        f"call tf.random.set_seed({said}) before this, and set_seed({in_force}) after it again"
    )


def _drawn_seeds(settings: ReadSettings) -> Iterator[int | KernelPair | None]:
    """Yield the seed of each shuffle that changes something."""
    # Also the pipelines of choices, which may shuffle.
    for part in parts_of(stages_of(settings), choices=True):
        if isinstance(part, Read):
            reader = settings_of_read(settings, part)
            if reader.shuffles_files:
                yield reader.shuffle_seed
        elif isinstance(part, SampleFromDatasets) or (
            isinstance(part, Shuffle) and part.buffer != 1  # which yields what it is given
        ):
            yield part.seed


def check_global_seed_of_plan(plan: ResumePlan) -> None:
    """Refuse a global seed that is in force and with which a plan's pipeline read otherwise.

    The plan would then continue at a place in another order. What a log of examples has left is the
    same in any order.

    Raises:
        UsageError: the order was another one.
    """
    if plan.from_seen:
        return
    settings = plan.settings
    if plan.unseeded is not None:  # such a plan is one of the file order alone
        settings = replace(settings, buffer=None, buffer_seed=None, buffer_reshuffle=None)
    check_global_seed(settings, of_plan=True)


@contextlib.contextmanager
def global_seed_of(settings: ReadSettings) -> Iterator[None]:
    """Set the global seed that settings have for the block, and then what was in force before."""
    tf, before = tensorflow(), seed_in_force()
    if settings.global_seed is not None:
        tf.random.set_seed(settings.global_seed)
    try:
        yield
    finally:
        # Setting a seed restarts TensorFlow's count of seedless ops, so it is set only if it
        # changed.
        if seed_in_force() != before:
            tf.random.set_seed(before)
