"""What can go wrong, each kind with the exit code that the command line gives it."""

from __future__ import annotations


class ShardctlError(Exception):
    """Base of every error that shardctl raises on purpose; its text is one line for people."""

    exit_code = 2


class UsageError(ShardctlError):
    """A value given by the caller breaks a rule: an option, a spec, a position, a seed."""


class UnknownArgumentError(UsageError, TypeError):
    """A keyword that is no argument of a function, which is a TypeError for Python too."""


class NotASplitError(UsageError):
    """A part of a spec names no split; `named` is that part, which may be something else."""

    def __init__(self, message: str, named: str = "") -> None:
        super().__init__(message)
        self.named = named


class UnnamedDatasetError(UsageError):
    """No dataset is named, where an answer is kept or checked."""


class DatasetError(ShardctlError):
    """A dataset, its metadata or a layout file is missing, broken or contradicts itself."""


class NotThereError(DatasetError):
    """No file, or no folder, is at a path."""


class UnpredictableOrderError(ShardctlError):
    """The order is nondeterministic; the text says why, and how to fix it."""


class MissingDependencyError(ShardctlError):
    """A package that only this call needs is not installed; the text says how to install it."""


class UnprovenVersionWarning(UserWarning):
    """TensorFlow is newer than any that predictions were compared with; said once a process."""
