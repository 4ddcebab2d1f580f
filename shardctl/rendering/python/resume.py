"""A plan to resume as code: TFDS and tf.data alone where these can do it, else `shardctl.tfds`.

TFDS reads file instructions that its sort function returns. What it cannot do is to go on in the
midst of a shuffle buffer, or to give a shuffle the seeds of a later epoch; and a long list is data,
not code. Then the plan is made, or read from its file, in the program that reads.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

from shardctl.core.arrays import distinct
from shardctl.core.hosts.host import Host
from shardctl.core.instructions.reads import Reads
from shardctl.core.instructions.subsplit import resolve_subsplit
from shardctl.core.resume.resume_plan import (
    BatchCall,
    ConcatenateCall,
    ResumePlan,
    ShardCall,
    ShuffleCall,
    TakeCall,
)
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.shuffle.buffer import shuffle_permutation
from shardctl.core.stages.stages import Batch, Shuffle
from shardctl.errors import UsageError
from shardctl.planning.order import plan_order
from shardctl.planning.pinned_sources import resolved_reading
from shardctl.planning.resume.proof import Proof
from shardctl.planning.sources import reads_spec
from shardctl.rendering.python import loaders, reader
from shardctl.rendering.python.pipeline import order_module
from shardctl.rendering.python.source import (
    call,
    code_of_host,
    comment,
    keywords,
    literal,
    module,
    numbers,
    settings_code,
    source_of,
)
from shardctl.rendering.python.stages import stage_code
from shardctl.rendering.resume import summary

MAX_INSTRUCTIONS = 1000  # that are written as code
_MOST_NAMES = 100_000  # of files that are compared with one another
MAX_PLACES = 5000  # of files in the orders of further epochs, and counts of hosts


def resume_python(
    plan: ResumePlan, proof: Proof | None, *, plan_file: str | None = None
) -> Iterator[str]:
    """Yield code that makes `ds`, which goes on where the pipeline of the plan stopped.

    `plan_file` is where the plan was read from; a proof is no part of the code.

    Raises:
        UsageError: more than code is to hold, of a plan that is in no file; a spec without
            examples.
    """
    if plan.continued_by == "loader":
        yield from loaders.resume_python(plan)
        return
    dataset = plan.given or plan.instructions.dataset
    if len(plan.sources) > 1 or any(source.data is not None for source in plan.sources):
        yield from _of_readers(plan)
        return
    if plan.hosts and plan.hosts[0].instructions.dataset != dataset:
        raise UsageError(
            "code that reads the rest of several datasets is not written; --format json lists it"
        )
    if not resolved_reading(dataset, plan.spec, plan.settings).num_examples:
        raise reader.nothing_to_read(plan.spec)
    if needs_tfds_alone(plan):
        data, functions, made = _with_tfds(plan)
        packages: tuple[str, ...] = ()
    else:
        data, functions, made = [], [], list(_with_shardctl(plan, plan_file))
        packages = ("import shardctl.tfds",)
    builder = list(reader.builder(dataset))
    notes = [line for text in summary(plan) for line in comment(text)]
    yield from module(
        notes,
        reader.imports(
            [*(line for part in functions for line in part), *made, *builder], *packages
        ),
        data,
        [*builder, *_same_dataset(plan), *_host(plan)],
        *functions,
        made,
    )


def _of_readers(plan: ResumePlan) -> Iterator[str]:
    """Yield the whole pipeline of readers of their own, and what goes on with it.

    Raises:
        UsageError: a part that there is no code for.
    """
    settings, dataset = plan.settings, plan.given or plan.instructions.dataset
    spec = plan.spec if reads_spec(settings) else None
    order = plan_order(dataset, spec, settings).order
    where = {"consumed": literal(plan.consumed)}
    if settings.pass_index:
        where["pass_index"] = literal(settings.pass_index)
    if settings.loop != "python":
        where["loop"] = literal(settings.loop)
    rest = list(call("ds = shardctl.tfds.resume_like", ["ds", *keywords(where)]))
    notes = [line for text in summary(plan) for line in comment(text)]
    try:
        code = list(order_module(order, plan.spec, notes, rest, imported=reader.BRIDGE))
    except UsageError as why:
        raise UsageError(f"{why}; with the dataset of the script: {' '.join(rest)}") from why
    yield from code


def needs_tfds_alone(plan: ResumePlan) -> bool:
    """Return whether TFDS and tf.data can read a plan, of which code holds a few lists."""
    settings, follow = plan.settings, plan.num_further_epochs
    listed_by_example = plan.from_consumed and plan.has_stages
    if plan.continued_by == "shardctl.tfds" or listed_by_example:
        return False
    ranges = resolve_subsplit(_spec(plan), plan.instructions.dataset).ranges
    if plan.mode == "exact-order" or plan.num_instructions > MAX_INSTRUCTIONS:
        return False
    if _by_path(plan) and any(
        files.data_dir is None
        for split in plan.instructions.dataset.splits
        for files in split.files
    ):
        return False  # nothing but their paths tells these files apart
    if not follow:
        return True
    if plan.hosts and settings.host_mode.refuses_idle:
        pieces = settings.host_mode.pieces(ranges)
        if len(plan.hosts) > max(pieces, default=0):
            return False  # a host without examples; `shardctl.tfds` knows how to read none
    if settings.buffer is not None and plan.unseeded is None:
        return False  # no public seed is that of a later epoch
    if len(settings.file_order or ()) > MAX_INSTRUCTIONS:
        return False
    if not settings.shuffles_files:
        return True
    if plan.reader_state is None or len(plan.further_epochs) < follow:
        return False
    num_orders = len({epoch.file_seeds for epoch in plan.further_epochs})
    return num_orders * plan.reader_state.num_files <= MAX_PLACES


def _spec(plan: ResumePlan) -> str:
    """Return what the one reader reads, which stages may say."""
    own = [source.spec for source in plan.sources if source.spec is not None]
    return own[0] if own else plan.spec


def _lists(plan: ResumePlan) -> list[Reads]:
    """Return the instructions of each reader of a plan."""
    return [host.instructions for host in plan.hosts] or [plan.instructions]


def _by_path(plan: ResumePlan) -> bool:
    """Return whether base names do not tell the files apart, those of other splits among them."""
    splits = plan.instructions.dataset.splits
    if sum(split.num_shards for split in splits) > _MOST_NAMES:
        return True
    names = [name for split in splits for name in split.filenames]
    return len(set(names)) < len(names)


def _same_dataset(plan: ResumePlan) -> Iterator[str]:
    """Yield a check that the dataset is as large as the plan's, in the splits that are read."""
    read = {int(split) for reads in _lists(plan) for split in distinct(reads.split)}
    for index in sorted(read):
        split = plan.instructions.dataset.splits[index]
        yield f"assert builder.info.splits[{literal(split.name)}].num_examples == " + literal(
            split.num_examples
        )


