"""A user's script, watched while it runs: who makes datasets, and who iterates them."""

from __future__ import annotations

import contextlib
import importlib.abc
import itertools
import linecache
import math
import os
import pickle
import random
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from types import FrameType, FunctionType, ModuleType
from typing import Any

from shardctl.base.text import counted
from shardctl.errors import UsageError
from shardctl.loaders.loader import LOADERS, object_of
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.inspecting.graph import Operation, operation_of
from shardctl.verbs.inspect.answer import SourceLine


def is_dataset(value: Any) -> bool:
    """Return whether a value is a `tf.data.Dataset`, or one that `tf.distribute` distributes."""
    return hasattr(value, "_variant_tensor") or clones_of(value) is not None


def clones_of(value: Any) -> Any:
    """Return the datasets of the workers of a distributed dataset, None of any other value."""
    if hasattr(value, "_variant_tensor"):
        return None
    # Private attributes of the datasets that tf.distribute makes.
    for name in ("_cloned_datasets", "_datasets"):
        found = getattr(value, name, None)
        if isinstance(found, list | tuple) and found:
            return found
    return None


def is_read_back(value: Any) -> bool:
    """Return whether a value is a dataset, or an object of another loader that is read back."""
    return is_dataset(value) or object_of(value) is not None


# Which line of a script makes each dataset: watched while the script runs, and then undone.
#
# A `tf.data.Dataset` keeps no trace of who made it. While a script is watched, each dataset is
# made under a name of its own (the name that `ds.map(f, name=..)` gives), which TensorFlow keeps
# in the graph; nothing that reads depends on it.

_PREFIX = "shardctl:"
_TOKEN = "_shardctl_token"  # noqa: S105 - the attribute of a dataset that has its name
# Packages whose code makes datasets because a script asked them to.
_LIBRARIES = ("tensorflow", "tensorflow_datasets", "keras", "tf_keras", "tree", "etils", "wrapt")

Key = str | tuple[Any, ...]


