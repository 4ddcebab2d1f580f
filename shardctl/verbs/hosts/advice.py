"""What to make of a comparison of hosts: why a strategy serves best, what to change, what fails."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.base.text import counted
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import DEFAULT_HOST_MODE, HOST_MODES
from shardctl.verbs.hosts.answer import MAX_AMPLIFICATION, Comparison
from shardctl.verbs.hosts.sharing import Load, Strategy


def reason(comparison: Comparison) -> str:
    """Return in a sentence why the recommended strategy is, against those it is better than."""
    best = comparison.recommended
    if best is None:
        if comparison.strategies[0].name not in HOST_MODES:
            return "there are no examples"
        return "TFDS reads none of them: there are fewer examples than hosts"
    if comparison.num_hosts == 1 and len(comparison.strategies) > 1:
        return "one host reads the same under each"
    said = [_merits(best)]
    said += [
        f"{other.name} {fault}"
        for other in comparison.strategies
        if other is not best and (fault := _fault(other, best)) is not None
    ]
    return "; ".join(said)


def _merits(best: Strategy) -> str:
    if best.idle_hosts:
        idle = "1 host is" if best.idle_hosts == 1 else f"{best.idle_hosts:,} hosts are"
        return f"{idle} idle under it, TFDS refuses the others"
    amplification = f"{best.read_amplification or 1:,.2f}"
    if best.num_batches is not None and not best.is_uneven:
        return f"{spread(best.num_batches)} batches on every host, {amplification} times read"
    return f"{spread(best.num_examples)} examples a host, {amplification} times read"


def _fault(other: Strategy, best: Strategy) -> str | None:
    if other.refusal is not None:
        return "is refused"
    if other.idle_hosts > best.idle_hosts:
        return f"leaves {counted(other.idle_hosts, 'host')} idle"
    if other.is_uneven and not best.is_uneven and other.num_batches is not None:
        return f"gives {spread(other.num_batches)} batches"
    amplification, least = other.read_amplification or 1, best.read_amplification or 1
    if other.is_uneven and (other.imbalance or 1) > (best.imbalance or 1) + 0.005:
        return f"gives one host {other.imbalance:,.2f} times the mean"
    if amplification >= least + 0.005:
        return f"reads {amplification:,.2f} times"
    return None


def advice(comparison: Comparison, settings: ReadSettings) -> tuple[str, ...]:
    """Return what to change or to know, most pressing first, each a sentence."""
    return tuple(_advice(comparison, settings))


def _advice(comparison: Comparison, settings: ReadSettings) -> Iterator[str]:
    num_hosts, count = comparison.num_hosts, comparison.num_file_instructions
    if num_hosts == 1 or not count:
        return
    best = comparison.recommended
    if not settings.reader.shares_in_modes:
        yield from of_loader(comparison, settings)
        return
    shards = " or ".join(f"{number:,}" for number in comparison.even_shard_counts)
    if comparison.num_readers > 1:
        yield f"{comparison.num_readers:,} readers, each of which the hosts share by itself"
    elif count % num_hosts:
        files = "1 file does" if count == 1 else f"{count:,} files do"
        yield f"{files} not divide among {num_hosts:,} hosts; {shards} would"
    else:
        each = count // num_hosts
        yield f"{count:,} files divide among {num_hosts:,} hosts, {each:,} each"
    if best is not None:
        dropping = _dropping_cures(best, settings)
        yield from _hang(best, f"{best.name}: ", "--drop-remainder" if dropping else "")
    if settings.shuffles_files and settings.shuffle_seed is None:
        yield (
            "examples: without --shuffle-seed each host shuffles the files its own way, so the "
            "hosts' examples overlap and others are read by nobody"
        )
    elif any(s.same_permutation for s in comparison.strategies if not HOST_MODES[s.name].reads_all):
        yield (
            "hosts with equally many files and one seed open them in the same permutation of "
            "places; give each host its own seed where that matters (never under examples)"
        )


def of_loader(comparison: Comparison, settings: ReadSettings) -> Iterator[str]:
    """Yield what to know of the way in which another loader shares the examples."""
    (own,) = comparison.strategies
    takes = settings.reader.takes
    drops = "drop_shard_remainder" in takes and not settings.drop_shard_remainder
    if comparison.num_repeated:
        yield (
            f"{own.name} hands out {counted(comparison.num_repeated, 'example')} again in each "
            "epoch, so that every host has as "
            f"many{'; --drop-shard-remainder leaves out what is over' if drops else ''}"
        )
    if comparison.num_left_out:
        is_one = comparison.num_left_out == 1
        yield (
            f"{counted(comparison.num_left_out, 'example')} {'is' if is_one else 'are'} handed out "
            "by no host in an epoch"
        )
    yield from _hang(own, "", "--drop-shard-remainder" if drops else "")


def _hang(strategy: Strategy, name: str, cure: str) -> Iterator[str]:
    load = strategy.num_batches
    if load is not None and load.min != load.max:
        yield (
            f"{name}hosts make {load.min:,} to {load.max:,} batches, so a collective hangs at step "
            f"{load.min:,}; take({load.min}){f' or {cure}' if cure else ''} gives every host "
            f"{load.min:,}"
        )


def _dropping_cures(strategy: Strategy, settings: ReadSettings) -> bool:
    if settings.drop_remainder or settings.batch is None:
        return False
    load = strategy.num_examples
    least, most = (number * settings.epochs // settings.batch for number in (load.min, load.max))
    return least == most


def problems(
    comparison: Comparison,
    strategy: str = DEFAULT_HOST_MODE,
    max_amplification: float = MAX_AMPLIFICATION,
) -> tuple[str, ...]:
    """Return what a check finds wrong with a strategy, each in a line.

    Idle hosts, hosts with different numbers of batches (where a batch size is given), a read
    amplification over the bound, and that TFDS refuses.
    """
    return tuple(
        f"{comparison.num_hosts:,} hosts, {strategy}: {problem}"
        for problem in _problems(comparison.strategy(strategy), max_amplification)
    )


def _problems(judged: Strategy, max_amplification: float) -> Iterator[str]:
    if judged.refusal is not None:
        yield judged.refusal
    if judged.idle_hosts:
        yield f"{judged.idle_hosts:,} idle"
    batches = judged.num_batches
    if batches is not None and batches.min != batches.max:
        yield f"{batches.min:,} to {batches.max:,} batches"
    amplification = judged.read_amplification
    if amplification is not None and amplification > max_amplification:
        yield f"read amplification {amplification:.4g} is over {max_amplification:.4g}"


def spread(load: Load) -> str:
    """Return the least and the most of a quantity, or the one value all hosts have."""
    return f"{load.min:,}" if load.min == load.max else f"{load.min:,} to {load.max:,}"