def _host(plan: ResumePlan) -> Iterator[str]:
    if plan.hosts:
        yield "# Which of the hosts that go on this is: 0 is the first."
        yield f"host, num_hosts = 0, {len(plan.hosts)}"
    elif plan.settings.host is not None and needs_tfds_alone(plan):
        yield "# The instructions are those of this host alone; each has a plan of its own."
        yield f"host, num_hosts = {plan.settings.host.index}, {plan.settings.host.count}"


def _with_tfds(plan: ResumePlan) -> tuple[list[str], list[list[str]], list[str]]:
    """Return the lists, the functions that read them, and what makes `ds`."""
    by_path = _by_path(plan)
    data = list(_instructions(plan, by_path=by_path))
    functions = [_rest_config(plan, by_path=by_path)]
    made = list(_first_epoch(plan))
    for one in plan.after_read:
        if isinstance(one, ShuffleCall):
            made += stage_code(Shuffle(buffer=one.buffer_size, seed=one.seed), "ds")
        elif isinstance(one, TakeCall):
            made.append(f"ds = ds.take({one.count})")
        elif isinstance(one, ConcatenateCall) and plan.num_further_epochs:
            orders = _file_orders(plan)
            if orders:
                data += ["# The files of each epoch that follows, in the order they are opened."]
                data += ["FILE_ORDERS = ["]
                data += [line for order in orders for line in numbers(order, indent=1)]
                data += ["]"]
            listed, sorts = reader.file_order(plan.settings)
            data += listed
            functions += [part for part in (sorts, _epoch_config(plan) if orders else []) if part]
            made += _further_epochs(plan, one, num_orders=len(orders))
        elif isinstance(one, BatchCall):
            one_batch = Batch(size=one.batch_size, drop_remainder=one.drop_remainder)
            made += stage_code(one_batch, "ds")
    return data, functions, made


