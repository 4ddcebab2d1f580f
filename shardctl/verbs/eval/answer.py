"""How an evaluation on several hosts fills its batches: examples lost, shapes, steps that hang.

Source of the questions, and of "infinite padding": Flax, "Processing the entire Dataset".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from shardctl.base.arguments import checked
from shardctl.base.arrays import EqualByItems, Int64s
from shardctl.base.columns import Tabular
from shardctl.base.phrase import check_numbers, refused
from shardctl.base.text import counted, in_short
from shardctl.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.settings.keywords import ReaderSettings, Unpack
from shardctl.settings.read_settings import ReadSettings, SettingsLike, as_settings
from shardctl.settings.short_form import stages_of
from shardctl.settings.table import ENDLESS, OF_EPOCHS
from shardctl.spec.reads import Reads
from shardctl.spec.subsplit import Resolved, default_spec
from shardctl.stages.pipelines import readers_of
from shardctl.verbs.hosts.answer import MAX_NUM_HOSTS
from shardctl.verbs.hosts.sharing import Sharing, sharing_of

Remainder = Literal["ragged", "drop", "pad"]

REMAINDERS: tuple[Remainder, ...] = ("ragged", "drop", "pad")


@dataclass(frozen=True, kw_only=True)
class Hang:
    """A collective that some hosts enter and others never enter.

    step: the first step, from 0, that not every host makes.
    waiting: number of hosts that enter it, `first_waiting` the first of them.
    finished: number of hosts that have finished by then.
    """

    step: int
    waiting: int
    first_waiting: int
    finished: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation(EqualByItems, Tabular):
    """How the examples of a spec fill the batches of an evaluation; columns are int64[num_hosts].

    `device_batch` is the batch of one device, `host_batch` that of all devices of a host.
    `remainder` is what becomes of the examples that fill no batch: "ragged" yields them in a small
    one, "drop" drops them, "pad" fills the batch up, and adds batches of padding alone until every
    host has made as many as the one with the most ("infinite padding").
    `refusal` says why TFDS does not read this way on every host, None where it does.

    num_batches: batches that hold an example, partial ones counted; full_steps: steps of a host
        that drops them.
    sizes: the different sizes of a batch where partial ones are left.
    dropped_by_device_batch, dropped_by_host_batch: examples lost where partial batches of a device,
        or of a host, are dropped, besides what is left out in any case.
    num_repeated: examples that are yielded again and count twice in a metric, as it is set up.
    num_left_out: examples that no host yields, whatever becomes of remainders.
    partial_is_last: whether it is the last batch of a host alone that may be partial.
    is_simple: whether hosts yield their share once, one example after the other, as
        `shardctl.tfds.evaluation` does; else another loader or stages decide.
    own_padding: padding that the stages yield, on all hosts, with partial batches or without.
    other_epochs: what becomes of further epochs, "" where there are none.
    """

    dataset: Dataset
    spec: str
    settings: ReadSettings
    num_devices: int
    device_batch: int
    remainder: Remainder
    reads: Reads
    resolved: Resolved
    num_examples: Int64s
    num_batches: Int64s
    full_steps: Int64s
    sizes: tuple[int, ...]
    dropped_by_device_batch: int
    dropped_by_host_batch: int
    num_repeated: int = 0
    num_left_out: int = 0
    partial_is_last: bool = True
    is_simple: bool = True
    own_padding: Mapping[str, int] = field(default_factory=dict)
    other_epochs: str = ""
    warnings: tuple[str, ...] = ()
    refusal: str | None = None

    @property
    def num_hosts(self) -> int:
        """Number of hosts."""
        return len(self.num_examples)

    @property
    def total(self) -> int:
        """Number of examples in the spec."""
        return self.reads.num_examples

    @property
    def host_batch(self) -> int:
        """Examples in a full batch of a host, which its devices share."""
        return self.num_devices * self.device_batch

    @cached_property
    def remainders(self) -> Int64s:
        """Examples in each host's partial batches, 0 where there is none."""
        left: Int64s = np.maximum(self.num_examples - self.full_steps * self.host_batch, 0)
        return left

    @cached_property
    def padding(self) -> Int64s:
        """Examples that each host's partial batches lack, 0 where there is none."""
        padding: Int64s = self.num_batches * self.host_batch - self.num_examples
        return padding

    @cached_property
    def padding_batches(self) -> Int64s:
        """Batches of padding alone that each host needs to keep up with the one with the most."""
        batches: Int64s = self.num_batches.max() - self.num_batches
        return batches

    @checked
    def num_steps(self, remainder: Remainder) -> Int64s:
        """Return how many steps each host makes, by what is done with the remainder."""
        if remainder == "drop":
            return self.full_steps
        return self.num_batches + (self.padding_batches if remainder == "pad" else 0)

    @checked
    def distinct_shapes(self, remainder: Remainder) -> int:
        """Return how many shapes of a batch there are on all hosts, each of which XLA compiles."""
        if remainder == "drop":
            return int(self.host_batch in self.sizes)
        return int(bool(self.sizes)) if remainder == "pad" else len(self.sizes)

    @property
    def num_lost(self) -> int:
        """Examples that the evaluation as it is set up does not see."""
        dropped = self.dropped_by_host_batch if self.remainder == "drop" else 0
        return self.num_left_out + dropped

    @checked
    def hang(self, remainder: Remainder) -> Hang | None:
        """Return where a collective hangs, None where every host makes as many steps.

        A host waits in its collective (`psum`) for hosts that have no more batches.
        """
        steps = self.num_steps(remainder)
        least = int(steps.min())
        # Every host makes `least` steps; in the next one those with more wait for the others.
        waiting = np.flatnonzero(steps > least)
        if not len(waiting):
            return None
        return Hang(
            step=least,
            waiting=len(waiting),
            first_waiting=int(waiting[0]),
            finished=self.num_hosts - len(waiting),
        )

    @property
    def differing_step(self) -> int | None:
        """First step, from 0, that all hosts make with ragged batches of different sizes, or None.

        They then run different XLA programs, which breaks SPMD even if no host waits. It is known
        where the last batch of a host alone may be partial.
        """
        # Partial batches may be anywhere, or several on a host, so the first of them is not known.
        if not self.partial_is_last or int((self.num_batches - self.full_steps).max()) > 1:
            return None
        least, most = int(self.num_examples.min()), int(self.num_examples.max())
        # The emptiest host has the first partial batch, unless its examples fill all of its
        # batches.
        if self.remainder != "ragged" or least == most or not least % self.host_batch:
            return None
        return least // self.host_batch

    def __repr__(self) -> str:
        hang = self.hang(self.remainder)
        return in_short(
            self,
            f"{self.dataset.title} {self.spec}",
            counted(self.num_hosts, "host"),
            f"batches of {self.num_devices} x {self.device_batch:,}",
            f"{self.num_lost:,} of {counted(self.total, 'example')} lost",
            "" if hang is None else f"hangs at step {hang.step:,}",
        )


