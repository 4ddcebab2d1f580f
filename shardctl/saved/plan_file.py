"""The plan file: a plan to resume as JSON or YAML, with a digest against cuts and edits."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from dataclasses import fields as dataclass_fields
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from shardctl.base.arrays import distinct
from shardctl.base.columns import Records, RecordStream
from shardctl.base.text import choices, printable, quoted
from shardctl.errors import DatasetError, UsageError
from shardctl.files import fields
from shardctl.files.documents import Document
from shardctl.files.parse import parse_document
from shardctl.loaders.loader import LoaderCall
from shardctl.saved import resume_plan
from shardctl.saved.head import identity_head, read_identity, read_split_sizes
from shardctl.settings.read_settings import settings_of_document
from shardctl.spec.host import Host
from shardctl.spec.reads import NamedFiles, Reads
from shardctl.stores.stores import path_of, read_file
from shardctl.tfdata.shuffle_seeds import KernelSeeds

PLAN_VERSION = 1
PLAN_KIND = "resume"
DIGEST = "digest"
PROOF = "proof"
REFS = "refs"

# The order of this text is the order of the keys in the file.
_WRITTEN = re.findall(
    r"\w+",
    "assumptions refs spec pipeline consumed epoch remaining remaining_total file_instructions "
    "hosts num_pending_instructions read_config after_read mode exact stop pending shuffle "
    "unseeded reader num_further_epochs further_epochs continued_by sources advice from_seen "
    "from_consumed",
)
# Left out where they are empty; those of `_OF_SOME` where they are None.
_IF_ANY = ("assumptions", REFS, "hosts", "from_seen", "from_consumed")
_OF_SOME = (
    *(*_IF_ANY, "stop", "pending", "shuffle", "unseeded", "reader"),
    *("continued_by", "sources", "advice"),
)
_REQUIRED = ["dataset", "ordered", "splits", DIGEST, *(n for n in _WRITTEN if n not in _OF_SOME)]


def plan_fields(plan: resume_plan.ResumePlan) -> Document:
    """Return the fields of a plan without the digest.

    Raises:
        UsageError: a plan of a run that was shared anew, which follows from its position alone.
    """
    if plan.stretches:
        raise UsageError(
            "a plan file does not hold what hosts had consumed before a run was shared anew; keep "
            "the position instead: get_state returns it, save writes it"
        )
    # What is written otherwise than the plan has it; all else is taken from its attributes.
    own, has_end, staged = ("index", "count", "num_examples"), plan.has_end, plan.has_stages
    made: Document = {
        "remaining": plan.remaining if has_end else None,
        "remaining_total": plan.remaining_total if has_end else None,
        "file_instructions": plan.instructions if plan.lists_rest or plan.read_config else None,
        "hosts": [
            {name: getattr(host, name) for name in own} | {"file_instructions": host.instructions}
            for host in plan.hosts
        ],
        "after_read": [call_record(call) for call in plan.after_read],
        "reader": plan.reader_state,
        "continued_by": plan.continued_by if staged else None,
        "sources": plan.sources if staged else None,
        "advice": plan.advice if plan.continued_by == "loader" else None,
    }
    document = identity_head(PLAN_KIND, plan.dataset, format_version=PLAN_VERSION)
    for name in _WRITTEN:
        value = made[name] if name in made else getattr(plan, name)
        # A required field is there even as null, so that a file that was cut off is known by its
        # keys.
        if name in _REQUIRED or (value is not None and (value or name not in _IF_ANY)):
            document[name] = _plain(value)
    return document


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(map(_plain, value))
    return _record(value) if is_dataclass(value) and not isinstance(value, Reads) else value


def _record(value: Any) -> Document:
    """Return a frozen value by its fields, kernel seeds as a pair of numbers."""
    found = {field.name: getattr(value, field.name) for field in dataclass_fields(value)}
    pairs = {k: [v.seed, v.seed2] for k, v in found.items() if isinstance(v, KernelSeeds)}
    return found | pairs


def digest_of(document: Mapping[str, Any]) -> str:
    """Return the hash of a plan's document, whether it is in JSON, in YAML or in memory.

    The digest itself is left out of it, the proof, which is made from the plan, and `refs`: whoever
    moves a layout file may correct it.
    """
    lists: list[Reads] = []

    # Lists of instructions may have millions of rows: their number goes into the JSON text, their
    # columns are hashed below as bytes.
    def without_lists(value: object) -> object:
        if isinstance(value, Reads):
            lists.append(value)
            return len(value)
        raise TypeError(type(value))

    rest = {key: value for key, value in document.items() if key not in (DIGEST, PROOF, REFS)}
    # Sorted and without blanks, so that JSON, YAML and a formatter all lead to the same digest.
    text = json.dumps(
        rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=without_lists
    )
    # 0.2.0 would put what the buffer held into it twice: it refuses a digest of another version.
    held = document.get("mode") == "exact-order" and document.get("num_pending_instructions")
    version = PLAN_VERSION + 1 if held else PLAN_VERSION
    digest = hashlib.sha256(f"shardctl resume {version}\n{text}\n".encode())
    for reads in lists:
        _add(digest, reads)
    return f"sha256:{digest.hexdigest()}"


def _add(digest: Any, reads: Reads) -> None:
    size = 1 << 16
    for start in range(0, len(reads), size):
        # NUL is in no file name, so different lists cannot give the same bytes.
        names = "\0".join(reads.filenames(start, start + size))
        digest.update(names.encode("utf-8", "surrogatepass") + b"\0\0")
    # By the splits that are read, numbered anew: a split added to the dataset changes no digest.
    used = distinct(reads.split)
    digest.update("\0".join(reads.split_names[i] for i in used.tolist()).encode())
    columns = [reads.split, reads.skip, reads.take, reads.examples_in_shard]
    if reads.names_repeat and reads.shard_index is not None:
        columns.append(reads.shard_index)
    for column in columns:
        for start in range(0, len(column), size):
            part = column[start : start + size]
            part = np.searchsorted(used, part) if column is reads.split else part
            digest.update(np.ascontiguousarray(part, "<i8"))


# The calls behind the reader in a plan file.

_KINDS = {kind.call: kind for kind in resume_plan.CALLS}


def call_record(call: resume_plan.AfterRead) -> dict[str, Any]:
    """Return a call as a mapping; `skip_instructions` stands there where it is not 0.

    >>> call_record(read_call({"call": "shard", "num_shards": 3, "index": 1}))
    {'call': 'shard', 'num_shards': 3, 'index': 1}
    """
    if isinstance(call, LoaderCall):
        return {"call": call.call, **call.arguments}
    record = {"call": call.call, **asdict(call)}
    if record.get("skip_instructions") == 0:
        del record["skip_instructions"]
    return record


def read_call(value: object) -> resume_plan.TfCall:
    """Return the call that a mapping describes.

    >>> read_call({"call": "take", "count": 4})
    TakeCall(count=4)

    Raises:
        DatasetError: a call that no plan has.
    """
    what = "a call of after_read"
    record = dict(fields.mapping(value, what))
    name = record.pop("call", None)
    kind = _KINDS.get(str(name))
    if kind is None:
        raise DatasetError(f"{what}: {fields.shown(name)}; there are {choices(_KINDS)}")
    call: resume_plan.TfCall = fields.record(kind, record, f"after_read.{kind.call}")
    return call


# A plan to resume as the plan file: JSON or YAML, an instruction a line, for a million as well.

_KEYS = ("filename", "split", "skip", "take", "examples_in_shard")


def plan_document(plan: resume_plan.ResumePlan) -> Document:
    """Return the document of the plan file in the order of its fields, instructions as columns.

    The last one is the digest, so that a file that was cut off or edited is known.

    Raises:
        UsageError: as for `plan_fields`.
    """
    document = plan_fields(plan)
    document[DIGEST] = digest_of(document)
    for part in (document, *document.get("hosts", ())):
        if part["file_instructions"] is not None:
            part["file_instructions"] = _records(part["file_instructions"])
    return document


def _records(reads: Reads) -> Records:
    return reads.records((*_KEYS, "shard_index") if reads.names_repeat else _KEYS)


def instruction_rows(plan: resume_plan.ResumePlan) -> RecordStream:
    """Return a CSV row for each file instruction; the host is empty where the plan is for one."""
    shares = [(f"{host.index}/{host.count}", host.instructions) for host in plan.hosts]
    return RecordStream(
        ("host", *_KEYS),
        lambda: (
            (count, [host, *cells])
            for host, reads in ((None, plan.instructions), *shares)
            for count, cells in reads.records(_KEYS).pieces()
        ),
    )


# Plan files: what `shardctl resume` wrote, read back and known to be whole.


def read_plan(path: Path | str) -> resume_plan.ResumePlan:
    """Return the plan in a file, JSON or YAML.

    Raises:
        DatasetError: the file cannot be read, holds no plan, a plan of a newer kind, or one that
            was cut off or edited.
    """
    place = path_of(os.fspath(path))
    return parse_plan(read_file(place), source=printable(str(place)))


def parse_plan(data: bytes, *, source: str) -> resume_plan.ResumePlan:
    """Return the plan in the text of a plan file; `source` names it in errors.

    Raises:
        DatasetError: as for `read_plan`.
    """
    try:
        document = parse_document(data, source=source)
    except DatasetError as error:
        raise DatasetError(f"{error}; a plan file is written whole by resume --output") from error
    return plan_from_document(document, source=source)


def plan_from_document(document: object, *, source: str) -> resume_plan.ResumePlan:
    """Return the plan that a parsed file holds; `source` names it in errors.

    Raises:
        DatasetError: as for `read_plan`.
    """
    with fields.said_about(source):
        plan = fields.mapping(document, "a plan file")
        _check_kind(plan)
        try:
            return _plan(plan)
        except UsageError as error:
            raise DatasetError(f"{error}") from error


def _check_kind(document: Mapping[str, object]) -> None:
    kind, version = document.get("kind"), document.get("format_version")
    if kind != PLAN_KIND:
        what = "not a plan" if kind is None else f"the answer of {quoted(kind)}"
        raise DatasetError(f"this is {what}; a plan is written by resume --output FILE")
    if version != PLAN_VERSION:
        said = f"this shardctl reads plans of version {PLAN_VERSION}"
        raise DatasetError(f"format_version {fields.shown(version)}: {said}")
    missing = [key for key in _REQUIRED if key not in document]
    if missing:
        raise DatasetError(f"the plan is cut off: it has no {choices(missing, 3)}")


def _plan(document: Mapping[str, object]) -> resume_plan.ResumePlan:
    splits = read_split_sizes(document["splits"])
    names = {split.name: index for index, split in enumerate(splits)}
    listed = document["file_instructions"]
    instructions = read_instructions([] if listed is None else listed, names, "file_instructions")
    hosts = [
        _host(item, f"hosts, entry {number}", names)
        for number, item in enumerate(fields.items(document.get("hosts", []), "hosts"))
    ]
    # Before the other fields are read: a file that was edited gets this error, not a confusing one.
    _check_digest(document, instructions, hosts)
    settings = settings_of_document(fields.mapping(document["pipeline"], "pipeline"), "pipeline")
    on_tf_data = settings.reader.on_tf_data
    calls = fields.items(document["after_read"], "after_read")
    by = document.get("continued_by", resume_plan.CONTINUED_BY[0]) if on_tf_data else "loader"
    reader = document.get("reader")
    # Fields with a keyword here are made above; the others are read by their annotations.
    plan = fields.record(
        resume_plan.ResumePlan,
        document,
        dataset=read_identity(document),
        settings=settings,
        remaining=_left(document, "remaining"),
        remaining_total=_left(document, "remaining_total"),
        instructions=instructions,
        reader_state=None
        if reader is None
        else fields.record(resume_plan.ReaderState, reader, "reader"),
        hosts=tuple(hosts),
        after_read=tuple(map(read_call if on_tf_data else _loader_call, calls)),
        continued_by=fields.word(resume_plan.CONTINUED_BY, by, "continued_by"),
        stretches=(),
        shared=None,
        warnings=(),
    )
    _check_derived(document, plan)
    return plan


def _check_derived(document: Mapping[str, object], plan: resume_plan.ResumePlan) -> None:
    """Check what a plan file says twice, for those who read it without shardctl."""
    derived = {"exact": ("mode", plan.exact), "read_config": ("pipeline", plan.read_config)}
    for key, (other, value) in derived.items():
        if document[key] != value:
            raise DatasetError(f"{key} is not what {other} comes to, {json.dumps(value)}")
    on_tf_data, by_bridge = plan.read_config is not None, plan.continued_by == "shardctl.tfds"
    unlisted, unseeded = document["file_instructions"] is None, plan.unseeded is not None
    has_no_stop = on_tf_data or plan.from_seen or bool(plan.from_consumed)
    left, word = {plan.remaining, plan.remaining_total}, "with" if unseeded else "without"
    # Contradictions between fields, each with the sentence for it; True is a fault.
    faults = {
        # Of another loader a list may be left out as too long; of TFDS's reader never.
        "file_instructions are null where those of a loader are too many alone": unlisted
        is (plan.lists_rest or on_tf_data),
        "stop is of a plan of another loader": (plan.stop is None) != has_no_stop,
        "continued_by or sources of a pipeline without stages": not plan.has_stages
        and ("continued_by" in document or plan.sources),
        f"continued_by {plan.continued_by} is exact, without file instructions": by_bridge
        and (plan.mode != "exact" or plan.num_instructions),
        "remaining of a pipeline without end": resume_plan.WITHOUT_END in left and len(left) > 1,
        "file instructions of a pipeline without end": not by_bridge and not plan.has_end,
        f"mode {plan.mode} {word} a buffer that is unseeded": unseeded
        is not (plan.mode in resume_plan.UNSEEDED_MODES),
        f"mode {plan.mode} of a pipeline whose buffer has a seed, or is none": unseeded
        and not plan.settings.buffer_is_open,
    }
    for text, wrong in faults.items():
        if wrong:
            raise DatasetError(text)


def _left(document: Mapping[str, object], name: str) -> int:
    """Return how much is left; null is without end."""
    value = document[name]
    return resume_plan.WITHOUT_END if value is None else fields.count(value, name)


def _check_digest(
    document: Mapping[str, object], instructions: Reads, hosts: Sequence[resume_plan.HostShare]
) -> None:
    # The digest is made of columns, so the lists as parsed are replaced by what was read of them.
    content: dict[str, Any] = dict(document)
    if document["file_instructions"] is not None:
        content["file_instructions"] = instructions
    if "hosts" in document:
        content["hosts"] = [
            {**item, "file_instructions": host.instructions}
            for item, host in zip(content["hosts"], hosts, strict=True)
        ]
    try:
        found = digest_of(content)
    except TypeError:  # a key or a value that no plan has
        found = None
    if found != document[DIGEST]:
        raise DatasetError(
            "the plan does not match its digest: it was cut off or edited; make it anew"
        )


def _loader_call(value: object) -> LoaderCall:
    """Return the call of a loader's library that a mapping describes: a name and whole numbers."""
    what = "a call of after_read"
    record = fields.mapping(value, what)
    numbers: dict[str, int] = {}
    for name, number in record.items():
        if name != "call":
            numbers[name] = fields.whole(number, f"{name} of {what}")
    return LoaderCall(call=fields.name(record.get("call"), what), arguments=numbers)


