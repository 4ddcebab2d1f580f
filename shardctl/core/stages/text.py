"""Stages as one line of text: `cache | shuffle(1000, seed=7) | repeat(3) | batch(64)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from shardctl.core.stages.calls import CALLS, Call, call_named, name_alone, name_of
from shardctl.core.stages.listed import Written, joined, text_of_listed
from shardctl.core.stages.part import Part, said_of
from shardctl.core.stages.stages import Pipeline, Read, Values, Zip
from shardctl.core.text import nearest, quoted
from shardctl.errors import UsageError

Parsed = TypeVar("Parsed")
_MAX_LENGTH = 1_000_000
_MAX_DEPTH = 20  # of pipelines and lists within each other


def parse_stages(text: str) -> Pipeline:
    """Return the pipeline that a text says, `[source |] stage | stage ..`.

    >>> parse_stages("shuffle(buffer_size=1000, seed=7) | repeat").stages
    (Shuffle(buffer=1000, seed=7, reshuffle=None), Repeat(count=None))
    >>> parse_stages("cache | shufle(1000)")
    Traceback (most recent call last):
    ...
    shardctl.errors.UsageError: at 'shufle(1000)': no stage 'shufle'; did you mean shuffle? ...

    Raises:
        UsageError: it says none; the place and the rule are told.
    """
    return _whole(text, lambda parser: parser.pipeline(0))


def parse_parts(text: str, *, first: bool) -> tuple[Any, list[Any]]:
    """Return the source and the stages of a text that others follow, each as its call makes it.

    first: whether a source may come first; else it follows others.
    """
    return _whole(text, lambda parser: parser.parts(0, first=first))


def _whole(text: str, parsed: Callable[[_Parser], Parsed]) -> Parsed:
    """Return what a parser makes of a text, all of it."""
    if len(text) > _MAX_LENGTH:
        raise UsageError(f"a text of at most {_MAX_LENGTH:,} characters is needed")
    scanner = Scanner(text)
    found = parsed(_Parser(scanner))
    if not scanner.at_end:
        raise scanner.error("stages are parted by |")
    return found


class _Parser:
    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner

    def pipeline(self, depth: int, *, first: bool = True) -> Pipeline:
        """Read `[source |] stage | ..` up to what cannot go on one; a source where it is first."""
        begin = self._scanner.position
        source, stages = self.parts(depth, first=first)
        try:
            source, stages = joined(source, stages)
        except UsageError as error:
            raise self._scanner.error(str(error), begin) from None
        return Pipeline(source=source, stages=tuple(stages))

    def parts(self, depth: int, *, first: bool) -> tuple[Any, list[Any]]:
        """Read the source and the stages of a pipeline, each as its call makes it."""
        scanner = self._scanner
        if depth > _MAX_DEPTH:
            raise scanner.error(f"nested more than {_MAX_DEPTH} deep")
        source: Any = Read()
        stages: list[Any] = []
        while True:
            if first and (spec := self._spec_as_source()) is not None:
                source = Read(spec=spec)
            else:
                start = scanner.position
                call = self._call_name()
                parts: Any = self._made(call, start, depth)
                if call.is_source and not first:
                    raise scanner.error(f"{call.name} is a source, so it comes first", start)
                if call.is_source:
                    (source,) = parts
                else:
                    stages += parts
            first = False
            if not scanner.took("|"):
                break
        return source, stages

    def _spec_as_source(self) -> str | None:
        """Return the spec that comes next, None where a call does."""
        scanner = self._scanner
        quoted_spec = scanner.string()
        if quoted_spec is not None:
            return quoted_spec
        name = scanner.peeked_name()
        after = "" if name is None else scanner.peeked_after(name)
        if after == "(" or (name in CALLS and after not in ("[", "+")):
            return None
        start = scanner.position
        spec = scanner.spec()
        near = _misspelt(name) if spec == name and name is not None else None
        if near is not None:
            raise scanner.error(
                f"no stage {quoted(name)}; did you mean {near}? A split of that name is written "
                f"read({name})",
                start,
            )
        return spec

    def _call_name(self) -> Call:
        scanner = self._scanner
        start = scanner.position
        name = scanner.name()
        if name is None:
            raise scanner.error("a stage is needed, as shuffle(1000)", start)
        try:
            return call_named(name)
        except UsageError as error:
            raise scanner.error(error, start) from None

    def _made(self, call: Call, start: int, depth: int) -> tuple[Part, ...]:
        given = list(self._arguments(call, depth)) if self._scanner.took("(") else []
        try:
            return call.stages(given)
        except UsageError as error:
            text = str(error)
            text = text if text.startswith(call.name) else f"{call.name}: {text}"
            raise self._scanner.error(text, start) from None

    def _arguments(self, call: Call, depth: int) -> Iterator[tuple[str, Any]]:
        """Yield the arguments of a call up to its closing bracket, by their own names."""
        scanner = self._scanner
        index, by_name = 0, False
        rest: list[Any] = []
        while not scanner.took(")"):
            start = scanner.position
            keyword = scanner.keyword()
            try:
                if keyword is not None:
                    parameter, by_name = call.parameter(keyword), True
                elif by_name:
                    raise UsageError("an argument by its place comes before those by name")
                elif call.rest is not None and (index == 0 or rest):
                    parameter = call.rest
                else:
                    parameter = call.placed(index)
            except UsageError as error:
                raise scanner.error(f"{call.name}: {error}", start) from None
            open_list = scanner.peeked() in ("[", "(")
            if keyword is None and parameter is call.rest and (rest or not open_list):
                rest.append(self._one(parameter.takes, depth))
            else:
                yield parameter.name, self._value(parameter.takes, depth)
            index += 1
            if not scanner.took(","):
                if not scanner.took(")"):
                    raise scanner.error("a comma or a closing bracket is needed")
                break
        if rest and call.rest is not None:
            yield call.rest.name, tuple(rest)

    def _one(self, takes: str, depth: int) -> Any:
        return self.pipeline(depth + 1) if takes == "pipelines" else self._scanner.atom()

    def _value(self, takes: str, depth: int) -> Any:
        scanner = self._scanner
        if takes == "code":
            return scanner.skip_code()
        if takes == "written":
            return scanner.code()
        if takes == "function":
            return scanner.skip_function()
        if takes == "spec":
            spec = scanner.string()
            spec = scanner.spec() if spec is None else spec
            if spec is None:
                raise scanner.error("a spec is needed, as train[:50%]")
            return spec
        if takes == "pipelines":
            closing = scanner.opened()
            if closing is None:
                raise scanner.error("a list is needed, as [train | repeat, test | repeat]")
            return tuple(self._items(closing, lambda: self.pipeline(depth + 1)))
        if takes == "pipeline":
            if scanner.peeked() != "[":
                return self.pipeline(depth + 1)
            start = scanner.position
            try:
                return Pipeline(source=Values(values=self._plain(depth)))
            except UsageError as error:
                raise scanner.error(str(error), start) from None
        return self._plain(depth)

    def _plain(self, depth: int) -> Any:
        scanner = self._scanner
        if depth > _MAX_DEPTH:
            raise scanner.error(f"nested more than {_MAX_DEPTH} deep")
        closing = scanner.opened()
        if closing is None:
            return scanner.atom()
        return tuple(self._items(closing, lambda: self._plain(depth + 1)))

    def _items(self, closing: str, item: Any) -> Iterator[Any]:
        scanner = self._scanner
        while not scanner.took(closing):
            yield item()
            if not scanner.took(","):
                if not scanner.took(closing):
                    raise scanner.error(f"a comma or {closing} is needed")
                return


def _misspelt(name: str) -> str | None:
    """Return the stage that a word alone is written much like, None for what is rather a split."""
    near = nearest(name, _ALONE, 1)
    return near[0] if near and not near[0].startswith(name) else None


# What needs no arguments.
_ALONE = [name for name, call in CALLS.items() if not call.is_source and not call.needed]


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

    >>> from shardctl.core.stages.stages import Shuffle
    >>> text_of_part(Shuffle(buffer=10, seed=7))
    'shuffle(10, seed=7)'
    """
    alone = name_alone(part, is_source=is_source)
    if alone is not None:
        return alone
    said = dict(said_of(part))
    if isinstance(part, Read):
        return _read_text(part, said)
    name = name_of(part, is_source=is_source)
    if isinstance(part, Zip):
        return f"{name}({', '.join(map(text_of, part.inputs))})"
    first = next((p.name for p in call_named(name).parameters if not p.by_name), None)
    texts = [
        _value_text(value) if field == first else f"{field}={_value_text(value)}"
        for field, value in said.items()
    ]
    return f"{name}({', '.join(texts)})" if texts else name


