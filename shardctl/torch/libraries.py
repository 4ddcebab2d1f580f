"""PyTorch, imported when a call needs it and not before."""

from __future__ import annotations

import importlib
from typing import Any

from shardctl.errors import MissingDependencyError


def torch_data() -> Any:
    """Return the module `torch.utils.data`.

    Raises:
        MissingDependencyError: PyTorch is not installed.
    """
    try:
        return importlib.import_module("torch.utils.data")
    except ImportError as error:
        raise MissingDependencyError(
            f"PyTorch is needed for this and cannot be imported ({error}); "
            "install it with: pip install 'shardctl[torch]'"
        ) from error