class Lines:
    """The lines that made the datasets of a script."""

    def __init__(self) -> None:
        self._by_key: dict[Key, SourceLine] = {}
        self._made: list[Any] = []  # kept, so that no two have one name

    def of(self, operation: Operation) -> SourceLine | None:
        """Return the line that made an operation, None where none was watched."""
        return self._by_key.get(_key_of_operation(operation))

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Note who makes datasets while the block runs, in this thread; others wait their turn."""
        from tensorflow.python.data.ops import dataset_ops  # no public name

        kind, here = dataset_ops.DatasetV2, threading.get_ident()
        # One watch at a time, as the methods of TensorFlow's class are replaced for the whole
        # process.
        with _lock:
            plain = plain_init, plain_metadata = kind.__init__, kind._metadata

            def init(dataset: Any, *args: Any, **kwargs: Any) -> None:
                plain_init(dataset, *args, **kwargs)
                # Other threads make datasets as before.
                if threading.get_ident() == here:
                    self.note(dataset, _line_of_script(sys._getframe(1))[0])

            def metadata(dataset: Any) -> Any:
                found = plain_metadata.fget(dataset)
                if threading.get_ident() == here:
                    # The name goes into the node's metadata, which inspection reads back from the
                    # graph.
                    token = f"{_PREFIX}{next(_numbers)}"
                    found.name = dataset.__dict__.setdefault(_TOKEN, token).encode()
                return found

            kind.__init__, kind._metadata = init, property(metadata)
            try:
                yield
            finally:
                # Always undone, also where the script raises an error.
                kind.__init__, kind._metadata = plain

    def note(self, dataset: Any, line: SourceLine | None) -> None:
        """Note the line that made a dataset."""
        self._made.append(dataset)
        if line is not None:
            with contextlib.suppress(NotImplementedError, AttributeError):
                self._by_key.setdefault(_key_of_dataset(dataset), line)


_lock = threading.RLock()  # a script may inspect another
_numbers = itertools.count(1)  # over all scripts, since a dataset of one may be used in another


def _key_of_dataset(dataset: Any) -> Key:
    """Return the name of a dataset; of one that takes none the names of what it reads."""
    token: str | None = dataset.__dict__.get(_TOKEN)
    if token is not None:
        return token
    return tuple(_key_of_dataset(each) for each in dataset._inputs())


def _key_of_operation(operation: Operation) -> Key:
    name = operation.object_name
    if name is not None and name.startswith(_PREFIX):
        return name
    return tuple(_key_of_operation(each) for each in operation.inputs)


def _line_of_script(frame: FrameType | None) -> tuple[SourceLine | None, bool]:
    """Return the innermost line that is no library's that makes datasets for others.

    The other value is whether a script runs there, though it may have no line of its own, as where
    TFDS iterates what it was given.
    """
    # From the innermost frame outwards: the call in the script, not the library that it calls.
    while frame is not None and frame.f_code is not of_script.__code__:
        path = frame.f_code.co_filename
        if is_of_script(path):
            text = linecache.getline(path, frame.f_lineno).strip()
            # Where the call that runs ends, which tells it from others on its line.
            places = itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None)
            _, line, _, column = next(places, (None,) * 4)
            end = None if line is None or column is None else (line, column)
            return SourceLine(file=shown_path(path), line=frame.f_lineno, text=text, end=end), True
        frame = frame.f_back
    return None, frame is not None


def shown_path(path: str) -> str:
    """Return a path from here where the file lies below, else as it is."""
    shown = os.path.relpath(path)
    return path if shown.startswith(os.pardir) else shown


def is_of_script(path: str) -> bool:
    """Return whether a file is no part of Python, TensorFlow or a library that makes datasets."""
    library = sysconfig.get_paths()["stdlib"] + os.sep
    # "-packages" is in site-packages and dist-packages, which lie below the standard library.
    of_python = path.startswith(library) and "-packages" + os.sep not in path
    # Functions of a script that TensorFlow traces run as a file of its own.
    is_traced = "__autograph_generated_file" in path
    return not (path.startswith(("<", *_roots())) or of_python or is_traced)


def _roots() -> Iterator[str]:
    names = (*_LIBRARIES, *(name for loader in LOADERS.values() for name in loader.packages))
    files = [getattr(sys.modules.get(name), "__file__", None) for name in names]
    # This package itself, too.
    for file in (os.path.dirname(os.path.dirname(os.path.abspath(__file__))), *files):
        if file is not None:
            yield os.path.dirname(file) + os.sep


# Which datasets does a script iterate? A function may return a generator, or another object that
# iterates a dataset, in place of the dataset.
#
# While a script is watched, iterators of datasets are made, but read nothing and take no seeds
# before they are asked for an element. Then a function decides what they read.

_MOST_ZEROS = 1 << 24
_MOST = 16  # elements that a returned object is asked for, or that it asks for


@dataclass(kw_only=True, eq=False)
class Iterated:
    """An iterator that a script made: its dataset, its line, and how far it was read."""

    dataset: Any
    line: SourceLine | None
    begun: bool = False
    shown: bool = False  # its one element of zeros was yielded
    taken: int = 0
    ended: bool = False
    refused: str | None = None  # why it may not be read any further

    def __str__(self) -> str:
        return str(self.line or "what the function returns")


class _Enough(BaseException):
    """A script has shown what it iterates."""


class Iterators:
    """The iterators that a script makes of datasets, in their order.

    begin: returns the dataset that an iterator reads, when it is asked for its first element.
    element_of: returns the next element of an iterator; its other argument reads it.
    """

    begin: Callable[[Iterated], Any] = staticmethod(lambda iterated: iterated.dataset)
    element_of: Callable[[Iterated, Callable[[], Any]], Any] = staticmethod(
        lambda _, following: following()
    )

    def __init__(self) -> None:
        self.made: list[Iterated] = []
        self.called: list[Iterated] = []  # those made before the function returned
        # Not None while what a function returned is asked which datasets it iterates.
        self._asked: list[Iterated] | None = None
        self._left = _MOST

    @contextlib.contextmanager
    def watched(self, *, every_thread: bool = False) -> Iterator[None]:
        """Watch the iterators that are made while the block runs, in this thread or in every."""
        here = threading.get_ident()
        with _lock:
            kind = _watched_kind()
            plain_kind: Any = kind.__mro__[1]
            plain = plain_kind.__init__

            def init(
                iterator: Any, dataset: Any = None, components: Any = None, element_spec: Any = None
            ) -> None:
                line, in_script = _line_of_script(sys._getframe(1))
                is_ours = in_script and (every_thread or threading.get_ident() == here)
                # Those of a `tf.function` and of other kinds are left as they are.
                is_plain = type(iterator) is plain_kind and tensorflow().executing_eagerly()
                if dataset is None or not (is_ours and is_plain):
                    plain(iterator, dataset, components, element_spec)
                    return
                iterator.__class__ = kind  # which makes the rest of it later
                iterator._shardctl = self, Iterated(dataset=dataset, line=line)
                iterator._dataset, iterator._element_spec = dataset, dataset.element_spec
                self._made(iterator._shardctl[1])

            plain_kind.__init__ = init
            try:
                yield
            finally:
                plain_kind.__init__ = plain

    def _made(self, iterated: Iterated) -> None:
        if self._asked is not None:
            # A further pass. After an iterator that was not read to its end it is none: that one
            # looked at an element.
            if any(iterated.dataset is one.dataset and one.ended for one in self._asked):
                raise _Enough
            self._asked.append(iterated)
        self.made.append(iterated)

    def element(self, iterated: Iterated, following: Callable[[], Any]) -> Any:
        """Return the next element of an iterator, by its own method.

        Where it is only asked for nothing is read: each iterator has one element, of zeros.
        """
        if iterated.refused is not None:
            raise UsageError(iterated.refused)
        try:
            if self._asked is None:
                found = self.element_of(iterated, following)
            else:
                found = self._blank(iterated)
        except tensorflow().errors.OutOfRangeError:
            iterated.ended = True
            raise
        iterated.taken += self._asked is None
        return found

    def _blank(self, iterated: Iterated) -> Any:
        assert self._asked is not None
        self._left -= 1
        if not self._left:
            raise _Enough
        if iterated not in self._asked:
            self._asked.append(iterated)
        blank = None if iterated.shown else filled(iterated.dataset)
        iterated.shown = True
        if blank is None:
            raise tensorflow().errors.OutOfRangeError(None, None, "")
        return blank

    def of(self, value: Any) -> list[Iterated]:
        """Return what an object iterates that a function returned, by asking it for elements.

        Raises:
            Exception: of the object, where it fails before it has iterated anything.
        """
        found: list[Iterated] = []
        self._asked, self._left = found, _MOST
        try:
            elements = of_script(iter, value)
            for _ in range(_MOST):
                of_script(next, elements)
        except (_Enough, StopIteration):
            pass
        except Exception:
            if not found:
                raise
        finally:
            self._asked = None
        return found


def filled(dataset: Any, value: int = 0, size: int = 1, others: int = 1) -> Any:
    """Return what looks like an element of a dataset, None where it cannot be made.

    value: which all its numbers are, as far as their types go.
    size: of batches of unknown size, `others` times; and `others` of other unknown dimensions.
    """
    tf = tensorflow()

    def made(spec: Any) -> Any:
        sizes = [*(spec.shape if spec.shape.rank else [])]
        unknown = [others * size, *[others] * len(sizes)]
        shape = [of or other for of, other in zip(sizes, unknown, strict=False)]
        if math.prod(shape) > _MOST_ZEROS:
            raise ValueError(shape)
        if value and spec.dtype == tf.string:
            return tf.fill(shape, str(value))
        if value and (spec.dtype.is_integer or spec.dtype.is_floating):
            least, most = spec.dtype.min, spec.dtype.max
            return tf.fill(shape, tf.cast(min(max(value, least), most), spec.dtype))
        return tf.ones(shape, spec.dtype) if value % 2 else tf.zeros(shape, spec.dtype)

    try:
        return tf.nest.map_structure(made, dataset.element_spec)
    except Exception:  # of any kind: elements may hold what is no tensor
        return None


def of_script(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function; in the frames above this one a script runs."""
    return function(*arguments)