EVAL_SPLITS = ("test", "validation")
_MAX_BATCH = 2**31 - 1
_OTHER_EPOCHS = "of --epochs only one is counted; others may differ"


@checked
def evaluate(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    batch: int | None = None,
    batch_per_device: int | None = None,
    hosts: int = 1,
    devices: int = 1,
    remainder: Remainder = "ragged",
    **keywords: Unpack[ReaderSettings],
) -> Evaluation:
    """Return how the examples of a spec fill the batches of an evaluation, and what is lost.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: what is evaluated on; None is `test`, `validation`, else `train`.
        settings, keywords: of these `host_by` and the file order matter, and not the batch; of
            epochs one is counted. Stages count as they are, and another loader forms its own
            batches.
        batch: the batch size of a host, which its devices share; None where stages form batches.
        batch_per_device: the batch size of a device, in place of `batch`.
        hosts: how many hosts share the examples.
        devices: how many each host has.
        remainder: what is done with examples that fill no batch: "ragged", "drop" or "pad".

    Returns:
        An Evaluation; its columns, as `num_examples`, have a number for each host.

    Raises:
        UsageError: a bad spec, a number outside its range, or TFDS refuses to split it so.
        UnpredictableOrderError: the order of the splits decides, and it is nondeterministic.

    >>> import shardctl
    >>> alone = shardctl.evaluate("mnist", batch=512)
    >>> alone.num_batches.tolist(), alone.remainders.tolist(), alone.dropped_by_device_batch
    ([20], [272], 272)
    >>> shardctl.evaluate("mnist", batch=512, hosts=6).num_examples.tolist()
    [1667, 1667, 1667, 1667, 1666, 1666]
    """
    check_numbers(MAX_NUM_HOSTS, hosts=hosts, devices=devices)
    check_numbers(_MAX_BATCH, batch=batch, batch_per_device=batch_per_device)
    batch_per_device = size_per_device(batch, batch_per_device, devices)
    dataset, settings = as_dataset(dataset), as_settings(settings)
    if settings.is_endless:
        raise refused("{} has no end, so the evaluation never ends; leave it out", ENDLESS)
    # One epoch is enough, and batches are formed below.
    epochs = settings.epochs
    settings = replace(settings, epochs=1, batch=None, drop_remainder=False)
    # Where every reader of the stages names what it reads, no spec is needed.
    named = all(read.spec or read.data for read in readers_of(stages_of(settings)))
    spec = _default(dataset) if spec is None and not named else spec
    sharing = sharing_of(dataset, spec, settings)
    batch = _device_batch(sharing, batch_per_device, devices)
    host_batch = batch * devices
    # The stages drop partial batches by themselves.
    if remainder == "ragged" and sharing.drops:
        remainder = "drop"
    # Three runs: with partial batches, dropped per host, dropped per device.
    ragged = sharing.run(hosts, host_batch, drop=False)
    full = sharing.run(hosts, host_batch, drop=True)
    of_device = sharing.run(hosts, batch, drop=True)
    shown = full if remainder == "drop" else ragged
    refusal = sharing.refusal(hosts)
    return Evaluation(
        dataset=sharing.resolved.dataset,
        spec=sharing.resolved.spec,
        settings=sharing.settings,
        num_devices=devices,
        device_batch=batch,
        remainder=remainder,
        reads=sharing.reads,
        resolved=sharing.resolved,
        num_examples=ragged.num_examples,
        num_batches=ragged.num_steps,
        full_steps=full.num_steps,
        sizes=ragged.sizes,
        dropped_by_device_batch=ragged.num_seen - of_device.num_seen,
        dropped_by_host_batch=ragged.num_seen - full.num_seen,
        # Examples yielded, less the different ones among them.
        num_repeated=int(shown.num_examples.sum()) - shown.num_seen,
        num_left_out=sharing.reads.num_examples - ragged.num_seen,
        partial_is_last=ragged.partial_is_last,
        is_simple=sharing.is_simple,
        own_padding={"ragged": ragged.num_padding, "drop": full.num_padding},
        other_epochs=_OTHER_EPOCHS if epochs > 1 else "",
        warnings=(
            *sharing.resolved.warnings,
            *([refusal] if refusal else []),
            *sharing.assumptions(hosts, host_batch),
        ),
        refusal=refusal,
    )