def place_of(index: int, chain: str = "") -> str:
    """Return where a stage is as people count, from 1; `chain` names what it is a stage of.

    >>> place_of(1, "input 0")
    'stage 2 of input 0'
    """
    return f"stage {index + 1}" + (f" of {chain}" if chain else "")


def _read_text(read: Read, said: dict[str, Any]) -> str:
    if read.listed:
        return text_of_listed(read)
    texts = [] if read.spec is None else [_spec_text(read.spec)]
    if list(said) == ["spec"]:
        bare = texts[0]
        alone = BARE_WORD.fullmatch(bare) is None or not (bare in CALLS or _misspelt(bare))
        return bare if alone else f"read({bare})"
    if read.data is not None:
        texts.append(f"data={_value_text(read.data)}")
    if not read.assert_cardinality:
        texts.append("assert_cardinality=False")
    texts += [f"{name}={_value_text(value)}" for name, value in read.settings]
    return f"read({', '.join(texts)})" if texts else "read"


def _spec_text(spec: str) -> str:
    return spec if SPEC.fullmatch(spec) else _string(spec)


def _value_text(value: Any) -> str:
    if isinstance(value, Pipeline):
        return text_of(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value_text, value))}]"
    if isinstance(value, str):
        return value if value == "auto" else _string(value)
    return repr(value)


