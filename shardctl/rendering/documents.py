"""Plans as JSON, YAML and CSV: the fields that programs rely on, in the order they are promised."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from shardctl.core.dataset import Dataset

Document = dict[str, Any]

FORMAT_VERSION = 1


def head(kind: str, dataset: Dataset) -> Document:
    """Return the fields every document begins with."""
    return {
        "format_version": FORMAT_VERSION,
        "kind": kind,
        "dataset": {
            "name": dataset.name,
            "config": dataset.config,
            "version": dataset.version,
            "file_format": dataset.file_format,
            "data_dir": dataset.data_dir,
            "fingerprint": dataset.fingerprint,
        },
    }


def to_json(document: Document) -> Iterator[str]:
    """Yield a document as JSON: indented, with every record and every list of scalars on a line.

    >>> print("".join(to_json({"a": 1, "rows": [{"x": 1}, {"x": 2}], "ids": [1, 2]})), end="")
    {
      "a": 1,
      "rows": [
        {"x": 1},
        {"x": 2}
      ],
      "ids": [1, 2]
    }
    """
    yield from _json(document, "")
    yield "\n"


def _json(value: object, indent: str) -> Iterator[str]:
    # The encoder written in C works on values without line breaks, so lines are made of those.
    if isinstance(value, Mapping) and any(map(_nested, value.values())):
        items = [f"{json.dumps(str(key), ensure_ascii=False)}: " for key in value]
        yield from _lines("{}", items, list(value.values()), indent)
    elif isinstance(value, (list, tuple)) and any(map(_nested, value)):
        yield from _lines("[]", [""] * len(value), value, indent)
    else:
        yield json.dumps(value, ensure_ascii=False)


def _nested(value: object) -> bool:
    return isinstance(value, (Mapping, list, tuple))


def _lines(
    brackets: str, keys: Sequence[str], values: Sequence[object], indent: str
) -> Iterator[str]:
    deeper = indent + "  "
    separator = f"{brackets[0]}\n"
    for key, value in zip(keys, values, strict=True):
        yield f"{separator}{deeper}{key}"
        yield from _json(value, deeper)
        separator = ",\n"
    yield f"\n{indent}{brackets[1]}"


def to_yaml(document: Document) -> Iterator[str]:
    """Yield a document as YAML with the innermost records and lists in flow style."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    yield yaml.dump(
        document,
        Dumper=dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=120,
    )


def to_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    r"""Yield rows as CSV (RFC 4180, with line feeds).

    >>> "".join(to_csv(["a", "b"], [[1, "x,y"]]))
    'a,b\n1,"x,y"\n'
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow(["" if cell is None else cell for cell in row])
        if buffer.tell() > 1 << 16:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()
