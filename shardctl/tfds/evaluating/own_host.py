"""Which host of how many reads in this process: as the caller says, else as what runs here says."""

from __future__ import annotations

from shardctl.core.hosts.host import Host, HostLike, as_host
from shardctl.errors import UsageError
from shardctl.tfds.training.process_host import hosts_said

ALONE = Host(index=0, count=1)


def own_host(hosts: int | None, host: int | HostLike | None, of_settings: Host | None) -> Host:
    """Return the host that this process is to read as.

    What the caller says is believed: `host` as a `Host` or its text `I/N`, as an index of `hosts`,
    or the host of the settings. What is left open is asked of JAX and of tf.distribute, as
    `process_host.check_host` does; a process of which nobody says anything is alone.

    Raises:
        UsageError: two of these contradict each other, or an index of nobody knows how many.

    >>> own_host(8, 2, None)
    Host(index=2, count=8)
    >>> own_host(None, None, None)
    Host(index=0, count=1)
    """
    if hosts is not None and hosts < 1:
        raise UsageError(f"hosts={hosts}: a number from 1 is needed")
    given = _given(hosts, host, of_settings)
    if isinstance(given, Host):
        return given
    said = dict(hosts_said())
    if len(set(said.values())) > 1:
        told = " and ".join(f"{found.index} of {found.count} by {by}" for by, found in said.items())
        raise UsageError(f"this process is host {told}; say which with host= and hosts=")
    found = next(iter(said.values()), None)
    if given is not None:
        if found is None:
            raise UsageError(
                f"host={given}: one of how many? give hosts=N, or the host as "
                f"host='{given}/N'; nothing that runs here says it"
            )
        return Host(index=given, count=found.count)
    if hosts is None:
        return found or ALONE
    if found is None or found.count != hosts:
        says = "nothing that runs here says it"
        if found is not None:
            says = f"by {next(iter(said))} this process is {found.index} of {found.count}"
        raise UsageError(f"hosts={hosts}: which of them is this? give host=I; {says}")
    return found


def _given(
    hosts: int | None, host: int | HostLike | None, of_settings: Host | None
) -> Host | int | None:
    """Return the host that the caller gives, its index alone, or None where neither is said."""
    host = as_host(host) if isinstance(host, str) else host
    if of_settings is not None:
        if host is not None and host not in (of_settings, of_settings.index):
            raise UsageError(f"host={host}: the settings are for host {of_settings}; leave one out")
        host = of_settings
    if isinstance(host, Host):
        if hosts not in (None, host.count):
            raise UsageError(f"hosts={hosts}: the host given is {host}, one of {host.count}")
        return host
    if host is None:
        return ALONE if hosts == 1 else None
    return host if hosts is None else Host(index=host, count=hosts)