def _string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


# The words of a text of stages, read from left to right, and the place of what is wrong.

BARE_WORD = re.compile(r"[A-Za-z_][\w-]*")
_NAME = re.compile(r"[A-Za-z_]\w*")
_FUNCTION = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_KEYWORD = re.compile(r"([A-Za-z_][\w-]*)\s*=(?!=)")
# As TFDS's own pattern of a part of a spec (core/splits.py), with blanks around the `+`.
_PART = r"[\w-]+(?:\[[\w%:.-]+\])?"
SPEC = re.compile(rf"{_PART}(?:\s*\+\s*{_PART})*")
_STRING = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"", re.DOTALL)
_ESCAPE = re.compile(r"\\(['\"\\])")
_ATOM = re.compile(r"[^\s,()\[\]|='\"]+")
_WHOLE = re.compile(r"[-+]?\d[\d_]{0,99}")
_REAL = re.compile(r"[-+]?(?:\d{1,50}\.\d{0,50}|\.?\d{1,50})(?:[eE][-+]?\d{1,4})?")
_BLANKS = re.compile(r"\s*")
# What stands for a value of Python or of tf.data.
_WORDS: dict[str, Any] = {
    "True": True,
    "true": True,
    "False": False,
    "false": False,
    "None": None,
    "none": None,
    "null": None,
    "AUTOTUNE": "auto",
    "tf.data.AUTOTUNE": "auto",
    "tf.data.experimental.AUTOTUNE": "auto",
    "UNKNOWN_CARDINALITY": -2,
    "tf.data.UNKNOWN_CARDINALITY": -2,
    "INFINITE_CARDINALITY": -1,
    "tf.data.INFINITE_CARDINALITY": -1,
}
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_SHOWN = 24  # characters of the place in an error


