"""Dataset names and versions as TFDS writes them: `coco/2017:1.1.0`, `mnist:3.*.*`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from shardctl.dataset.dataset import dataset_title

# TFDS core/naming.py, _NAME_REG, without namespaces and builder arguments.
_NAME = re.compile(
    r"(?P<name>[a-zA-Z][a-zA-Z0-9_]*)"
    r"(?:/(?P<config>[\w+.-]+))?"
    r"(?::(?P<version>(?:[0-9]+|\*)(?:\.(?:[0-9]+|\*)){2}))?"
)
_VERSION = re.compile(r"(0|[1-9][0-9]{0,17})\.(0|[1-9][0-9]{0,17})\.(0|[1-9][0-9]{0,17})")


@dataclass(frozen=True, kw_only=True)
class DatasetName:
    """A name to look up; `version` may have wildcards, None is the newest.

    `typed` is the name as its writer has it, "" where nobody wrote it.
    """

    name: str
    config: str | None = None
    version: str | None = None
    typed: str = field(default="", compare=False, repr=False)

    def __str__(self) -> str:
        return dataset_title(self.name, self.config, self.version)

    @property
    def said(self) -> str:
        """The name as messages repeat it: as it was typed."""
        return self.typed or str(self)

    def readings(self) -> Iterator[DatasetName]:
        """Yield the name itself, then the reading of `mnist/3.0.1` as TFDS prints full names.

        >>> [str(name) for name in DatasetName(name="mnist", config="3.0.1").readings()]
        ['mnist/3.0.1', 'mnist:3.0.1']
        """
        yield self
        if self.config is not None and self.version is None and version_key(self.config):
            yield replace(self, config=None, version=self.config)


def parse_dataset_name(text: str) -> DatasetName | None:
    """Return the parts of a dataset name, None where the text is not a dataset name.

    CamelCase becomes snake_case, as in TFDS; `name/config/1.0.0`, the full name that TFDS prints,
    is `name/config:1.0.0`.

    >>> parse_dataset_name("FashionMnist:3.*.*")
    DatasetName(name='fashion_mnist', config=None, version='3.*.*')
    """
    typed = text
    folder, _, last = text.rpartition("/")
    if "/" in folder and version_key(last):
        text = f"{folder}:{last}"
    match = _NAME.fullmatch(text)
    if match is None:
        return None
    return DatasetName(
        name=snake_case(match["name"]),
        config=match["config"],
        version=match["version"],
        typed=typed,
    )


def snake_case(name: str) -> str:
    """Return CamelCase as snake_case (TFDS core/naming.py, camelcase_to_snakecase)."""
    name = re.sub("(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    return re.sub("([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def version_key(text: str) -> tuple[int, int, int] | None:
    """Return what versions are sorted by, None where the text is not a version x.y.z.

    >>> version_key("10.0.2"), version_key("1.0"), version_key("01.0.0")
    ((10, 0, 2), None, None)
    """
    match = _VERSION.fullmatch(text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def newest_version(versions: Iterable[str], wanted: str | None = None) -> str | None:
    """Return the newest of some versions that matches the wanted one, None where none does.

    >>> newest_version(["3.9.0", "3.10.0", "4.0.0"], "3.*.*")
    '3.10.0'
    """
    keys = {version: key for version in versions if (key := version_key(version))}
    if wanted is not None:
        parts = wanted.split(".")
        keys = {
            version: key
            for version, key in keys.items()
            if all(part in ("*", str(number)) for part, number in zip(parts, key, strict=True))
        }
    return max(keys, key=lambda version: keys[version], default=None)
