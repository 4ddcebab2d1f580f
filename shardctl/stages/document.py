"""Stages as the value of a YAML or JSON document: `[cache, {shuffle: {buffer: 1000}}, ..]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shardctl.base.text import printable, quoted
from shardctl.errors import UsageError
from shardctl.stages.calls import CALLS, Call, call_named
from shardctl.stages.listed import joined
from shardctl.stages.part import Parameter, Part
from shardctl.stages.stages import Pipeline, Read
from shardctl.stages.text import arguments_of, parse_parts, parse_stages, written

_MAX_DEPTH = 20


def pipeline_of(document: object) -> Pipeline:
    """Return the pipeline that a document says: a list of stages, or a text as in `parse_stages`.

    >>> pipeline_of(["cache", {"shuffle": {"buffer": 1000, "seed": 7}}, {"batch": 64}]).stages[1]
    Shuffle(buffer=1000, seed=7, reshuffle=None)

    Raises:
        UsageError: it says none; the place and the rule are told.
    """
    return _pipeline(document, 0)


def document_of(pipeline: Pipeline) -> list[Any]:
    """Return a pipeline as the document that `pipeline_of` reads back as the same.

    >>> document_of(parse_stages("test | cache | shuffle(10, seed=7) | repeat(3)"))
    [{'read': 'test'}, 'cache', {'shuffle': {'buffer': 10, 'seed': 7}}, {'repeat': 3}]
    """
    documents = [_part_document(stage) for stage in pipeline.stages]
    if pipeline.source != Read():
        documents.insert(0, _part_document(pipeline.source, is_source=True))
    return documents


def _pipeline(document: object, depth: int) -> Pipeline:
    if depth > _MAX_DEPTH:
        raise UsageError(f"stages are nested more than {_MAX_DEPTH} deep")
    if isinstance(document, str):
        return parse_stages(document)
    if isinstance(document, Mapping):
        return _reader(document, depth)
    if not isinstance(document, list | tuple):
        raise UsageError("a list of stages is needed, as [cache, shuffle: 1000, batch: 64]")
    source: Any = Read()
    stages: list[Any] = []
    for index, item in enumerate(document):
        first, parts = _item(item, index, depth)
        if first is not None:
            if index:
                raise UsageError(f"stage {index + 1}: {first.name} is a source; it comes first")
            source = first
        stages += parts
    source, stages = joined(source, stages)
    return Pipeline(source=source, stages=tuple(stages))


def _reader(document: Mapping[Any, Any], depth: int) -> Pipeline:
    """Return the input that is written as the settings of its reader and its stages."""
    given = _by_name(document)
    if len(given) == 1 and (name := next(iter(given))) in CALLS and name != "read":
        return _pipeline([given], depth + 1)  # a list of one
    stages = given.pop("stages", None) or ()
    read = given.pop("read", None)
    if isinstance(read, Mapping):
        given |= _by_name(read)
    elif read is not None:
        given["spec"] = read
    call = call_named("read")
    (source,) = call.stages(_values(call, given, depth))
    behind = _pipeline(stages, depth + 1)
    if behind.source != Read():
        raise UsageError(f"stages: {behind.source.name} is a source, and the mapping is one")
    made: Any = source
    return Pipeline(source=made, stages=behind.stages)


def _item(item: object, index: int, depth: int) -> tuple[Any, list[Any]]:
    """Return the source that an item of a list is, and its stages."""
    try:
        if isinstance(item, str):
            source, stages = parse_parts(item, first=not index)
            return None if source == Read() else source, stages
        if not isinstance(item, Mapping) or len(item) != 1:
            raise UsageError("a stage is needed, as cache or shuffle: 1000")
        ((name, argument),) = item.items()
        call = call_named(printable(str(name)).replace("-", "_"))
        parts: Any = call.stages(_values(call, _arguments(call, argument), depth))
    except UsageError as error:
        raise UsageError(f"stage {index + 1}: {error}") from None
    return (parts[0], []) if call.is_source else (None, [*parts])


def _arguments(call: Call, argument: object) -> Mapping[str, object]:
    main = call.main
    if argument is None:
        return {}
    named = _by_name(argument) if isinstance(argument, Mapping) else None
    if main is None and named is None:
        needed = "by their names are needed" if call.parameters else "are not taken"
        raise UsageError(f"{call.name}: arguments {needed}")
    # The one argument of `concatenate` is a mapping itself.
    if named is not None and (main is None or main.takes != "pipeline" or main.name in named):
        return named
    return {} if main is None else {main.name: argument}


def _by_name(document: Mapping[Any, Any]) -> dict[str, Any]:
    return {printable(str(key)): value for key, value in document.items()}


def _values(call: Call, given: Mapping[str, object], depth: int) -> Iterator[tuple[str, Any]]:
    for name, value in given.items():
        parameter = call.parameter(name.replace("-", "_"))
        yield parameter.name, _value(parameter, value, depth)


def _value(parameter: Parameter, value: Any, depth: int) -> Any:
    if parameter.takes == "pipeline":
        return _pipeline(value, depth + 1)
    if parameter.takes == "pipelines":
        if not isinstance(value, list | tuple):
            raise UsageError(f"{parameter.name}: a list of inputs is needed")
        return tuple(_pipeline(one, depth + 1) for one in value)
    if parameter.takes == "spec" and not isinstance(value, str | None):
        raise UsageError(f"{quoted(value)}: a spec is needed, as train[:50%]")
    return tuple(value) if isinstance(value, list) else value


def _part_document(part: Part, *, is_source: bool = False) -> Any:
    found = written(part, is_source=is_source)
    if isinstance(found, str):
        return found
    name, said = found
    main = call_named(name).main
    values = {field: _value_document(value) for field, value in said.items()}
    if main is not None and list(values) == [main.name]:
        return {name: values[main.name]}
    return {name: values} if values else name


def _value_document(value: Any) -> Any:
    if isinstance(value, Pipeline):
        return _input_document(value)
    if isinstance(value, tuple):
        return [_value_document(one) for one in value]
    return value


def _input_document(pipeline: Pipeline) -> Any:
    """Return an input: the settings of its reader and its stages, or a list."""
    if not isinstance(pipeline.source, Read) or pipeline.source.listed:
        return document_of(pipeline)
    said = arguments_of(pipeline.source)
    document = {"read": pipeline.source.spec, **{n: _value_document(v) for n, v in said.items()}}
    if pipeline.stages:
        document["stages"] = [_part_document(stage) for stage in pipeline.stages]
    return document
