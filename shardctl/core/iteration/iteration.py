"""What every node of a pipeline and every iterator of it can do.

A `Node` is a `tf.data.Dataset` object: it lives as long as the script and holds what outlives an
iterator, the generator of a shuffle that reshuffles and the memory of a cache. `iterate` makes an
iterator of it, an `Iteration`, and takes seeds just as TensorFlow does at that moment. `pull`
counts how far the iterator is read; only counts move, so that a pass of a billion elements is over
at once. What has been pulled can be looked up at any place, in any order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from shardctl.core.arrays import Int64s


class Node(ABC):
    """A dataset object. `iterate` is called once for each iterator that TensorFlow makes of it."""

    @abstractmethod
    def iterate(self) -> Iteration:
        """Return a new iterator; down to the first shuffle the ones below are made at once."""

    @property
    @abstractmethod
    def is_infinite(self) -> bool:
        """Whether its iterators never end."""


class Iteration(ABC):
    """One iterator, read so far to `pulled` elements.

    An element is an example, or several of them (a batch, a tuple of `zip`). `width` is how many
    examples every element has, None where that differs.
    """

    def __init__(self) -> None:
        self.pulled = 0
        self.ended = False

    @abstractmethod
    def pull(self, count: int) -> int:
        """Read up to `count` elements more; return how many there were. Fewer means the end.

        It does to the iterators below what `count` calls of GetNext do, up to the first that says
        the end; so iterators are made, seeds are drawn and caches fill at the same point.
        """

    @property
    @abstractmethod
    def width(self) -> int | None:
        """The number of examples of every element, None where they differ."""

    @abstractmethod
    def widths(self, elements: Int64s) -> Int64s:
        """Return the number of examples of each element (int64[q], all below `pulled`)."""

    @abstractmethod
    def examples(self, elements: Int64s) -> Int64s:
        """Return the codes of the examples of each element, one element after the other."""

    @abstractmethod
    def elements_of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        """Return (which query, element), int64[r] each, for every time a code is handed out."""

    @abstractmethod
    def abandon(self) -> None:
        """Say that nobody reads on; what threads read ahead by then may have changed is unknown."""
