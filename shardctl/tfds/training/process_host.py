"""Which of the hosts this process is, by what already runs in it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from operator import index
from typing import Any

from shardctl.core.hosts.host import Host, HostLike, as_host
from shardctl.errors import UsageError


def check_host(planned: Host, host: int | HostLike | None, *, what: str = "plan") -> None:
    """Refuse a plan, or `what` it is, for one host in a process that says that it is another.

    `host` is what the caller says, an index, a whole `Host` or its text `I/N`, and is believed.
    Without it these are asked, as far as they are in use; nothing is imported or started for it:

    - JAX, where `jax` is imported: `jax.process_index()` and `process_count()` once its backends
      are there, before that what `jax.distributed.initialize` was told;
    - a `tf.distribute.MultiWorkerMirroredStrategy` in whose scope the call is made: the task of its
      cluster resolver;
    - `TF_CONFIG`, which such a strategy reads: chief first, then the workers.

    A process that is alone says nothing, nor does one of a cluster with parameter servers, or an
    evaluator.

    Raises:
        UsageError: it is another host.
    """
    host = as_host(host) if isinstance(host, str) else host
    if host is not None:
        own = planned if isinstance(host, Host) else planned.index
        if host != own:
            said = f"{host.index} of {host.count}" if isinstance(host, Host) else str(index(host))
            raise UsageError(
                f"host={said.partition(' ')[0]}: the {what} is for host {_named(planned)}, and "
                f"this process is said to be host {said}; give each host its own {what}"
            )
        return
    for source, found in hosts_said():
        if found != planned:
            raise UsageError(
                f"the {what} is for host {_named(planned)}, and by {source} this process is host "
                f"{_named(found)}; give this host its own {what}, or say who reads with host=I"
            )


def hosts_said() -> Iterator[tuple[str, Host]]:
    """Yield who says which host this process is, and which; see `check_host`."""
    found = {"jax.process_index()": _of_jax()}
    strategy = _of_strategy()
    if strategy is None:
        found["TF_CONFIG"] = _of_tf_config()
    found["the tf.distribute strategy in scope"] = strategy
    for source, one in found.items():
        if one is not None and one[1] > 1 and 0 <= one[0] < one[1]:
            yield source, Host(index=one[0], count=one[1])


def _named(host: Host) -> str:
    return f"{host.index} of {host.count}"


def _of_jax() -> tuple[int, int] | None:
    """Return what JAX says; its own functions start a backend that is not there yet."""
    jax = sys.modules.get("jax")
    if jax is None or not hasattr(jax, "process_index"):
        return None
    bridge = sys.modules.get("jax._src.xla_bridge")
    started = getattr(bridge, "backends_are_initialized", None)
    if started is None or started():
        return index(jax.process_index()), index(jax.process_count())
    state = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    if getattr(state, "client", None) is None:
        return None
    return index(getattr(state, "process_id", 0)), index(getattr(state, "num_processes", None) or 1)


def _of_strategy() -> tuple[int, int] | None:
    tf = sys.modules.get("tensorflow")
    if tf is None or not tf.distribute.has_strategy():
        return None
    strategy = tf.distribute.get_strategy()
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return None
    resolver = strategy.cluster_resolver
    return _of_task(resolver.cluster_spec().as_dict(), resolver.task_type, resolver.task_id)


def _of_tf_config() -> tuple[int, int] | None:
    """Return what the environment variable says, None where it is not what TensorFlow reads."""
    try:
        config = json.loads(os.environ.get("TF_CONFIG") or "{}")
        task = config["task"]
        return _of_task(config["cluster"], task["type"], task["index"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _of_task(cluster: Any, kind: object, position: Any) -> tuple[int, int] | None:
    """Return (index, count) of a task among those that read: the chief, if any, then the workers.

    Source: TensorFlow's distribute/multi_worker_util.py, id_in_cluster and worker_count.
    """
    if "ps" in cluster or kind not in ("chief", "worker") or position is None:
        return None
    num_chiefs, num_workers = (len(cluster.get(job, ())) for job in ("chief", "worker"))
    place = int(position) + (num_chiefs if kind == "worker" else 0)
    return place, num_chiefs + num_workers