@cache
def _watched_kind() -> type:
    """Return the class of iterators that are watched, a kind of TensorFlow's own."""
    from tensorflow.python.data.ops import iterator_ops  # no public name

    kind = iterator_ops.OwnedIterator
    plain = kind.__init__

    class Watched(kind):  # type: ignore[misc, valid-type]
        def __getattr__(self, name: str) -> Any:
            # What `__init__` makes of a dataset, made when it is asked for.
            if name not in ("_iterator_resource", "_flat_output_types", "_get_next_call_count"):
                raise AttributeError(name)
            iterators, iterated = self._shardctl
            iterated.begun = True
            with tensorflow().init_scope():  # the one who asks may be a function that is traced
                plain(self, iterators.begin(iterated))
            return getattr(self, name)

        def _next_internal(self) -> Any:
            iterators, iterated = self._shardctl
            return iterators.element(iterated, super()._next_internal)

    return Watched


# What a function returns: datasets, or what iterates them.


@dataclass(frozen=True, kw_only=True, eq=False)
class Returned:
    """A dataset that a function returns, or that Python code which it returns iterates.

    read: what an object of another loader was made with, None of a `tf.data.Dataset`.
    iterated: by that code; None where the dataset itself is returned.
    before: iterators that were made before, whose seeds it shares.
    draws: the generators of random numbers that make it another dataset in each call.
    may_draw: those that may do so, as the script could not be run twice.
    """

    dataset: Any
    read: Any = None
    iterated: Iterated | None = None
    before: Sequence[Iterated] = ()
    draws: str = ""
    may_draw: str = ""

    def after(self, made: Sequence[Iterated]) -> Returned:
        """Return it with those of the iterators made before it whose seeds it shares."""
        earlier = made[: made.index(self.iterated)] if self.iterated in made else made
        here = set(_reseeded(self.dataset))
        before = [one for one in earlier if not here.isdisjoint(_reseeded(one.dataset))]
        return replace(self, before=before)

    @property
    def assumptions(self) -> Iterator[str]:
        """What an answer about the dataset depends on, in sentences."""
        if self.may_draw:
            yield f"the numbers that the script draws from {self.may_draw} are seeded"
        if self.iterated is not None:
            yield (
                f"{self.iterated} iterates the dataset in Python. The order is that of the "
                "dataset; whether the Python code behind it reorders elements was not checked"
            )
            if self.iterated.taken:
                yield (
                    f"the function takes {counted(self.iterated.taken, 'element')} before it "
                    "returns; the order counts from the first of them"
                )


