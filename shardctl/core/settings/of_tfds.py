"""What TFDS's reader alone can do, refused to other loaders by name."""

from __future__ import annotations

from shardctl.core.loaders.loader import LOADERS
from shardctl.core.phrase import phrase
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.errors import UsageError


def refuse_loader(settings: ReadSettings, what: str, instead: str) -> None:
    """Refuse settings of another loader where `what` is about TFDS's reader on tf.data.

    >>> refuse_loader(ReadSettings(loader="torch"), "a plan file", "give resume the options")
    Traceback (most recent call last):
    ...
    shardctl.errors.UsageError: loader="torch": a plan file is of TFDS's reader on tf.data, and \
PyTorch's DataLoader reads here; give resume the options

    Raises:
        UsageError: another loader reads.
    """
    if settings.loader == "tfds":
        return
    raise UsageError(
        phrase(
            "{loader=}: {} is of TFDS's reader on tf.data, and {} reads here; {}",
            what,
            LOADERS[settings.loader].title,
            instead,
            loader=settings.loader,
        )
    )
