"""Does an evaluation on several hosts see every example, in one shape, without hanging?

Source of the questions, and of "infinite padding": Flax, "Processing the entire Dataset".
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from shardctl.core.arguments.checked import checked
from shardctl.core.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.core.instructions.subsplit import default_spec
from shardctl.core.phrase import Argument, phrase, refused
from shardctl.core.settings.read_settings import ReadSettings, SettingsLike, as_settings
from shardctl.core.settings.short_form import stages_of
from shardctl.core.settings.table import ENDLESS, OF_EPOCHS
from shardctl.core.stages.pipelines import readers_of
from shardctl.core.text import counted
from shardctl.planning.eval.evaluation import Evaluation, Remainder
from shardctl.planning.hosts.hosts import MAX_NUM_HOSTS
from shardctl.planning.hosts.readers import sharing_of
from shardctl.planning.hosts.sharing import Sharing

EVAL_SPLITS = ("test", "validation")
_MAX_BATCH = 2**31 - 1
_OTHER_EPOCHS = phrase(
    "of {epochs} one is counted, as if each were iterated by itself; others may differ"
)


@checked
def evaluate(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    batch: int | None = None,
    hosts: int = 1,
    devices: int = 1,
    remainder: Remainder = "ragged",
) -> Evaluation:
    """Return how the examples of a spec fill the batches of an evaluation, and what is lost.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: what is evaluated on; None is `test`, `validation`, else `train`.
        settings: of these `host_by` and the file order matter, and not the batch; of epochs one is
            counted. Stages count as they are, and another loader forms its own batches.
        batch: examples in the batch of one device; None where stages form those of a host.
        hosts: how many hosts share the examples.
        devices: how many each host has.
        remainder: what is done with examples that fill no batch: "ragged", "drop" or "pad".

    Returns:
        An Evaluation; its columns, as `num_examples`, have a number for each host.

    Raises:
        UsageError: a bad spec, a number outside its range, or TFDS refuses to split it so.
        UnpredictableOrderError: the order of the splits decides, and TFDS leaves it open.

    >>> import shardctl
    >>> alone = shardctl.evaluate("mnist", batch=512)
    >>> alone.num_batches.tolist(), alone.remainders.tolist(), alone.dropped_by_device_batch
    ([20], [272], 272)
    >>> shardctl.evaluate("mnist", batch=512, hosts=6).num_examples.tolist()
    [1667, 1667, 1667, 1667, 1666, 1666]
    """
    for name, number, most in (
        ("hosts", hosts, MAX_NUM_HOSTS),
        ("devices", devices, MAX_NUM_HOSTS),
        ("batch", batch, _MAX_BATCH),
    ):
        if number is not None and not 1 <= number <= most:
            given = Argument(name, number, given=True)
            raise refused("{}: a number from 1 to {} is needed", given, most)
    dataset, settings = as_dataset(dataset), as_settings(settings)
    if settings.is_endless:
        raise refused(
            "{} has no end, so the evaluation has none either: no host is ever done; leave it out",
            ENDLESS,
        )
    epochs = settings.epochs
    settings = replace(settings, epochs=1, batch=None, drop_remainder=False)
    named = all(read.spec or read.data for read in readers_of(stages_of(settings)))
    spec = _default(dataset) if spec is None and not named else spec
    sharing = sharing_of(dataset, spec, settings)
    batch = _device_batch(sharing, batch, devices)
    host_batch = batch * devices
    if remainder == "ragged" and sharing.drops:
        remainder = "drop"
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
        num_repeated=int(shown.num_examples.sum()) - shown.num_seen,
        num_left_out=sharing.reads.num_examples - ragged.num_seen,
        partial_is_last=ragged.partial_is_last,
        is_simple=sharing.is_simple,
        other_epochs=_OTHER_EPOCHS if epochs > 1 else "",
        warnings=(
            *sharing.resolved.warnings,
            *([refusal] if refusal else []),
            *sharing.assumptions(hosts, host_batch),
        ),
        refusal=refusal,
    )


def _device_batch(sharing: Sharing, batch: int | None, devices: int) -> int:
    """Return the examples in the batch of one device, of which stages may form those of a host."""
    own = sharing.own_batch
    if own is None:
        if batch is None:
            raise refused("how large is the batch of one device? give {batch=N}")
        return batch
    if own % devices:
        raise refused(
            "{stages} make batches of {:,}, which do not divide among {devices=}",
            own,
            devices=devices,
        )
    if batch is not None and batch * devices != own:
        raise refused(
            "{batch=} on {} is {:,} examples a step, and {stages} make batches of {:,}; leave "
            "{batch} out",
            counted(devices, "device"),
            batch * devices,
            own,
            batch=batch,
        )
    return own // devices


def of_training(
    settings: ReadSettings, given: Collection[str] = ()
) -> tuple[ReadSettings, tuple[str, ...]]:
    """Return settings of training as an evaluation has them, and what is said of that.

    Left out are stages, epochs and files that repeat; not those `given` for the evaluation itself.
    """
    bare = ReadSettings()
    left_out = [name for name in OF_EPOCHS if name not in given]
    kept = replace(settings, **{name: getattr(bare, name) for name in left_out})
    if kept.stages == settings.stages:
        return kept, ()
    said = phrase(
        "{stages} are left out: an evaluation is counted from what {host_by} shares, in batches of "
        "{batch}"
    )
    return kept, (said,)


def _default(dataset: Dataset) -> str:
    names = {split.name for split in dataset.splits}
    return next((name for name in EVAL_SPLITS if name in names), None) or default_spec(dataset)