def returned_by(function: Callable[[], Any], said: str, lines: Lines) -> dict[str, Returned]:
    """Call a function; return the datasets that it returns, by their names if there are several.

    It returns one, a tuple with one among others (`tfds.load(with_info=True)`), a list or a dict;
    or, in their place, what iterates them: a generator, an iterator, an object with attributes.

    said: how the function is named in an error.

    TensorFlow is not imported for it: where the script does not, other loaders are asked for alone.
    A function that draws random numbers is called twice, and its datasets are compared.

    Raises:
        UsageError: it returns none of these.
    """
    drawn, before = set[str](), _states()
    found = _returned_by(function, said, lines, drawn)
    drawn |= {name for name, state in _states().items() if state != before[name]}
    names = " and ".join(sorted(drawn))
    if not drawn:
        return found
    try:
        again = _returned_by(function, said, Lines(), set())
    except Exception:  # of any kind, since it is the script's; some can be run only once
        return {name: replace(one, may_draw=names) for name, one in found.items()}
    return {
        name: one if name in again and _are_alike(one, again[name]) else replace(one, draws=names)
        for name, one in found.items()
    }


@contextlib.contextmanager
def _draws(drawn: set[str]) -> Iterator[None]:
    """Note whether random numbers are drawn from TensorFlow in the block though it has no seed."""
    from tensorflow.python.framework import random_seed  # no public name

    plain = random_seed.get_seed

    def get_seed(op_seed: Any) -> Any:
        found = plain(op_seed)
        # Stages of tf.data without a seed are named as such; functions are traced, not run.
        of_data = sys._getframe(1).f_globals["__name__"].startswith("tensorflow.python.data.")
        if found == (None, None) and tensorflow().executing_eagerly() and not of_data:
            drawn.add("tf.random")
        return found

    random_seed.get_seed = get_seed
    try:
        yield
    finally:
        random_seed.get_seed = plain