def _host(item: object, what: str, names: Mapping[str, int]) -> resume_plan.HostShare:
    value = fields.mapping(item, "a host")
    reads = read_instructions(value.get("file_instructions"), names, what)
    index, count, num_examples = (
        fields.count(value.get(name), f"{name} of {what}")
        for name in ("index", "count", "num_examples")
    )
    host = Host(index=index, count=count)
    if num_examples != reads.num_examples:
        raise DatasetError(
            f"{what}: num_examples {num_examples} where the instructions read {reads.num_examples}"
        )
    return resume_plan.HostShare(index=host.index, count=host.count, instructions=reads)


# The file instructions of a plan file, checked one by one.


def read_instructions(
    value: object, names: Mapping[str, int], what: str, *, more: tuple[str, ...] = ()
) -> Reads:
    """Return a list of file instructions; `names` are the splits with their places.

    more: keys that each record has besides.

    Raises:
        DatasetError: no list, a record with other fields, a split that is not there, or a skip and
            a take that do not fit the file.
    """
    records = fields.items(value, what)
    # Only files with repeated base names say the shard; the first record shows whether all must.
    with_shards = bool(records) and isinstance(records[0], dict) and "shard_index" in records[0]
    keys = (*_KEYS, *more, *(("shard_index",) if with_shards else ()))
    # All at once by sets, in C; only a list that fails is searched for its first bad record.
    if not _are_alike(records, keys, names):
        number = next(i for i, one in enumerate(records) if not _are_alike([one], keys, names))
        raise DatasetError(
            f"{what}, entry {number}: {choices(keys)} are needed, in this order, of a file of a "
            f"split; the splits are {choices(names)}"
        )
    numbers = {
        key: fields.counts(list(map(itemgetter(key), records)), f"{what}, entry {{}}: {key}")
        for key in keys[2:]
        if key not in more
    }
    skip, take, lengths, *shards = (packed.int64s() for packed in numbers.values())
    # Not skip + take > lengths, which could overflow an int64.
    wrong = np.flatnonzero((skip > lengths) | (take > lengths - skip))
    if wrong.size:
        at = int(wrong[0])
        raise DatasetError(
            f"{what}, entry {at}: skip {skip[at]} and take {take[at]} do not fit a file of "
            f"{lengths[at]} examples"
        )
    return Reads(
        files=NamedFiles(
            split_names=tuple(names),
            names=list(map(itemgetter("filename"), records)),
            lengths=lengths,
            shards=shards[0] if shards else None,
        ),
        part=np.zeros(len(records), np.int64),
        split=np.fromiter(map(names.__getitem__, map(itemgetter("split"), records)), np.int64),
        # The file of row i is entry i of the list of names, until a dataset is found for them.
        shard=np.arange(len(records)),
        skip=skip,
        take=take,
    )


def _are_alike(records: Sequence[Any], keys: tuple[str, ...], names: Mapping[str, int]) -> bool:
    """Return whether all records have these keys, and texts of which the splits are there."""
    return (
        set(map(type, records)) <= {dict}
        and set(map(tuple, records)) <= {keys}
        and all(set(map(type, map(itemgetter(key), records))) <= {str} for key in keys[:2])
        and set(map(itemgetter("split"), records)) <= names.keys()
    )
