"""Does an evaluation on several hosts see every example, in one shape, without hanging?

Source of the questions, and of "infinite padding": Flax, "Processing the entire Dataset".
"""

from __future__ import annotations

from shardctl.core.arguments.checked import checked
from shardctl.core.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.core.hosts.host_reads import SharedReads
from shardctl.core.instructions.file_order import sorted_rows
from shardctl.core.instructions.reads import reads_of
from shardctl.core.instructions.subsplit import default_spec
from shardctl.core.phrase import Argument, phrase
from shardctl.core.settings.read_settings import ReadSettings, SettingsLike, as_settings
from shardctl.errors import UsageError
from shardctl.planning.eval.evaluation import Evaluation, Remainder
from shardctl.planning.eval.loaders import evaluate_loader
from shardctl.planning.file_formats import refuse_open_hosts
from shardctl.planning.hosts.hosts import MAX_NUM_HOSTS
from shardctl.planning.hosts.strategy import refusal
from shardctl.planning.order import resolved_spec

EVAL_SPLITS = ("test", "validation")
_MAX_BATCH = 2**31 - 1


@checked
def evaluate(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    batch: int,
    hosts: int = 1,
    devices: int = 1,
    remainder: Remainder = "ragged",
) -> Evaluation:
    """Return how the examples of a spec fill the batches of an evaluation, and what is lost.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: what is evaluated on; None is `test`, `validation`, else `train`.
        settings: of these only `host_by` and the file order matter; another loader forms its own
            batches, and counts as it is set up.
        batch: examples in the batch of one device.
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
        if not 1 <= number <= most:
            given = Argument(name, number, given=True)
            raise UsageError(phrase("{}: a number from 1 to {} is needed", given, most))
    dataset, settings = as_dataset(dataset), as_settings(settings)
    resolved = resolved_spec(dataset, _default(dataset) if spec is None else spec)
    if settings.loader != "tfds":
        return evaluate_loader(
            resolved,
            settings,
            batch=batch,
            hosts=hosts,
            devices=devices,
            remainder=remainder,
        )
    refuse_open_hosts(resolved, settings.host_mode, hosts)
    reads = sorted_rows(
        reads_of(dataset, resolved.ranges),
        reverse=settings.reverse,
        file_order=settings.file_order,
    )
    num_examples = settings.host_mode.num_examples(SharedReads(reads, resolved.ranges), hosts)
    refused = refusal(settings.host_mode, num_examples, len(reads))
    return Evaluation(
        dataset=dataset,
        spec=resolved.spec,
        settings=settings,
        num_devices=devices,
        device_batch=batch,
        remainder=remainder,
        reads=reads,
        resolved=resolved,
        num_examples=num_examples,
        warnings=(*resolved.warnings, *([refused] if refused else []), *_left_out(settings)),
        refusal=refused,
    )


def _left_out(settings: ReadSettings) -> tuple[str, ...]:
    if settings.stages is None:
        return ()
    return (
        phrase(
            "{stages} are left out: an evaluation is counted from what {host_by} shares, in "
            "batches of {batch}"
        ),
    )


def _default(dataset: Dataset) -> str:
    names = {split.name for split in dataset.splits}
    return next((name for name in EVAL_SPLITS if name in names), None) or default_spec(dataset)