class _WithTensorflow(importlib.abc.MetaPathFinder):
    """Enters contexts as soon as TensorFlow is imported, which may be now, later or never."""

    def __init__(self, *watched: Callable[[], contextlib.AbstractContextManager[None]]) -> None:
        self._watched, self._here = watched, threading.get_ident()
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> None:
        if "tensorflow" in sys.modules:
            self._begin()
        else:
            sys.meta_path.insert(0, self)

    def __exit__(self, *error: Any) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self._stack.close()

    def _begin(self) -> None:
        for each in self._watched:
            self._stack.enter_context(each())

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Return TensorFlow as the other finders find it, to be watched once it is loaded."""
        # Libraries look for it without an import, too.
        if name != "tensorflow" or threading.get_ident() != self._here:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        found: Any = next(
            filter(None, (each.find_spec(name, path, target) for each in others)), None
        )
        if found is not None and found.loader is not None:
            plain = found.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                plain(module)
                self._begin()

            found.loader.exec_module = exec_module
        return found


def _states() -> dict[str, bytes]:
    import numpy as np

    states = {"random": random.getstate(), "numpy.random": np.random.get_state()}
    return {name: pickle.dumps(state) for name, state in states.items()}


def _are_alike(one: Returned, other: Returned) -> bool:
    """Return whether two datasets have the same stages and the same constants."""
    if one.read is not None or other.read is not None:
        first, second = (one.read, other.read)
        return (first.stages, first.settings) == (second.stages, second.settings)
    first, second = (
        [
            # The resources of shuffles are others in each call, and so are their names.
            (node.op, node.attr["dtype"].type != _RESOURCE and node.attr["value"].tensor)
            for node in operation_of((clones_of(each) or [each])[0]).graph.nodes.values()
        ]
        for each in (one.dataset, other.dataset)
    )
    return first == second


_RESOURCE = 20  # of TensorFlow's types of elements, DT_RESOURCE


def _returned_by(
    function: Callable[[], Any], said: str, lines: Lines, drawn: set[str]
) -> dict[str, Returned]:
    iterators, errors = Iterators(), list[Exception]()
    watched = partial(iterators.watched, every_thread=True)
    with _WithTensorflow(lines.watched, watched, partial(_draws, drawn)):
        value = function()
        made = iterators.called = [*iterators.made]
        found = _parts(value, iterators, errors)
        if not found and hasattr(value, "__dict__") and not isinstance(value, _NO_VALUES):
            found = _parts(vars(value), iterators, errors)
    if not found and errors:
        raise errors[0]
    if not found and hasattr(value, "__next__"):
        # Of a thread that reads ahead, and had begun before it could be asked.
        found = _iterating(made, made)
    if not found:
        kind = "None" if value is None else type(value).__name__
        raise UsageError(
            f"{said} returned {kind}, no tf.data.Dataset nor what iterates one, and no object of "
            "another loader; return the object itself"
        )
    iterated = [one.dataset for one in found.values() if one.iterated is not None]
    found = {
        name: one
        for name, one in found.items()
        if one.iterated is not None or not any(one.dataset is each for each in iterated)
    }
    if len(found) == 1:
        found = {"": found.popitem()[1]}
    return found


_NO_VALUES = (type, FunctionType, ModuleType)


def _parts(value: Any, iterators: Iterators, errors: list[Exception]) -> dict[str, Returned]:
    """Return the datasets that a value is, holds or iterates, by their names.

    Errors of what it holds are appended.
    """
    if is_dataset(value):
        return {"": Returned(dataset=value).after(iterators.called)}
    read = object_of(value)
    if read is not None:
        return {"": Returned(dataset=value, read=read)}
    if isinstance(value, list | tuple):
        # Members of a list are named by their index.
        value = dict(enumerate(value))
    if isinstance(value, Mapping):
        return {
            f"{name}.{inner}" if inner else str(name): one
            for name, part in value.items()
            for inner, one in _parts(part, iterators, errors).items()
        }
    several: list[Iterated] = []
    if _may_iterate(value):
        try:
            several = iterators.of(value)
        except Exception as error:  # of any kind, since it is the script's
            errors.append(error)
    return _iterating(several, [*iterators.called, *several])


def _iterating(several: Sequence[Iterated], made: Sequence[Iterated]) -> dict[str, Returned]:
    # Of several iterators of one dataset the last one counts, the others looked at an element.
    last = {id(one.dataset): one for one in several}.values()
    names = map(str, range(len(last))) if len(last) > 1 else [""]
    found = [Returned(dataset=one.dataset, iterated=one).after(made) for one in last]
    return dict(zip(names, found, strict=False))


def _may_iterate(value: Any) -> bool:
    kind = type(value)
    is_iterable = hasattr(kind, "__iter__") or hasattr(kind, "__getitem__")
    # Texts and arrays, which have elements of their own.
    return is_iterable and not (isinstance(value, str | bytes) or hasattr(value, "__array__"))


def _reseeded(dataset: Any) -> Iterator[int]:
    """Yield the identities of the parts of a dataset that draw other seeds for each iterator."""
    parts, seen = [dataset], set()
    while parts:
        part = parts.pop()
        if id(part) not in seen:
            seen.add(id(part))
            # Private names of TensorFlow; where one is missing, seeds are taken to change.
            name = type(part).__name__
            if "Shuffle" in name and getattr(part, "_reshuffle_each_iteration", True) is not False:
                yield id(part)
            if "Random" in name and getattr(part, "_rerandomize", True):
                yield id(part)
            with contextlib.suppress(NotImplementedError, AttributeError):
                parts += part._inputs()


def reseeds_once(dataset: Any) -> bool:
    """Return whether each iterator of a dataset draws as many seeds, however far it is read."""
    # A repeat begins its shuffles anew, a cache spares them, and the second input of a
    # concatenation may not be reached.
    parts, many = [(dataset, True)], ("Repeat", "Cache", "Snapshot")
    for part, is_once in parts:  # which grows
        try:
            inputs = part._inputs()
        except (NotImplementedError, AttributeError):
            return False
        if not is_once and any(_reseeded(part)):
            return False
        is_chain = len(inputs) == 1 and not any(name in type(part).__name__ for name in many)
        parts += [(each, is_once and is_chain) for each in inputs]
    return True
