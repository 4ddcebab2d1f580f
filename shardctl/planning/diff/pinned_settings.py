"""Which settings does an order have now, where nobody says otherwise?"""

from __future__ import annotations

from typing import Any

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.settings.document import as_keys, settings_from_document
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.snapshot.snapshot import Snapshot
from shardctl.errors import UsageError


def settings_to_fall_back_on(pinned: Snapshot, dataset: Dataset) -> dict[str, Any]:
    """Return the arguments of `ReadSettings` that a snapshot means on the dataset as it is now.

    A cycle length that was the default of its dataset stays the default: it changes where the
    dataset has become an ordered one. A list of files that is pinned as a hash is left out, so that
    it has to be given again.
    """
    document = dict(pinned.pipeline)
    if isinstance(document.get("file_order"), str):
        del document["file_order"]
    default = ReadSettings().cycle_length(ordered=pinned.ordered)
    if pinned.ordered != dataset.ordered and document.get("cycle") == default:
        del document["cycle"]
    try:
        return settings_from_document(document)
    except UsageError as error:
        raise UsageError(as_keys(error, "the snapshot's pipeline")) from None
