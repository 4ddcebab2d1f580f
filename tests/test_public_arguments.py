"""The edge of the Python API: every number there is gives the same answer, all else is refused."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import shardctl
from shardctl.base.phrase import option_name
from shardctl.errors import ShardctlError
from shardctl.order.order import Order
from shardctl.tfdata.shuffle_buffer import ShuffleReplay
from tests.cases import add_cases
from tests.golden import assert_evaluated
from tests.late_modules import needs
from tests.public_calls import CALLS, HANDED_ON, Call, World, public_parameters
from tests.tfds_datasets import build_dataset

_BRIDGE = ("inspect", "orbax.", "tfds.", "verify")
OF_PLANNING = [name for name in CALLS if not name.startswith(_BRIDGE) or name == "verify_files"]
MOST = 2**63 - 1

NEEDS_ORBAX = needs("orbax", reason="Orbax is not installed")


def skipped_without_orbax(names: Iterable[str]) -> list[Any]:
    """Return names for `parametrize`, those of `shardctl.orbax` with a mark."""
    return [
        pytest.param(name, marks=NEEDS_ORBAX) if name.startswith("orbax.") else name
        for name in names
    ]


class Number(int):
    """An int of another name."""


class Index:
    """Nothing but a number, as PyTorch's and JAX's are."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


NUMPY_TYPES = [getattr(np, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]
NUMBER_TYPES: list[Callable[[int], Any]] = [
    *NUMPY_TYPES,
    *(lambda value, dtype=dtype: np.array(value, dtype) for dtype in NUMPY_TYPES),
    Number,
    Index,
]


def tensorflow_types(tf: Any) -> list[Callable[[int], Any]]:
    import keras

    dtypes = (tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64)

    def iterations(value: int) -> Any:
        optimizer = keras.optimizers.SGD()
        optimizer.iterations.assign(value)
        return optimizer.iterations

    return [
        *(lambda value, dtype=dtype: tf.constant(value, dtype) for dtype in dtypes),
        lambda value: tf.Variable(value, dtype=tf.int64),
        lambda value: tf.constant(value).numpy(),
        iterations,
    ]


def plain(value: Any) -> Any:
    """Return an answer as values that compare, each number with its type."""
    if isinstance(value, Order):
        return ("order", plain(value.settings), plain(value.read(0, value.num_examples)))
    if isinstance(value, ShuffleReplay):
        return plain(list(value.chunks(0)))
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.tolist())
    if isinstance(value, shardctl.Dataset):
        return ("dataset", value.identity)
    if dataclasses.is_dataclass(value):
        fields = [field.name for field in dataclasses.fields(value) if field.compare]
        return (type(value).__name__, *((name, plain(getattr(value, name))) for name in fields))
    if isinstance(value, list | tuple):
        return (type(value).__name__, *map(plain, value))
    if isinstance(value, Iterator):
        return ("iterator", *map(plain, value))
    if hasattr(value, "element_spec"):
        return ("tf.data", *map(plain, value.as_numpy_iterator()))
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return (type(value).__name__, str(value) if callable(value) else repr(value))


