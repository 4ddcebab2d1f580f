"""Does an answer depend on the order of splits that TFDS orders anew in each run?"""

from __future__ import annotations

from shardctl.core.hosts.modes import HostMode
from shardctl.core.instructions.subsplit import OPEN_SPLITS, Resolved
from shardctl.core.text import quoted
from shardctl.errors import UnpredictableOrderError


def refuse_open_splits(resolved: Resolved) -> None:
    """Refuse `all` where each run reads the splits in an order of its own.

    For every answer that depends on the order of the splits; one that does not goes on with the
    warning that `resolved` has.

    Raises:
        UnpredictableOrderError: TFDS leaves the order of the splits open.
    """
    if resolved.spelled_out is not None:
        where = "" if resolved.spec == "all" else f"{quoted(resolved.spec)}: "
        raise UnpredictableOrderError(
            f"{where}{OPEN_SPLITS}; name them in the order in which they are to be read, as in "
            f"{quoted(resolved.spelled_out, 300)}"
        )


def refuse_open_hosts(resolved: Resolved, host_mode: HostMode, num_hosts: int) -> None:
    """Refuse `all` where the order of the splits decides how many examples a host gets.

    Only where hosts are given files in turn; of parts and of single examples each gets as many in
    any order.

    Raises:
        UnpredictableOrderError: TFDS leaves the order of the splits open.
    """
    if num_hosts > 1 and host_mode.whole_files:
        refuse_open_splits(resolved)
