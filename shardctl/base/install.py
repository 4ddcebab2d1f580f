"""Commands that install what is missing, into the environment that runs shardctl."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from importlib import import_module
from typing import Any

from shardctl.errors import MissingDependencyError

# What the extras of pyproject.toml ask for: packages by name, with the oldest version.
_OLDEST = (  # noqa: SIM905  # a list would take a line for each
    "tensorflow>=2.16 tensorflow-datasets>=4.9.4 array-record>=0.5 pyarrow>=15 zstandard>=0.20 "
    "gcsfs>=2024.2 s3fs>=2024.2 huggingface-hub>=0.23 datasets>=3.0.2 requests>=2.31 "
    "apache-beam>=2.77 orbax-checkpoint>=0.11.25 grain>=0.2.16 torch>=2.13 torchdata>=0.11 "
    "accelerate>=1.15"
).split()
REQUIREMENTS = {one.partition(">=")[0]: one for one in _OLDEST}


def to_install(*packages: str) -> str:
    """Return the command that installs packages where this Python finds them.

    It names them and not an extra of shardctl, which may have come from a clone, a file or a URL.

    >>> to_install("pyarrow").partition(" install ")[2]
    "'pyarrow>=15'"
    """
    from importlib.util import find_spec

    wanted = shlex.join(REQUIREMENTS.get(name, name) for name in packages)
    python = sys.executable or "python"
    if find_spec("pip") is None:  # as uv makes its environments
        return f"uv pip install --python {shlex.quote(python)} {wanted}"
    found = shutil.which("python") or ""
    is_first = os.path.dirname(found) == os.path.dirname(python)
    return f"{'python' if is_first else shlex.quote(python)} -m pip install {wanted}"


def imported(module: str, title: str, package: str, *, needs: str = "this") -> Any:
    """Return a module, imported now; `title` is what people call what has it.

    Raises:
        MissingDependencyError: it is not installed; names the command that installs it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise missing(title, package, error, needs=needs) from error


def missing(
    title: str, package: str, error: ImportError, *, needs: str = "this"
) -> MissingDependencyError:
    """Return the error of a library that cannot be imported."""
    return MissingDependencyError(
        f"{title} is needed for {needs} and cannot be imported ({error}); "
        f"install it with: {to_install(package)}"
    )
