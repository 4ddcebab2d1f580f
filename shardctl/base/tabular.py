"""Answers that are tables: what a notebook shows of them, and how they become a DataFrame."""

from __future__ import annotations

from typing import Any

from shardctl.base.hooks import provided


class Tabular:
    """An answer with rows, those that the command line writes as CSV."""

    def to_pandas(self) -> Any:
        """Return the rows as a `pandas.DataFrame`, with the columns of the CSV.

        Raises:
            MissingDependencyError: pandas is not installed.

        >>> import shardctl
        >>> shardctl.layout("mnist").to_pandas()["num_examples"].sum()  # doctest: +SKIP
        70000
        """
        return provided("to_pandas")(self)

    def _repr_html_(self) -> str:
        html: str = provided("html")(self)
        return html