def _instructions(plan: ResumePlan, *, by_path: bool) -> Iterator[str]:
    """Yield the list of file instructions; of several readers the list of each."""
    yield f"# ({'path' if by_path else 'file'}, examples to skip, examples to take)"
    lists = [list(_rows(reads, 2 if plan.hosts else 1, by_path=by_path)) for reads in _lists(plan)]
    if not plan.hosts:
        yield from ["INSTRUCTIONS = [", *lists[0], "]"] if lists[0] else ["INSTRUCTIONS = []"]
        return
    yield "INSTRUCTIONS = ["
    for index, rows in enumerate(lists):
        end = f"],  # host {index}"
        yield from ["    [", *rows, f"    {end}"] if rows else [f"    [{end}"]
    yield "]"


def _rows(reads: Reads, indent: int, *, by_path: bool) -> Iterator[str]:
    names: list[str] = reads.filenames()
    if by_path:
        splits = reads.dataset.splits
        pairs = zip(reads.split.tolist(), reads.shard.tolist(), strict=True)
        names = [os.path.join(*map(str, splits[s].location(shard))) for s, shard in pairs]
    for name, skip, take in zip(names, reads.skip.tolist(), reads.take.tolist(), strict=True):
        yield f"{'    ' * indent}({literal(name)}, {skip}, {take}),"


def _rest_config(plan: ResumePlan, *, by_path: bool) -> list[str]:
    key = "os.fspath(file.filename)" if by_path else "file.basename()"
    end = ["        ]"]
    if not all(map(len, _lists(plan))):
        end = ["        ] or [files[0].replace(skip=0, take=0)]  # TFDS takes no empty list"]
    return [
        "def rest_config(instructions):",
        '    """Return what lets TFDS read file instructions as they are listed."""',
        "",
        "    def sort(files):",
        f"        known = {{{key}: file for file in files}}",
        "        return [",
        "            known[name].replace(skip=skip, take=take)",
        "            for name, skip, take in instructions",
        *end,
        "",
        *_config(plan, "sort"),
    ]


def _config(plan: ResumePlan, sort: str) -> Iterator[str]:
    values = {
        "interleave_cycle_length": literal(plan.cycle_length),
        "interleave_block_length": literal(plan.settings.block),
        "experimental_interleave_sort_fn": sort,
        "try_autocache": "False",  # it is read once
    }
    return call("return tfds.ReadConfig", keywords(values), indent=1)


def _first_epoch(plan: ResumePlan) -> Iterator[str]:
    """Yield what reads the rest of the epoch in which the plan begins."""
    instructions = "INSTRUCTIONS[host]" if plan.hosts else "INSTRUCTIONS"

    def reading(name: str, part: str) -> Iterator[str]:
        config = f"rest_config({instructions}{part})"
        arguments = keywords({"split": literal(_spec(plan)), "read_config": config})
        return call(f"{name} = builder.as_dataset", arguments)

    shard = next((one for one in plan.after_read if isinstance(one, ShardCall)), None)
    held = 0 if shard is None else shard.skip_instructions
    if held:
        yield "# What the buffer of this host held is its own, and the rest is shared."
        yield from reading("held", f"[:{held}]")
        yield from reading("ds", f"[{held}:]")
        yield f"ds = held.concatenate(ds{code_of_host(plan.settings).examples})"
        return
    yield from reading("ds", "")
    if shard is not None:
        yield f"ds = ds{code_of_host(plan.settings).examples}"


def _file_orders(plan: ResumePlan) -> list[list[int]]:
    """Return the order of the files in each further epoch, one where all are alike, none as is."""
    count = 0 if plan.reader_state is None else plan.reader_state.num_files
    if not plan.settings.shuffles_files or count < 2:
        return []
    seeds = [epoch.file_seeds for epoch in plan.further_epochs if epoch.file_seeds is not None]
    if len(set(seeds)) == 1:
        seeds = seeds[:1]
    return [shuffle_permutation(count, count, one).tolist() for one in seeds]