def is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_numbers(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return True
    return isinstance(value, list | tuple) and bool(value) and all(map(is_number, value))


def number_arguments(arguments: dict[str, Any]) -> list[str]:
    return [name for name, value in arguments.items() if is_number(value) or is_numbers(value)]


def as_type(value: Any, number: Callable[[int], Any]) -> Any:
    """Return a number, or the numbers of a list or an array, in a type."""
    return number(value) if is_number(value) else [number(int(one)) for one in value]


def say(name: str, arguments: dict[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={written(value)}' for key, value in arguments.items())})"


def written(value: object) -> str:
    try:
        return f"{value!r:.300}"
    except ValueError:  # a number of more digits than Python writes
        return "10**5000"
    except AttributeError:  # the shell of a position
        return type(value).__name__


def checked_same(
    name: str, types: Iterable[Callable[[int], Any]], world: World, *, together: bool = False
) -> int:
    """Compare the answers of a function to each of its numbers in each of the types.

    together: whether all numbers of a call are of the type, as is tried where calls take long.
    """
    num_cases = 0
    for call in CALLS[name]:
        arguments = call.arguments(world)
        numbers = number_arguments(arguments)
        if not numbers:
            continue
        expected = plain(call(world))
        groups = [[argument] for argument in numbers]
        for number, group in itertools.product(types, [numbers] if together else groups):
            changed = {argument: as_type(arguments[argument], number) for argument in group}
            assert plain(call(world, **changed)) == expected, say(name, arguments | changed)
            num_cases += 1
    return num_cases


@pytest.mark.long
@NEEDS_ORBAX
def test_every_public_argument_has_a_case() -> None:
    assert set(CALLS) == set(public_parameters())
    for name, parameters in public_parameters().items():
        given = {argument for call in CALLS[name] for argument in call.arguments(World())}
        assert given | set(HANDED_ON) >= set(parameters), name
        assert given <= set(parameters) | set(HANDED_ON), name


# Of those that work for long, ordinary runs try the types that wrap first or become a float.
_LONG = [
    *("compare_reports", "grain.data_loader", "locate", "quality", "rehearse", "report"),
    "resume_on_hosts",
    "torch.data_loader",
]
_FEW_TYPES = [np.int8, np.uint64, Index]


@pytest.mark.long
@pytest.mark.parametrize("name", OF_PLANNING)
def test_every_type_of_number_gives_the_answer_of_the_int(name: str) -> None:
    types = _FEW_TYPES if name in _LONG else NUMBER_TYPES
    add_cases(checked_same(name, types, World()))


@pytest.mark.long
@pytest.mark.parametrize("name", OF_PLANNING)
def test_arrays_flags_and_texts_of_numpy_are_kept_as_those_of_python(name: str) -> None:
    world = World()
    for call in CALLS[name]:
        arguments, expected = call.arguments(world), None
        for argument, value in arguments.items():
            kinds: Any = {bool: (np.bool_, np.array), str: (np.str_,)}.get(type(value), ())
            if is_numbers(value):
                kinds = [lambda given, of=dtype: np.array(given, of) for dtype in NUMPY_TYPES]
            for kind in kinds:
                expected = expected or plain(call(world))
                changed = {argument: kind(value)}
                assert plain(call(world, **changed)) == expected, say(name, arguments | changed)
                add_cases()


WRONG_NUMBERS: list[Any] = [
    *(True, False, np.bool_(True), np.array(True), 1.0, 1.5, float("nan"), float("inf"), 1j),
    *(np.float32(1), np.array(1.0), "1", b"1", "all of them", (1.5,), {1: 2}, Fraction(1)),
    *(Decimal(1), object(), 10**5000, np.array([[1, 2]]), np.array([1.5]), np.array(["1"])),
    *(np.array([True, False]), np.array("1970-01-02", "datetime64[D]")),
    *([1.0, 2], [True, 2], [None], ["1"]),
]
NO_LIST = [[1], (1, 2), np.array([1]), range(3)]
WRONG: dict[str, list[Any]] = {
    "number": [*WRONG_NUMBERS, *NO_LIST],
    "numbers": [*WRONG_NUMBERS],
    "array": [*WRONG_NUMBERS, np.array([2**63], np.uint64), [2**63]],
    "flag": ["no", "", 0, 1, 1.0, [], [True], np.array([True]), np.int64(1), object()],
    "word": ["nothing of this name", "", 3, True, ["train"], object()],
    "text": [3, True, 1.5, b"train", ["train"], object()],
    "real": [True, "0.5", b"1", float("nan"), float("inf"), 1j, [0.5], object(), np.bool_(True)],
    "texts": [3, "train", b"train", [3], [None], {"train": 1}, object()],
    "value": ["mnist", 3, True, 1.5, {}, object(), b"mnist"],
}


def wrong_values(parameter: inspect.Parameter, value: Any) -> list[Any]:
    """Return what an argument refuses, by what it takes."""
    annotation = re.sub(r"\b[a-z_]+\.(?=[A-Z])", "", str(parameter.annotation))  # of its module
    if parameter.name in ("kind", "mode", "remainder", "host_by", "loop"):
        kind = "word"
    elif is_number(value) and ("Sequence" in annotation or "tuple" in annotation):
        kind = "numbers"
    elif parameter.kind is parameter.VAR_POSITIONAL:
        kind = "text"
    else:
        kinds = {bool: "flag", int: "number", str: "text", float: "real", np.ndarray: "array"}
        kind = kinds.get(type(value), "value")
        if kind == "value" and is_numbers(value):
            kind = "numbers"
        elif kind == "value" and isinstance(value, list | tuple) and type(value[0]) is str:
            kind = "texts"
    optional = "None" in annotation or annotation == "Take"
    wrong = [*WRONG[kind], *([] if optional else [None])]
    if parameter.name == "id":
        return [True, 1.5, b"1", object(), [1.5], [None], {1: 2}]
    if annotation == "SettingsLike" or annotation.startswith(("SettingsLike |", "ChangedSettings")):
        wrong = [one for one in wrong if one != {}]
    if parameter.name == "stages":  # a spec alone is a source
        wrong = [one for one in wrong if not isinstance(one, str) and one not in (["train"], [])]
    if annotation == "str | Sequence[str]":
        wrong = [one for one in wrong if one != ["train"]]
    # A reference, or the path of a file, that leads nowhere, is refused in its own words.
    likes = ("PlanOrPath", "DatasetLike", "DatasetLike | None", "Comparable", "Comparable | None")
    refers = (*likes, "BuilderOrDataset", "ComparedReport")
    text_too = annotation in refers or (
        "str" in annotation.replace("Sequence[str]", "") and kind in ("number", "value", "texts")
    )
    if annotation == "int | str":  # a text, or a number
        return [one for one in wrong if not isinstance(one, str) and type(one) is not int]
    if "| None, ..." in annotation:
        wrong = [one for one in wrong if type(one) is not list or one[0] is not None]
    return [one for one in wrong if not (text_too and isinstance(one, str))]


def checked_wrong(name: str, world: World, more: Iterable[Any] = ()) -> int:
    """Give a function every wrong value for each of its arguments; it names the argument."""
    num_cases = 0
    for call in CALLS[name]:
        arguments = call.arguments(world)
        for argument, value in arguments.items():
            if argument in HANDED_ON:
                continue
            parameter = public_parameters()[name][argument]
            for wrong in [*wrong_values(parameter, value), *more]:
                refused(name, call, world, parameter, wrong)
                num_cases += 1
    return num_cases


def finished(answer: Any) -> Any:
    """Return an answer; what comes one by one is taken to its end."""
    return list(answer) if isinstance(answer, Iterator) else answer


def refused(name: str, call: Call, world: World, parameter: inspect.Parameter, wrong: Any) -> None:
    argument = parameter.name
    given = [wrong] if parameter.kind is parameter.VAR_POSITIONAL else wrong
    said = say(name, call.arguments(world) | {argument: given})
    answer = error = None
    try:
        answer = finished(call(world, **{argument: given}))
    except Exception as raised:
        error = raised
    assert isinstance(error, ShardctlError), f"{said}: {error!r:.300} {answer!r:.300}"
    assert argument in str(error), f"{said}: {error}"
    assert str(error).isprintable(), said
    assert len(str(error)) < 1000, said


@pytest.mark.long
@pytest.mark.parametrize("name", skipped_without_orbax(CALLS))
def test_what_is_no_number_flag_text_or_value_of_ours_is_refused_by_name(name: str) -> None:
    add_cases(checked_wrong(name, World()))


BEYOND = (-(2**63) - 1, 2**62, 2**63, 2**64 + 5, 10**600)
# Of any size, as TensorFlow's seeds are, or cut where the order or the work ends.
OF_ANY_SIZE = {
    *("shuffle_seed", "buffer_seed", "global_seed", "seeds", "exact_limit", "take", "num_bytes"),
    *("shard_bytes", "size", "memory", "example_bytes", "block", "value", "source", "save_every"),
}
# Settings, counts and ids that an int64 holds; what comes of them is refused where it is too large.
LARGE = {"ReadSettings", "Usage", "FileInstruction", "Split", "Split.even"}
LARGE |= {"Order.positions_of", "Order.positions_in_pieces"}
LARGE_ARGUMENTS = {
    ("grain.Sampler.begin_epoch_of_fit", "epoch"),
    ("grain.consumed", "batch"),
    ("torch.Sampler.set_epoch", "epoch"),
    ("prove", "seen"),
    ("resume_unseen", "seen"),
}
# What these ask for beyond the end is cut there.
CUT = {"SplitLayout.shards", "Split.filenames_between"}


@pytest.mark.parametrize("name", OF_PLANNING)
def test_numbers_that_would_wrap_are_refused(name: str) -> None:
    world = World()
    for call in CALLS[name]:
        arguments = call.arguments(world)
        for argument, beyond in itertools.product(number_arguments(arguments), BEYOND):
            large = name in LARGE or (name, argument) in LARGE_ARGUMENTS
            cut = name in CUT and argument in ("start", "stop")
            if argument in OF_ANY_SIZE or cut or (large and beyond == 2**62):
                continue
            wrong = as_type(arguments[argument], lambda _, number=beyond: number)  # type: ignore[misc]
            with pytest.raises(ShardctlError) as raised:
                finished(call(world, **{argument: wrong}))
            said = str(raised.value)
            names = (argument, option_name(argument))
            named = (
                any(name in said for name in names)
                or str(beyond)[:40] in said
                or "an int64 holds" in said
            )
            assert named, f"{say(name, {argument: wrong})}: {said}"
            add_cases()


def test_settings_whose_order_would_wrap_are_refused() -> None:
    assert_evaluated(globals(), "wrapping")


@pytest.mark.parametrize("setting", ["cycle", "block", "batch", "buffer"])
def test_the_largest_settings_read_as_any_that_are_more_than_there_is(setting: str) -> None:
    dataset = World().dataset

    def answers(value: int) -> Any:
        common: dict[str, Any] = {
            "shuffle_seed": 3,
            "buffer": 5,
            "buffer_seed": 7,
            "epochs": 2,
            "batch": 4,
        }
        settings = shardctl.ReadSettings(**(common | {setting: value}))
        plan = shardctl.resume(dataset, "train", settings, consumed=29)
        ids = shardctl.simulate(dataset, "train", settings, take=None).ids().tolist()
        return ids, [(i.filename, i.skip, i.take) for i in plan.file_instructions]

    expected = answers(1000)
    for value in (2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**62, MOST):
        assert answers(value) == expected, value
        add_cases()


@pytest.fixture(scope="module")
def real_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    tfds = pytest.importorskip("tensorflow_datasets")
    root = tmp_path_factory.mktemp("public")
    folder = build_dataset(root, splits={"train": [6, 6, 6, 6], "test": [5, 5]})
    world = World(tfds.builder_from_directory(folder), folder=str(root))
    world.dataset = shardctl.read_dataset(str(folder))
    world.position.save(root / "position.json")
    return world


@pytest.mark.parametrize("name", OF_PLANNING)
def test_numbers_of_tensorflow_give_the_answer_of_the_int(tf: Any, name: str) -> None:
    *_, variable, scalar, iterations = types = tensorflow_types(tf)
    if name in _LONG:
        types = [variable, scalar, iterations]
    add_cases(checked_same(name, types, World(), together=True))


# Those that build a dataset of tf.data each time, or run it.
_RUNNING = [
    *("tfds.Position.dataset", "tfds.read_config", "tfds.resume", "tfds.resume_epochs"),
    *("tfds.resume_like", "tfds.verify", "tfds.verify_dataset", "tfds.verify_plan"),
]


@pytest.mark.parametrize(
    "name", skipped_without_orbax(name for name in CALLS if name.startswith(("orbax.", "tfds.")))
)
def test_the_bridge_answers_every_type_of_number_as_the_int(
    tf: Any, real_world: World, name: str
) -> None:
    # All go through the edge that the other tests look at; TensorFlow takes its time.
    *_, iterations = tensorflow_types(tf)
    types = [iterations] if name in _RUNNING else [np.int64, iterations]
    add_cases(checked_same(name, types, real_world, together=True))


@pytest.mark.parametrize("name", skipped_without_orbax(CALLS))
def test_tensors_that_are_no_number_are_refused_by_name(tf: Any, name: str) -> None:
    world = World()
    wrong = [tf.constant(1.5), tf.constant(True), tf.constant([[1]]), tf.Variable(2.0)]
    wrong += [tf.constant("1"), tf.ragged.constant([[1], [2, 3]])]
    num_cases = 0
    for call in CALLS[name]:
        for argument in number_arguments(call.arguments(world)):
            for one in wrong:
                refused(name, call, world, public_parameters()[name][argument], one)
                num_cases += 1
    add_cases(num_cases)
