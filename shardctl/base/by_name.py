"""What lower rooms ask of higher ones, by a name: `shardctl/__init__.py` says where each is found.

So a Dataset is read where a reference is given, although the core opens no files.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in shardctl/__init__.py, which loads this
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PROVIDERS: dict[str, str] = {}  # a name -> "module:function", below `shardctl`


def provided(name: str) -> Callable[..., Any]:
    """Return the function of a name; its module is imported when it is first asked for.

    >>> provided("dataset").__name__
    'dataset_of_argument'
    """
    found: Callable[..., Any] = named(f"shardctl.{PROVIDERS[name]}")
    return found


def named(name: str) -> Any:
    """Return what "module:name" names, imported now.

    By name, so that a table of such names imports none of the modules.
    """
    import importlib

    module, _, inside = name.partition(":")
    return getattr(importlib.import_module(module), inside)
