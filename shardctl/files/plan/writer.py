"""A plan to resume as the plan file: JSON or YAML, an instruction a line, for a million as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from json.encoder import encode_basestring
from typing import Any

from shardctl.core.columns import HOLE, RecordStream, Texts
from shardctl.core.instructions.reads import Reads
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.files.documents import Document, to_json, to_yaml
from shardctl.files.plan.document import resume_document
from shardctl.files.rows_as_bytes import Part, parts_of, rows_as_bytes

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


def instruction_rows(plan: ResumePlan) -> RecordStream:
    """Return a CSV row for each file instruction; the host is empty where the plan is for one."""
    return RecordStream(
        CSV_HEADER,
        lambda: (
            (count, [host, *cells])
            for host, reads in ((None, plan.instructions), *_shares(plan))
            for count, cells in reads.records(_KEYS).pieces()
        ),
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
        if key not in _LISTS or value is None:
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
    texts = _written(reads, f",\n{indent}", '"{}": ', "", to_json)
    yield next(texts, "")[1:]
    yield from texts


def _yaml_records(reads: Reads, indent: str) -> Iterator[str]:
    """Yield the records of a YAML list, each on a line."""
    return _written(reads, f"{indent}- ", "{}: ", "\n", to_yaml)


def _written(
    reads: Reads, lead: str, key: str, end: str, write: Callable[[Any], Iterator[str]]
) -> Iterator[str]:
    """Yield records as text, many at once; `key` is the pattern of one, `write` writes any value.

    Before each is `lead`, and `end` after it.
    """
    fields = [*_KEYS, "shard_index"] if reads.names_repeat else _KEYS
    before = [f"{', ' if place else lead + '{'}{key.format(f)}" for place, f in enumerate(fields)]
    split_text = _quoting(reads.split_names, write)
    for count, cells in reads.records(fields).pieces():
        names = cells[0]
        assert isinstance(names, Texts)
        quoting: Iterator[Callable[[object], str]]
        quoting = chain([_quoting(names.forms, write), split_text], repeat(str))
        parts: list[Part] = []
        for text, cell, quoted in zip(before, cells, quoting, strict=False):
            parts += [text.encode(), *parts_of(cell, quoted)]
        yield rows_as_bytes([*parts, f"}}{end}".encode()], count).decode()


def _quoting(
    texts: Sequence[str], write: Callable[[Any], Iterator[str]]
) -> Callable[[object], str]:
    """Return what writes texts: those that can be printed in double quotes, in YAML too."""
    together = "".join(texts).replace(HOLE, "0")
    if not together.isprintable() or "##" in together:
        return lambda text: "".join(write(text)).strip()
    return lambda text: encode_basestring(str(text))
