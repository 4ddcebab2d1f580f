"""Stages as text, `cache | shuffle(1000, seed=7) | batch(64)`, and as a YAML or JSON document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from shardctl.base.text import printable, quoted
from shardctl.errors import UsageError
from shardctl.stages.calls import CALLS, Call, Calls, call_named, call_of, name_alone, name_of
from shardctl.stages.listed import joined, text_of_listed
from shardctl.stages.part import CODE, WORDS, Parameter, Part, said_of
from shardctl.stages.stages import OF_READ, Pipeline, Read, Values, Zip, counted_source

# Stages as the value of a YAML or JSON document: `[cache, {shuffle: {buffer: 1000}}, ..]`.


def pipeline_of(document: object, depth: int = 0, calls: Calls = CALLS) -> Pipeline:
    """Return the pipeline that a document says: a list of stages, or a text as in `parse_stages`.

    depth: how many pipelines it is within. calls: those that may stand there, by their names.

    >>> pipeline_of(["cache", {"shuffle": {"buffer": 1000, "seed": 7}}, {"batch": 64}]).stages[1]
    Shuffle(buffer=1000, seed=7, reshuffle=None)

    Raises:
        UsageError: it says none; the message names the place and the rule.
    """
    if depth > _MAX_DEPTH:
        raise UsageError(f"stages are nested more than {_MAX_DEPTH} deep")
    if isinstance(document, str):
        return parse_stages(document, calls)
    if isinstance(document, Mapping):
        return _reader(document, depth, calls)
    if not isinstance(document, list | tuple):
        raise UsageError("a list of stages is needed, as [cache, shuffle: 1000, batch: 64]")
    source: Any = Read()
    stages: list[Any] = []
    for index, item in enumerate(document):
        first, parts = _item(item, index, depth, calls)
        if first is not None and index:
            raise UsageError(f"stage {index + 1}: {first.name} is a source; it comes first")
        source = source if first is None else first
        stages += parts
    source, stages = joined(source, stages)
    return Pipeline(source=source, stages=tuple(stages))


def document_of(pipeline: Pipeline) -> list[Any]:
    """Return a pipeline as the document that `pipeline_of` reads back as the same.

    >>> document_of(parse_stages("test | cache | shuffle(10, seed=7) | repeat(3)"))
    [{'read': 'test'}, 'cache', {'shuffle': {'buffer': 10, 'seed': 7}}, {'repeat': 3}]
    """
    documents = [_part_document(stage) for stage in pipeline.stages]
    if pipeline.source != Read():
        documents.insert(0, _part_document(pipeline.source, is_source=True))
    return documents


def _reader(document: Mapping[Any, Any], depth: int, calls: Calls) -> Pipeline:
    """Return the input that is written as the settings of its reader and its stages."""
    given = _by_name(document)
    # {batch: 64} is a stage, {cycle: 4} a setting of a reader: the table of calls tells them apart.
    if len(given) == 1 and (name := next(iter(given))) in calls and name != "read":
        return pipeline_of([given], depth + 1, calls)  # a list of one
    stages = given.pop("stages", None) or ()
    read = given.pop("read", None)
    if read is not None:
        for name, value in (
            _by_name(read) if isinstance(read, Mapping) else {"spec": read}
        ).items():
            # The same value twice is no contradiction.
            if given.setdefault(name, value) != value:
                raise UsageError(f"read: {name} is there twice")
    call = call_named("read", calls)
    (source,) = call.stages(_values(call, given, depth, calls))
    behind = pipeline_of(stages, depth + 1, calls)
    if behind.source != Read():
        raise UsageError(f"stages: {behind.source.name} is a source, and the mapping is one")
    made: Any = source
    return Pipeline(source=made, stages=behind.stages)


def _item(item: object, index: int, depth: int, calls: Calls) -> tuple[Any, list[Any]]:
    """Return the source that an item of a list is, and its stages."""
    try:
        if isinstance(item, str):
            source, stages = _whole(item, calls, lambda parser: parser.parts(0, first=not index))
            # The parser assumes the default reader where a text names no source.
            return None if source == Read() else source, stages
        if not isinstance(item, Mapping) or len(item) != 1:
            raise UsageError("a stage is needed, as cache or shuffle: 1000")
        ((name, argument),) = item.items()
        call = call_named(printable(str(name)).replace("-", "_"), calls)
        parts: Any = call.stages(_values(call, _arguments(call, argument), depth, calls))
    except UsageError as error:
        raise UsageError(f"stage {index + 1}: {error}") from None
    return (parts[0], []) if call.is_source else (None, [*parts])


def _arguments(call: Call, argument: object) -> Mapping[str, object]:
    main = call.main
    if isinstance(argument, Mapping):
        named = _by_name(argument)
        # The one argument of `concatenate` is a mapping itself.
        if main is None or main.takes != "pipeline" or main.name in named:
            return named
    if argument is None:
        return {}
    if main is None:
        needed = "by their names are needed" if call.parameters else "are not taken"
        raise UsageError(f"{call.name}: arguments {needed}")
    return {main.name: argument}


def _by_name(document: Mapping[Any, Any]) -> dict[str, Any]:
    return {printable(str(key)): value for key, value in document.items()}


def _values(
    call: Call, given: Mapping[str, object], depth: int, calls: Calls
) -> Iterator[tuple[str, Any]]:
    for name, value in given.items():
        parameter = call.parameter(name.replace("-", "_"))
        yield parameter.name, _value(parameter, value, depth, calls)


def _value(parameter: Parameter, value: Any, depth: int, calls: Calls) -> Any:
    if parameter.takes == "pipeline":
        return pipeline_of(value, depth + 1, calls)
    if parameter.takes == "pipelines":
        if not isinstance(value, list | tuple):
            raise UsageError(f"{parameter.name}: a list of inputs is needed")
        return tuple(pipeline_of(one, depth + 1, calls) for one in value)
    if parameter.takes == "spec" and not isinstance(value, str | None):
        raise UsageError(f"{quoted(value)}: a spec is needed, as train[:50%]")
    return tuple(value) if isinstance(value, list) else value


def _part_document(part: Part, *, is_source: bool = False) -> Any:
    found = written(part, is_source=is_source)
    if isinstance(found, str):
        return found
    name, said = found
    main = call_of(part, name).main
    values = {field: _value_document(value) for field, value in said.items()}
    # The short form: {shuffle: 1000} instead of {shuffle: {buffer: 1000}}.
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
    source = pipeline.source
    if not isinstance(source, Read) or source.listed:
        return document_of(pipeline)
    stages = list(map(_part_document, pipeline.stages))
    said = {name: _value_document(value) for name, value in arguments_of(source).items()}
    # A mapping has room for the settings of the reader; a list of stages has not.
    return {"read": source.spec, **said, **({"stages": stages} if stages else {})}


Parsed = TypeVar("Parsed")
_MAX_LENGTH = 1_000_000
_MAX_DEPTH = 20  # of pipelines and lists within each other


def parse_stages(text: str, calls: Calls = CALLS) -> Pipeline:
    """Return the pipeline that a text says, `[source |] stage | stage ..`.

    >>> parse_stages("shuffle(buffer_size=1000, seed=7) | repeat").stages
    (Shuffle(buffer=1000, seed=7, reshuffle=None), Repeat(count=None))
    >>> parse_stages("cache | shufle(1000)")
    Traceback (most recent call last):
    ...
    shardctl.errors.UsageError: at 'shufle(1000)': no stage 'shufle'; did you mean shuffle?

    Raises:
        UsageError: it says none; the message names the place and the rule.
    """
    return _whole(text, calls, lambda parser: parser.pipeline(0))


def _whole(text: str, calls: Calls, parsed: Callable[[_Parser], Parsed]) -> Parsed:
    """Return what a parser makes of a text, all of it."""
    if len(text) > _MAX_LENGTH:
        raise UsageError(f"a text of at most {_MAX_LENGTH:,} characters is needed")
    parser = _Parser(text, calls)
    found = parsed(parser)
    if parser.peek():
        raise parser.error("stages are parted by |")
    return found


_WORD_BEFORE = re.compile(r"([A-Za-z_][\w-]*)\s*(.?)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*")
_FUNCTION = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_KEYWORD = re.compile(r"([A-Za-z_][\w-]*)\s*=(?!=)")
# As TFDS's own pattern of a part of a spec (core/splits.py), with blanks around the `+`.
_PART = r"[\w-]+(?:\[[\w%:.-]+\])?"
_SPEC = re.compile(rf"{_PART}(?:\s*\+\s*{_PART})*")
_STRING = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"", re.DOTALL)
_ESCAPE = re.compile(r"\\(['\"\\])")
_ATOM = re.compile(r"[^\s,()\[\]|='\"]+")
_WHOLE = re.compile(r"[-+]?\d[\d_]{0,99}")
_REAL = re.compile(r"[-+]?(?:\d{1,50}\.\d{0,50}|\.?\d{1,50})(?:[eE][-+]?\d{1,4})?")
_BLANKS = re.compile(r"\s*")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_LISTS = ("[", "(")
_SHOWN = 24  # characters of the place in an error


class _Parser:
    """Reads a text word by word; what is next is looked at once, so the time is that of reading."""

    def __init__(self, text: str, calls: Calls) -> None:
        self._text, self._calls = text, calls
        self._go(0)

    def error(self, rule: object, at: int | None = None) -> UsageError:
        """Return the error that names a place, that of the next word where none is given."""
        rest = self._text[self._at if at is None else at :]
        place = f"at {quoted(rest, _SHOWN)}" if rest else "at the end"
        return UsageError(f"{place}: {rule}")

    def peek(self) -> str:
        """Return the next character, "" at the end."""
        return self._text[self._at : self._at + 1]

    def pipeline(self, depth: int) -> Pipeline:
        """Read `[source |] stage | ..` up to what cannot continue one."""
        begin = self._at
        source, stages = self.parts(depth)
        with self._at_place(begin):
            source, stages = joined(source, stages)
        return Pipeline(source=source, stages=tuple(stages))

    @contextmanager
    def _at_place(self, start: int, of: str = "") -> Iterator[None]:
        try:
            yield
        except UsageError as error:
            raise self.error(f"{of}{error}", start) from None

    def parts(self, depth: int, *, first: bool = True) -> tuple[Any, list[Any]]:
        """Read the source and the stages of a pipeline, each as its call makes it."""
        self._check(depth)
        source: Any = Read()
        stages: list[Any] = []
        while True:
            start = self._at
            if first and (spec := self._spec_as_source()) is not None:
                source = Read(spec=spec)
            else:
                call, parts = self._call(depth)
                if call.is_source and not first:
                    raise self.error(f"{call.name} is a source, so it comes first", start)
                if call.is_source:
                    (source,) = parts
                else:
                    stages += parts
            first = False
            if not self._took("|"):
                return source, stages

    def _spec_as_source(self) -> str | None:
        """Return the spec that comes next, None where a call does."""
        if (written := self._string()) is not None:
            return written
        found = _WORD_BEFORE.match(self._text, self._at)
        name, after = found.groups() if found else ("", "")
        # "cache" alone is the stage; "cache[:5]" and "cache+train" can only be a split called
        # cache.
        if after == "(" or (name in self._calls and after not in ("[", "+")):
            return None
        return self._take(_SPEC)

    def _call(self, depth: int) -> tuple[Call, tuple[Any, ...]]:
        """Read a call; return it, and what it makes."""
        start, name = self._at, self._take(_NAME)
        if name is None:
            raise self.error("a stage is needed, as shuffle(1000)", start)
        with self._at_place(start):
            call = call_named(name, self._calls)
        given = self._arguments(call, depth) if self._took("(") else []
        with self._at_place(start):
            return call, call.stages(given)

    def _arguments(self, call: Call, depth: int) -> list[tuple[str, Any]]:
        """Return the arguments of a call up to its closing bracket, by their own names."""
        given: list[tuple[str, Any]] = []
        rest: list[Any] = []  # of a list that is written without its brackets

        def one() -> bool:
            start, keyword = self._at, self._take(_KEYWORD)
            with self._at_place(start, f"{call.name}: "):
                if keyword is not None:
                    parameter = call.parameter(keyword.replace("-", "_"))
                elif by_name:
                    raise UsageError("an argument by its place comes before those by name")
                else:
                    # Once a list without brackets has begun, all that follows by place belongs to
                    # it.
                    parameter = call.placed(0 if rest else len(given))
            if keyword is None and parameter is call.rest and (rest or self.peek() not in _LISTS):
                is_whole = parameter.takes == "whole"
                rest.append(self._atom() if is_whole else self.pipeline(depth + 1))
            else:
                given.append((parameter.name, self._value(parameter.takes, depth)))
            return keyword is not None

        by_name = False
        for is_named in self._items(")", one):
            by_name |= is_named
        if rest and call.rest:
            given.append((call.rest.name, tuple(rest)))
        return given

    def _value(self, takes: str, depth: int) -> Any:
        match takes:
            case "code":
                return self._skip_code()
            case "written":
                return self._literal()
            case "function":
                return self._skip_function()
            case "spec":
                spec = self._string() or self._take(_SPEC)
                if spec is None:
                    raise self.error("a spec is needed, as train[:50%]")
                return spec
            # Cases with a condition come before the same case without one: the order matters.
            case "pipelines" if self.peek() in _LISTS:
                return self._list(lambda: self.pipeline(depth + 1))
            case "pipelines":
                raise self.error("a list is needed, as [train | repeat, test | repeat]")
            case "pipeline" if self.peek() != "[":
                return self.pipeline(depth + 1)
        found = self._plain(depth)
        # A plain list where a dataset is needed, as choices are mostly written.
        return Pipeline(source=Values(values=found)) if takes == "pipeline" else found

    def _plain(self, depth: int) -> Any:
        self._check(depth)
        if self.peek() not in _LISTS:
            return self._atom()
        return self._list(lambda: self._plain(depth + 1))

    def _check(self, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise self.error(f"nested more than {_MAX_DEPTH} deep")

    def _list(self, item: Callable[[], Any]) -> tuple[Any, ...]:
        closing = _CLOSING[self.peek()]
        self._go(self._at + 1)
        return tuple(self._items(closing, item))

    def _items(self, closing: str, item: Callable[[], Parsed]) -> Iterator[Parsed]:
        while not self._took(closing):
            yield item()
            # A comma before the closing bracket is allowed, as in Python.
            if not self._took(","):
                if not self._took(closing):
                    rule = "a comma or a closing bracket is needed"
                    if self.peek() in (":", "/"):
                        rule += "; an input of another dataset is read('train', data='REF')"
                    raise self.error(rule)
                return

    def _string(self) -> str | None:
        """Read a text in quotes."""
        if self.peek() not in ("'", '"'):
            return None
        found = _STRING.match(self._text, self._at)
        if found is None:
            raise self.error("the quote is not closed")
        self._go(found.end())
        return _ESCAPE.sub(r"\1", found[1] if found[1] is not None else found[2])

    def _atom(self) -> Any:
        """Read a number, a word or a text in quotes."""
        if (written := self._string()) is not None:
            return written
        start, word = self._at, self._take(_ATOM)
        if word is None:
            raise self.error("a value is needed")
        if (found := _known(word)) is not CODE:
            return found
        # _WHOLE takes 100 digits: Python's int() refuses or takes very long for thousands of them.
        if word[0] in "0123456789.+-" and word[1:2].isdigit() and word.isdigit():
            raise self.error("a number of at most 100 digits is needed", start)
        return word

    def _literal(self) -> Any:
        """Read an argument up to its comma or closing bracket, `CODE` where it is no literal."""
        start, found = self._at, self._string()
        if found is None:
            found = _known(self._take(_ATOM) or "")
        # "4 * 2" begins with a literal, but is code: what follows decides.
        if found is not CODE and self.peek() in (",", ")"):
            return found
        self._go(start)
        self._skip_code()
        return CODE

    def _skip_function(self) -> None:
        """Read over the name of a function.

        The identity is no stage for TensorFlow, so a function that is written out is not taken.
        """
        if self._take(_FUNCTION) is None or self.peek() not in (",", ")"):
            raise self.error("the name of a function, or nothing, is needed; threads are calls=4")

    def _skip_code(self) -> None:
        """Read over an argument that a script computes, up to its comma or closing bracket."""
        closing: list[str] = []
        while char := self.peek():
            # Only outside of all brackets: f(a, b) is one argument.
            if not closing and char in (",", ")"):
                return
            # A bracket within quotes opens nothing.
            if self._string() is not None:
                continue
            if char in _CLOSING:
                closing.append(_CLOSING[char])
            elif char in ")]}" and (not closing or closing.pop() != char):
                raise self.error("a bracket that nothing opened")
            self._go(self._at + 1)

    def _took(self, char: str) -> bool:
        """Read a character, where it is the next."""
        if is_next := self.peek() == char:
            self._go(self._at + 1)
        return is_next

    def _take(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self._text, self._at)
        if found is None:
            return None
        self._go(found.end())
        # The group of a pattern that has one, else all of the match.
        return found[found.lastindex or 0]

    def _go(self, position: int) -> None:
        # Always at the next character that is not blank, so no other method has to skip blanks.
        self._at = position + len(_BLANKS.match(self._text, position)[0])  # type: ignore[index]


def _known(word: str) -> Any:
    """Return the value that a word stands for, `CODE` where it is only a word."""
    if word in WORDS:
        return WORDS[word]
    if _WHOLE.fullmatch(word):
        return int(word.replace("_", ""))
    return float(word) if _REAL.fullmatch(word) else CODE


def text_of(pipeline: Pipeline) -> str:
    """Return a pipeline as the text that `parse_stages` reads back as the same.

    >>> text_of(parse_stages("train|shuffle(10,7)|repeat()"))
    'train | shuffle(10, seed=7) | repeat'
    """
    texts = [text_of_part(stage) for stage in pipeline.stages]
    if pipeline.source != Read() or not texts:
        texts.insert(0, text_of_part(pipeline.source, is_source=True))
    return " | ".join(texts)


def text_of_part(part: Part, *, is_source: bool = False) -> str:
    """Return a stage or a source as it is written.

    >>> from shardctl.stages.stages import Shuffle
    >>> text_of_part(Shuffle(buffer=10, seed=7))
    'shuffle(10, seed=7)'
    """
    found = written(part, is_source=is_source)
    if isinstance(found, str):
        return found
    name, said = found
    if isinstance(part, Zip):
        return f"{name}({', '.join(map(text_of, part.inputs))})"
    first = next((p.name for p in call_of(part, name).parameters if not p.by_name), None)
    texts = []
    for field, value in said.items():
        is_spec = isinstance(part, Read) and field == "spec" and _SPEC.fullmatch(value)
        text = value if is_spec else _value_text(value)
        texts.append(text if field == first else f"{field}={text}")
    if isinstance(part, Read) and list(said) == ["spec"]:
        (bare,) = texts
        # A split that is called like a stage must be written read(..).
        if bare not in CALLS:
            return bare
    return f"{name}({', '.join(texts)})" if texts else name


def written(part: Part, *, is_source: bool) -> str | tuple[str, dict[str, Any]]:
    """Return the text that says all of a part, else its call and the arguments to be said."""
    alone = name_alone(part, is_source=is_source)
    if alone is not None:
        return alone
    if isinstance(part, Read) and part.listed:
        return text_of_listed(part)
    part = counted_source(part) or part
    return name_of(part, is_source=is_source), arguments_of(part)


def arguments_of(part: Part) -> dict[str, Any]:
    """Return the arguments of a part that are to be said, those of a reader's own settings too."""
    said = said_of(part)
    if not isinstance(part, Read):
        return said
    return {name: said[name] for name in OF_READ if name in said} | dict(part.settings)


def place_of(index: int, chain: str = "") -> str:
    """Return where a stage is as people count, from 1; `chain` names what it is a stage of.

    >>> place_of(1, "input 0")
    'stage 2 of input 0'
    """
    return f"stage {index + 1}" + (f" of {chain}" if chain else "")


def _value_text(value: Any) -> str:
    if isinstance(value, Pipeline):
        return text_of(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value_text, value))}]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return value if value == "auto" else f"'{escaped}'"
    return repr(value)
