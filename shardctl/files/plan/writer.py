"""A plan to resume as the plan file: JSON or YAML, an instruction a line, for a million as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from json.encoder import encode_basestring
from typing import Any

from shardctl.core.instructions.reads import Reads
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.files.documents import Document, to_json, to_yaml
from shardctl.files.plan.document import resume_document

_PIECE = 1 << 14  # instructions made into text at once
_LISTS = ("file_instructions", "hosts")

_KEYS = ("filename", "split", "skip", "take", "examples_in_shard")
CSV_HEADER = ("host", *_KEYS)


def plan_json(plan: ResumePlan, extra: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Yield the plan file as JSON; `extra` fields come last."""
    separator = "{\n"
    for key, value in _parts(plan, extra):
        yield separator
        separator = ",\n"
        if key == "file_instructions":
            yield '  "file_instructions": ['
            yield from _json_records(value, "    ")
            yield "\n  ]" if len(value) else "]"
        elif key == "hosts":
            yield '  "hosts": ['
            yield from _json_hosts(value)
            yield "\n  ]"
        else:
            # These hold a mapping each, so they take a line a field between the braces.
            yield "".join(to_json(value))[2:-3]
    yield "\n}\n"


def plan_yaml(plan: ResumePlan, extra: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Yield the plan file as YAML; `extra` fields come last."""
    for key, value in _parts(plan, extra):
        if key == "file_instructions":
            yield "file_instructions:" + ("\n" if len(value) else " []\n")
            yield from _yaml_records(value, "")
        elif key == "hosts":
            yield "hosts:\n"
            for host in value:
                lead = "- "
                for name in ("index", "count", "num_examples"):
                    yield f"{lead}{name}: {host[name]}\n"
                    lead = "  "
                reads = host["file_instructions"]
                yield "  file_instructions:" + ("\n" if len(reads) else " []\n")
                yield from _yaml_records(reads, "  ")
        else:
            yield from to_yaml(value)


def instruction_rows(plan: ResumePlan) -> Iterator[Sequence[object]]:
    """Yield a CSV row for each file instruction; the host is empty where the plan is for one."""
    for host, reads in ((None, plan.instructions), *_shares(plan)):
        for start in range(0, len(reads), _PIECE):
            piece = reads.select(slice(start, start + _PIECE))
            columns = (piece.skip, piece.take, piece.examples_in_shard)
            yield from zip(
                repeat(host, len(piece)),
                piece.filenames(),
                [reads.split_names[index] for index in piece.split.tolist()],
                *(column.tolist() for column in columns),
                strict=True,
            )


def record_size(reads: Reads) -> int:
    """Return about how many bytes an instruction takes in a plan file."""
    return len("".join(_json_records(reads.select(slice(-1, None)), "    ")))


def _shares(plan: ResumePlan) -> Iterator[tuple[str, Reads]]:
    return ((f"{host.index}/{host.count}", host.instructions) for host in plan.hosts)


def _parts(plan: ResumePlan, extra: Mapping[str, Any] | None) -> Iterator[tuple[str, Any]]:
    """Yield the lists of instructions by their keys, and the fields between them together."""
    fields: Document = {}
    for key, value in {**resume_document(plan), **(extra or {})}.items():
        if key not in _LISTS:
            fields[key] = value
            continue
        if fields:
            yield "", fields
        yield key, value
        fields = {}
    if fields:
        yield "", fields


def _json_hosts(hosts: Sequence[Document]) -> Iterator[str]:
    separator = "\n"
    for host in hosts:
        reads = host["file_instructions"]
        yield f"{separator}    {{\n"
        for name in ("index", "count", "num_examples"):
            yield f'      "{name}": {host[name]},\n'
        yield '      "file_instructions": ['
        yield from _json_records(reads, "        ")
        yield "\n      ]\n    }" if len(reads) else "]\n    }"
        separator = ",\n"


def _json_records(reads: Reads, indent: str) -> Iterator[str]:
    """Yield the records of a JSON list, each on a line; the first begins with a line break."""
    lead = f"\n{indent}"
    separator = f",\n{indent}"
    for texts in _pieces(reads, '"{}": %s', to_json):
        yield lead + separator.join(texts)
        lead = separator


def _yaml_records(reads: Reads, indent: str) -> Iterator[str]:
    """Yield the records of a YAML list, each on a line."""
    lead = f"{indent}- "
    separator = f"\n{lead}"
    for texts in _pieces(reads, "{}: %s", to_yaml):
        yield lead + separator.join(texts) + "\n"


def _pieces(reads: Reads, field: str, write: Callable[[Any], Iterator[str]]) -> Iterator[list[str]]:
    """Yield lists of records as text; `field` is the pattern of one, `write` writes any value."""
    keys = [*_KEYS, "shard_index"] if reads.names_repeat else _KEYS
    record = f"{{{', '.join(map(field.format, keys))}}}"
    splits = _quoted(reads.split_names, write)
    for start in range(0, len(reads), _PIECE):
        piece = reads.select(slice(start, start + _PIECE))
        columns = [piece.skip, piece.take, piece.examples_in_shard]
        if reads.names_repeat and piece.shard_index is not None:
            columns.append(piece.shard_index)
        names = _quoted(piece.filenames(), write)
        split = [splits[index] for index in piece.split.tolist()]
        rows = zip(names, split, *(column.tolist() for column in columns), strict=True)
        yield [record % row for row in rows]


def _quoted(names: Sequence[str], write: Callable[[Any], Iterator[str]]) -> list[str]:
    """Return names in double quotes; of what can be printed JSON and YAML make the same."""
    together = "".join(names)
    if not together.isprintable() or "##" in together:
        return ["".join(write(name)).strip() for name in names]
    if '"' in together or "\\" in together:
        return list(map(encode_basestring, names))
    return [f'"{name}"' for name in names]