class Scanner:
    """Reads a text word by word; what is next is looked at once, so the time is that of reading."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.position = 0
        self._blanks()

    @property
    def at_end(self) -> bool:
        """Whether nothing is left."""
        return self.position == len(self._text)

    def error(self, rule: object, at: int | None = None) -> UsageError:
        """Return the error that names a place, that of the next word where none is given."""
        rest = self._text[self.position if at is None else at :]
        place = f"at {quoted(rest, _SHOWN)}" if rest else "at the end"
        return UsageError(f"{place}: {rule}")

    def peeked(self) -> str:
        """Return the next character, "" at the end."""
        return self._text[self.position : self.position + 1]

    def took(self, char: str) -> bool:
        """Read a character, where it is the next."""
        if self.peeked() != char:
            return False
        self._go(self.position + 1)
        return True

    def opened(self) -> str | None:
        """Read the bracket that opens a list; return the one that closes it, None for no list."""
        char = self.peeked()
        if char not in ("[", "("):
            return None
        self._go(self.position + 1)
        return _CLOSING[char]

    def name(self) -> str | None:
        """Read the name of a call."""
        return self._take(_NAME)

    def keyword(self) -> str | None:
        """Read the name of an argument and its `=`."""
        found = _KEYWORD.match(self._text, self.position)
        if found is None:
            return None
        self._go(found.end())
        return found[1].replace("-", "_")

    def peeked_name(self) -> str | None:
        """Return the name that is next, where what is next is not more than a name."""
        found = BARE_WORD.match(self._text, self.position)
        return None if found is None else found[0]

    def peeked_after(self, word: str) -> str:
        """Return the first character after the next word and its blanks."""
        after = _BLANKS.match(self._text, self.position + len(word))
        end = len(self._text) if after is None else after.end()
        return self._text[end : end + 1]

    def spec(self) -> str | None:
        """Read a spec as TFDS writes it."""
        return self._take(SPEC)

    def string(self) -> str | None:
        """Read a text in quotes."""
        if self.peeked() not in ("'", '"'):
            return None
        found = _STRING.match(self._text, self.position)
        if found is None:
            raise self.error("the quote is not closed")
        self._go(found.end())
        return _ESCAPE.sub(r"\1", found[1] if found[1] is not None else found[2])

    def atom(self) -> Any:
        """Read a number, a word or a text in quotes."""
        text = self.string()
        if text is not None:
            return text
        start = self.position
        word = self._take(_ATOM)
        if word is None:
            raise self.error("a value is needed")
        if word in _WORDS:
            return _WORDS[word]
        if _WHOLE.fullmatch(word):
            return int(word.replace("_", ""))
        if _REAL.fullmatch(word):
            return float(word)
        if word[0] in "0123456789.+-" and word[1:2].isdigit() and word.isdigit():
            raise self.error("a number of at most 100 digits is needed", start)
        return word

    def skip_function(self) -> None:
        """Read over the name of a function.

        The identity is no stage for TensorFlow, so a function that is written out is not taken.
        """
        if self._take(_FUNCTION) is None or self.peeked() not in (",", ")"):
            raise self.error("the name of a function, or nothing, is needed; threads are calls=4")

    def code(self) -> Written:
        """Read an argument as it is written, up to its comma or closing bracket."""
        start = self.position
        self.skip_code()
        return Written(self._text[start : self.position].strip())

    def skip_code(self) -> None:
        """Read over an argument that a script computes, up to its comma or closing bracket."""
        closing: list[str] = []
        while not self.at_end:
            char = self.peeked()
            if not closing and char in (",", ")"):
                return
            if self.string() is not None:
                continue
            if char in _CLOSING:
                closing.append(_CLOSING[char])
            elif char in ")]}" and (not closing or closing.pop() != char):
                raise self.error("a bracket that nothing opened")
            self._go(self.position + 1)

    def _take(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self._text, self.position)
        if found is None:
            return None
        self._go(found.end())
        return found[0]

    def _go(self, position: int) -> None:
        self.position = position
        self._blanks()

    def _blanks(self) -> None:
        found = _BLANKS.match(self._text, self.position)
        if found is not None:
            self.position = found.end()