def size_per_device(batch: int | None, batch_per_device: int | None, devices: int) -> int | None:
    """Return the batch size of a device, of which one of the two sizes is given, or none."""
    if batch is None:
        return batch_per_device
    if batch_per_device is not None:
        raise refused("{batch} and {batch_per_device} are two sizes of one batch; give one")
    if batch % devices:
        raise refused(
            "{batch=} is not shared evenly by {devices=}; give {batch_per_device} instead",
            batch=batch,
            devices=devices,
        )
    return batch // devices


def _device_batch(sharing: Sharing, batch: int | None, devices: int) -> int:
    """Return the examples in the batch of one device, of which stages may form those of a host."""
    own = sharing.own_batch
    if own is None:
        if batch is None:
            raise refused("how large is a batch? give {batch=N}")
        return batch
    if batch is not None or own % devices:
        raise refused(
            "{stages} make batches of {:,}, which {devices=} are to share; leave {batch} out, and "
            "give a number of devices that divides it",
            own,
            devices=devices,
        )
    return own // devices


def of_training(
    settings: ReadSettings, given: Collection[str] = ()
) -> tuple[ReadSettings, tuple[str, ...]]:
    """Return settings of training as an evaluation has them, and what is said of that.

    Left out are stages, epochs and files that repeat; not those `given` for the evaluation itself.
    """
    if not settings.reader.on_tf_data and settings.stages is not None:
        return settings, ()  # what another loader evaluates on is its chain
    bare = ReadSettings()
    left_out = [name for name in OF_EPOCHS if name not in given]
    kept = replace(settings, **{name: getattr(bare, name) for name in left_out})
    if kept.stages == settings.stages:
        return kept, ()
    said = (
        "--stages are left out: the evaluation reads what --host-by shares, in batches of --batch"
    )
    return kept, (said,)


def _default(dataset: Dataset) -> str:
    names = {split.name for split in dataset.splits}
    return next((name for name in EVAL_SPLITS if name in names), None) or default_spec(dataset)
