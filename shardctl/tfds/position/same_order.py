"""Is a position one in the order that is read now, and if not, what is another?"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.settings.document import SettingsDocument, settings_in_force
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.stages.document import pipeline_of
from shardctl.core.stages.text import text_of
from shardctl.core.text import printable
from shardctl.errors import UsageError
from shardctl.files.position_file import PositionRecord
from shardctl.planning.resume.same_dataset import check_same_dataset
from shardctl.tfds.builder_layout import in_order_of

# What `Position.set_states` takes otherwise than it was.
SHAREABLE = frozenset(("host", "host_by", "batch"))


def check_same_order(
    then: PositionRecord,
    spec: str,
    settings: ReadSettings,
    dataset: Dataset,
    others: Mapping[str, Dataset],
    *,
    allow_version: bool,
    besides: Collection[str] = (),
) -> None:
    """Refuse a position in another order than that of a spec and settings.

    `dataset` is the builder's, `others` are those that readers of stages read besides, by their
    references. `allow_version` takes another version or config of the same layout. The settings
    named by `besides` may have changed.

    Raises:
        DatasetError: it is of another dataset; the text says everything in which.
        UsageError: it is of another spec or other settings; the text names them all.
    """
    pairs = [(then.dataset, dataset)]  # where a reference is gone the stages are others, see below
    pairs += [(was, others[ref]) for ref, was in then.sources.items() if ref in others]
    for was, one in pairs:
        now = in_order_of(one, [split.name for split in was.splits])
        check_same_dataset(was, now, "position", allow_version=allow_version)
    ordered = then.dataset.ordered  # as now
    old = settings_in_force(then.settings, ordered=ordered)
    new = settings_in_force(settings, ordered=ordered)
    changed = {
        name: f"{name} was {_said(name, old)}, now {_said(name, new)}"
        for name in dict.fromkeys((*new, *old))
        if name not in besides and old.get(name) != new.get(name)
    }
    if then.spec != spec:
        specs = f"spec was {printable(then.spec, 200)}, now {printable(spec, 200)}"
        changed = {"spec": specs, **changed}
    if changed:
        raise UsageError(
            f"the position is one in another order: {', '.join(changed.values())}; "
            f"{_way_out(then, settings, changed)}"
        )


def _way_out(then: PositionRecord, now: ReadSettings, changed: Collection[str]) -> str:
    hosts, hosts_now = (
        1 if settings.host is None else settings.host.count for settings in (then.settings, now)
    )
    if hosts != hosts_now and SHAREABLE.issuperset(changed):
        return f"set_states takes the states of all {hosts} processes to go on with {hosts_now}"
    if "spec" in changed or hosts != hosts_now:  # where its count would say nothing
        return f"give those that it had{', to set_states too' * (hosts != hosts_now)}"
    return f"where that is meant, begin with the count that it holds, consumed={then.consumed}"


def _said(name: str, in_force: SettingsDocument) -> str:
    """Return the value of a setting as people write it, stages as a text."""
    value = in_force.get(name)
    if name == "stages" and value is not None:
        value = text_of(pipeline_of(value))
    return printable(str(value), 200)
