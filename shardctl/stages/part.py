"""What all stages and sources have in common, and the kinds of values that their arguments take.

A stage is a class in `stages.py` that states what is special about it; its dataset object is in
`NODES` (`iteration/build.py`). Text, documents, completion, code, lint, diff and the calls that
`verify` runs follow from these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from math import inf
from typing import Annotated, Any, ClassVar, Literal, Self, dataclass_transform

from shardctl.base.arguments import Kind, keep_fields, kind_of, text, whole_number
from shardctl.base.tfds_rules import INT64_MAX, WHOLE_DATASET
from shardctl.errors import UsageError

# "code" is what a script computes with, which decides nothing here; of a "function" the name.
# What is "written" is a literal, or `CODE`.
Takes = Literal["value", "pipeline", "pipelines", "whole", "spec", "code", "function", "written"]
Pipeline = Any  # a `Pipeline`, which is made of parts
Count = float | None  # a whole number, `math.inf` without an end, None where data decides


@dataclass(frozen=True, kw_only=True, eq=False)
class Parameter:
    """An argument of a call: its own name, those of tf.data, and what it takes.

    name: "" for what is not read. by_name: not taken by its place.
    """

    name: str
    others: tuple[str, ...] = ()
    takes: Takes = "value"
    by_name: bool = False


CODE = object()  # an argument that a script computes
# What stands for a value of Python or of tf.data.
WORDS: dict[str, Any] = {
    **dict.fromkeys(("True", "true"), True),
    **dict.fromkeys(("False", "false"), False),
    **dict.fromkeys(("None", "none", "null")),
    **{word: word for word in ("TFRecordDataset", "tf.data.TFRecordDataset")},
    **{f"{of}AUTOTUNE": "auto" for of in ("", "tf.data.", "tf.data.experimental.")},
    **{f"{of}UNKNOWN_CARDINALITY": -2 for of in ("", "tf.data.")},
    **{f"{of}INFINITE_CARDINALITY": -1 for of in ("", "tf.data.")},
}


def value(name: str, *also: str, others: tuple[str, ...] = (), **more: Any) -> Parameter:
    """Return a parameter."""
    return Parameter(name=name, others=also or others, **more)


def argument(*others: str, default: Any = MISSING, **more: Any) -> Any:
    """Return a field of a part whose argument has other names too, or takes no plain value."""
    return field(default=default, metadata={"others": others, **more})


FUNCTION = value("", "map_func", "func", "scan_func", takes="function")


class OfTensorflow(str):
    """A constant of TensorFlow by its name, as `data.AUTOTUNE`."""


AUTOTUNE = OfTensorflow("data.AUTOTUNE")
UNKNOWN_CARDINALITY = OfTensorflow("data.UNKNOWN_CARDINALITY")


@dataclass(frozen=True, kw_only=True)
class TfCall:
    """A method of `tf.data.Dataset` and its arguments: those by place, and those by name.

    takes_function: the first argument is a function of the script, which is not among them.
    """

    method: str
    by_place: tuple[Any, ...] = ()
    by_name: Mapping[str, Any]
    takes_function: bool = False


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(argument,))
@dataclass(frozen=True, kw_only=True)
class Part:
    """A call of tf.data: a source or a stage. Its fields are checked and kept as Python's own.

    Every class of parts is made a frozen dataclass of keyword arguments.

    name: of the call, that of the class where none is written; a class that is no call itself says
        `is_call=False`. parameters: its arguments, in the order of tf.data; mostly the fields.
    takes_anything: what else it is given is not read.
    effect: what it does to the order, without a full stop.
    """

    name: ClassVar[str]
    effect: ClassVar[str] = ""
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    takes_anything: ClassVar[bool] = False

    def __init_subclass__(cls, *, is_call: bool = True) -> None:
        if is_call and "name" not in vars(cls):
            cls.name = cls.__name__
        dataclass(frozen=True, kw_only=True)(cls)
        # A class that writes none has its fields as parameters, in their order.
        if "parameters" not in vars(cls):
            cls.parameters = tuple(value(one.name, **one.metadata) for one in fields(cls))

    def __post_init__(self) -> None:
        try:
            keep_fields(self)
        except UsageError as error:  # these are no arguments of a function or of a command
            raise UsageError(f"{self.name}: {error}") from None

    @classmethod
    def made(cls, values: dict[str, Any]) -> tuple[Part, ...]:
        """Return what the call makes of the values of its arguments, by their own names."""
        return (cls(**values),)

    @property
    def called(self) -> str:
        """The call as a script has it: the name, but of what this one stands for."""
        return self.name

    def why_open(self, deterministic: bool | None, global_seed: int | None) -> str | None:
        """Return why it makes the order nondeterministic, None if it does not.

        deterministic: of the options in force for the whole pipeline.
        """
        return None

    # The pipelines within it.

    @property
    def pipelines(self) -> tuple[Pipeline, ...]:
        """The pipelines that it combines, in the order in which a script builds them."""
        # By the declared kinds of its parameters, so that a new combination needs no code here.
        found: list[Any] = []
        for parameter in self.parameters:
            if parameter.takes == "pipelines":
                found += getattr(self, parameter.name)
            elif parameter.takes == "pipeline":
                found.append(getattr(self, parameter.name))
        return tuple(found)

    @property
    def fed_by(self) -> tuple[Pipeline, ...]:
        """Those of them whose examples it yields."""
        return self.pipelines

    def mapped(self, change: Callable[[Pipeline], Pipeline]) -> Self:
        """Return it with every pipeline within it changed."""
        # A part without pipelines returns itself, so unchanged trees are not copied.
        changed: dict[str, Any] = {}
        for parameter in self.parameters:
            if parameter.takes == "pipelines":
                changed[parameter.name] = tuple(map(change, getattr(self, parameter.name)))
            elif parameter.takes == "pipeline":
                changed[parameter.name] = change(getattr(self, parameter.name))
        return replace(self, **changed) if changed else self


class Stage(Part, is_call=False):
    """What is done with a dataset.

    takes_function: the first argument of the call is a function of the script.
    keeps_order: it changes no order, but stops TensorFlow from fusing shuffle and repeat.
    is_plain: it is a method of tf.data whose arguments are its own; else a function, a dataset or
        options are among them.
    """

    takes_function: ClassVar[bool] = False
    keeps_order: ClassVar[bool] = False
    is_plain: ClassVar[bool] = True

    def goes_on(self, endless: bool) -> bool:
        """Return whether it never ends, behind what is endless or not."""
        # None is a length that is not known: only an answer of `inf` from it is certain.
        return self.length(inf if endless else None, _ends(self)) == inf

    def length(self, count: Count, others: Sequence[Count] = ()) -> Count:
        """Return how many elements are left of `count`; `others` are those of its pipelines."""
        if count is None or count == inf:
            return count
        return self.whole_length(int(count))

    def whole_length(self, count: int) -> int:
        """Return how many elements are left of a whole number of them."""
        return count

    @property
    def is_noop(self) -> bool:
        """Whether TensorFlow takes it out before it runs (noop_elimination.cc)."""
        return False

    @property
    def as_run(self) -> Stage:
        """What TensorFlow makes of it before it runs (map_parallelization.cc)."""
        return self

    def in_tf(self) -> TfCall | None:
        """Return the method of tf.data that it is, None where its arguments are no plain ones."""
        if not self.is_plain:
            return None
        # The main argument goes by place, the others by name and only where they are not defaults.
        by_place = (getattr(self, one.name, None) for one in self.parameters[:1])
        return TfCall(
            method=self.name,
            by_place=tuple(_in_tf(given) for given in by_place if given is not None),
            by_name=named_in_tf(self),
            takes_function=self.takes_function,
        )


class Source(Part, is_call=False):
    """What a pipeline begins with."""

    @property
    def never_ends(self) -> bool:
        """Whether it has no end, as far as the stages tell."""
        return self.length(_ends(self)) == inf

    def length(self, others: Sequence[Count]) -> Count:
        """Return how many elements it yields, of those of its pipelines."""
        return None


def _ends(part: Part) -> list[Count]:
    return [inf if one.never_ends else None for one in part.pipelines]


def _in_tf(given: Any) -> Any:
    return AUTOTUNE if given == "auto" else given


def named_in_tf(part: Part) -> dict[str, Any]:
    """Return the arguments behind the first that are not defaults, by the names of tf.data."""
    said = said_of(part)
    # The first of the other names is tf.data's own; without one both are called the same.
    return {
        (*one.others, one.name)[0]: _in_tf(said[one.name])
        for one in part.parameters[1:]
        if one.name in said
    }


def said_of(part: Part) -> dict[str, Any]:
    """Return the arguments of a stage or source that are not its defaults."""
    return {
        field.name: getattr(part, field.name)
        for field in fields(part)
        if field.default is MISSING or getattr(part, field.name) != field.default
    }


# What the fields of stages take, in the ranges of tf.data.

KernelPair = tuple[int, int]


def _number(rule: str, least: int, *also: int, most: int = INT64_MAX) -> Kind:
    def take(value: Any) -> int:
        number = whole_number(value)
        if not least <= number <= most and number not in also:
            raise UsageError(rule)
        return number

    return Kind(take=take, needed="a whole number", several="whole numbers")


def _times(value: Any) -> int | None:
    number = whole_number(value)
    if number == 0:
        raise UsageError("nothing would be left, and TensorFlow refuses it behind a shuffle")
    if not -1 <= number <= INT64_MAX:
        raise UsageError("1 or more is needed, or -1 for no end")
    return None if number == -1 else number


def _auto(least: int) -> Kind:
    """Return the kind of a number of threads or elements; -1 is AUTOTUNE, as in tf.data."""
    # -1 is tf.data.AUTOTUNE.
    counted = _number(f'a number from {least} is needed, or "auto"', least, -1)

    def take(value: Any) -> int | str:
        if isinstance(value, str) and value == "auto":
            return "auto"
        number: int = counted.take(value)
        return "auto" if number == -1 else number

    return Kind(take=take, needed="a number or auto", several="numbers")


def _seed(value: Any) -> int | KernelPair:
    if not isinstance(value, tuple | list):
        return whole_number(value)
    pair = tuple(map(whole_number, value))
    if len(pair) != 2 or not all(-INT64_MAX <= seed <= INT64_MAX for seed in pair):
        raise UsageError("a seed, or the two seeds of the kernel, is needed")
    return pair


_NUMBERS = kind_of(tuple[float, ...])


def _weights(value: Any) -> tuple[float, ...]:
    weights: tuple[float, ...] = _NUMBERS.take(value)
    if any(weight < 0 for weight in weights) or not 0 < sum(weights) < float("inf"):
        raise UsageError("weights of 0 or more are needed, of which one is more than 0")
    return weights


def _word(value: Any) -> str:
    word = text(value)
    if not word:
        raise UsageError("a name is needed")
    return word


def _own_settings(value: Any) -> tuple[tuple[str, object], ...]:
    pairs = value.items() if isinstance(value, Mapping) else value
    if not isinstance(pairs, Iterable) or isinstance(pairs, str):
        raise UsageError("settings by their names are needed")
    kept: dict[str, object] = {}
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise UsageError("pairs of a name and a value are needed")
        name = text(pair[0])
        if name in kept:
            raise UsageError(f"{name} is there twice")
        # Stages are hashable, and lists are not.
        kept[name] = tuple(pair[1]) if isinstance(pair[1], list) else pair[1]
    return tuple(kept.items())


_FROM_0 = f"a number from 0 to {INT64_MAX}"
_BUFFER = f"a number of elements from 1 to {INT64_MAX} is needed, or {WHOLE_DATASET} for all"
Buffer = Annotated[int, _number(_BUFFER, 1, WHOLE_DATASET)]
PositiveCount = Annotated[int, _number(f"a number from 1 to {INT64_MAX} is needed", 1)]
Number = Annotated[int, _number(f"{_FROM_0} is needed", 0)]
CountOrAll = Annotated[int, _number(f"{_FROM_0}, or -1 for all, is needed", -1)]
Cardinality = Annotated[int, _number(f"{_FROM_0}, or -1 for what has no end, is needed", -1)]
Times = Annotated[int, Kind(take=_times, needed="a whole number", several="whole numbers")]
Calls = Annotated[int | Literal["auto"], _auto(1)]
Held = Annotated[int | Literal["auto"], _auto(0)]
Seed = Annotated[int | KernelPair, Kind(take=_seed, needed="a seed", several="seeds")]
Weights = Annotated[tuple[float, ...], Kind(take=_weights, needed="weights", several="weights")]
Word = Annotated[str, Kind(take=_word, needed="a name", several="names")]
OwnSettings = Annotated[
    tuple[tuple[str, object], ...],
    Kind(take=_own_settings, needed="settings by their names", several="settings"),
]