def _as_one_host(plan: ResumePlan) -> ReadSettings:
    """Return the settings with which a reader of the plan reads a whole epoch, files unshuffled."""
    settings = replace(
        plan.settings, shuffle_files=None, shuffle_seed=None, reshuffle=None, deterministic=None
    )
    if plan.hosts:
        settings = replace(settings, host=Host(index=0, count=len(plan.hosts)))
    return settings


def _epoch_config(plan: ResumePlan) -> list[str]:
    settings = _as_one_host(plan)
    lines = []
    if settings.reverse:
        lines.append("        files = files[::-1]")
    if settings.file_order is not None:
        lines.append("        files = in_file_order(files)")
    if own := code_of_host(settings).files:
        lines.append(f"        files = files{own}")
    return [
        "def epoch_config(order):",
        '    """Return what lets TFDS read the files of an epoch in an order."""',
        "",
        "    def sort(files):",
        *lines,
        "        return [files[place] for place in order]",
        "",
        *_config(plan, "sort"),
    ]


def _further_epochs(plan: ResumePlan, one: ConcatenateCall, *, num_orders: int) -> Iterator[str]:
    settings, follow = _as_one_host(plan), plan.num_further_epochs
    split = reader.split_of_host(_spec(plan), settings)
    behind = []
    if shard := code_of_host(settings).examples:
        behind.append(f"epoch = epoch{shard}")
    if settings.buffer is not None:
        reshuffle = False if settings.buffer_reshuffle is False else None
        behind += stage_code(Shuffle(buffer=settings.buffer, reshuffle=reshuffle), "epoch")
    repeat = f".repeat({follow})" if follow > 1 and num_orders < 2 else ""
    behind.append(f"ds = ds.concatenate(epoch{repeat})")
    last = "" if one.first_epoch == one.last_epoch else f"s {one.first_epoch} to"
    yield f"# Then epoch{last} {one.last_epoch}, whole."
    if num_orders:
        yield "for order in FILE_ORDERS:"
        arguments = keywords({"split": split, "read_config": "epoch_config(order)"})
        yield from call("epoch = builder.as_dataset", arguments, indent=1)
        yield from (f"    {line}" for line in behind)
        return
    yield from reader.read_config(settings, ordered=plan.dataset.ordered)
    yield from reader.as_dataset("epoch", split)
    yield from behind


def _with_shardctl(plan: ResumePlan, plan_file: str | None) -> Iterator[str]:
    """Yield what reads a plan through `shardctl.tfds`: from its file, else made where it reads."""
    host = {}
    if plan.hosts:
        host = {"host": "host"}
    elif plan.settings.host is not None:
        host = {"host": source_of(plan.settings.host)}
    if plan_file is not None:
        arguments = ["builder", literal(plan_file), *keywords(host)]
        yield from call("ds = shardctl.tfds.resume", arguments)
        return
    settings, counts = plan.settings, plan.from_consumed
    if plan.from_seen or len(counts) > MAX_PLACES:
        raise UsageError(
            f"{plan.num_instructions:,} file instructions are too many for code: write the plan "
            "with --output plan.yaml, then code that reads it with resume --plan plan.yaml "
            "--format python"
        )
    reader.file_order(settings)  # refuses a list that is too long
    yield from settings_code(settings)
    spec = literal(plan.spec) if reads_spec(settings) else "None"
    where = ["shardctl.tfds.dataset_of(builder)", spec, "settings"]
    function = "resume_on_hosts" if counts else "resume"
    yield from call(f"plan = shardctl.{function}", [*where, *keywords(_how(plan))])
    yield from call("ds = shardctl.tfds.resume", ["builder", "plan", *keywords(host)])


def _how(plan: ResumePlan) -> dict[str, str]:
    """Return what `shardctl.resume`, or `resume_on_hosts`, is asked besides what is read."""
    how, counts = {}, plan.from_consumed
    if counts:
        alike = len(set(counts)) == 1
        how = {"hosts": literal(len(counts)), "to_hosts": literal(len(plan.hosts))}
        how["consumed"] = literal(counts[0]) if alike else f"[{', '.join(map(str, counts))}]"
    else:
        how["consumed"] = literal(plan.consumed)
    if plan.mode not in ("exact", "exactly-once"):
        how["mode"] = literal(plan.mode)
    if plan.unseeded is not None and plan.unseeded.risk is not None:
        how["risk"] = repr(plan.unseeded.risk)
    return how
