"""Is a position one in the order that is read now, and if not, what is another?"""

from __future__ import annotations

from collections.abc import Mapping

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


def check_same_order(
    then: PositionRecord,
    spec: str,
    settings: ReadSettings,
    datasets: Mapping[str | None, Dataset],
    *,
    allow_version: bool,
) -> None:
    """Refuse a position in another order than that of a spec and settings.

    `datasets` are those that are read, by how the readers of stages name them; None is the
    builder's. `allow_version` takes another version or config of the same layout.

    Raises:
        DatasetError: it is of another dataset; the text says everything in which.
        UsageError: it is of another spec or other settings; the text names them all.
    """
    for ref, identity in ((None, then.dataset), *then.sources.items()):
        if ref in datasets:  # else the stages are others, which is said below
            now = in_order_of(datasets[ref], [split.name for split in identity.splits])
            check_same_dataset(identity, now, "position", allow_version=allow_version)
    ordered = then.dataset.ordered  # as now
    old = settings_in_force(then.settings, ordered=ordered)
    new = settings_in_force(settings, ordered=ordered)
    others = [
        f"{name} was {_said(name, old)}, now {_said(name, new)}"
        for name in dict.fromkeys((*new, *old))
        if old.get(name) != new.get(name)
    ]
    if then.spec != spec:
        others.insert(0, f"SPEC was {printable(then.spec, 200)}, now {printable(spec, 200)}")
    if others:
        raise UsageError(
            f"the position is one in another order: {', '.join(others)}; where that is meant, "
            f"begin with the count that it holds, consumed={then.consumed}"
        )


def _said(name: str, in_force: SettingsDocument) -> str:
    """Return the value of a setting as people write it, stages as a text."""
    value = in_force.get(name)
    if name == "stages" and value is not None:
        value = text_of(pipeline_of(value))
    return printable(str(value), 200)
