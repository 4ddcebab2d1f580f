"""A real `tf.data.Dataset` read back as stages: is its order fixed, and what is it?"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from shardctl.base.arguments import Kind, checked
from shardctl.base.by_name import provided
from shardctl.base.phrase import refused
from shardctl.base.text import choices
from shardctl.base.tfds_rules import Loop
from shardctl.dataset.dataset import ELEMENTS, Dataset, as_dataset
from shardctl.errors import ShardctlError, UsageError
from shardctl.iteration.iteration import UNKNOWN
from shardctl.loaders.loader import object_of
from shardctl.settings.names import reader_arguments
from shardctl.settings.read_settings import ReadSettings
from shardctl.settings.short_form import short_form, stages_of
from shardctl.settings.table import SETTINGS
from shardctl.stages import stages as call
from shardctl.stages.part import KernelPair, Source
from shardctl.stages.pipelines import open_stages, sources_of, with_changed
from shardctl.stages.pipelines import options_of as options_in_stages
from shardctl.stages.stages import SET_A_SEED, Pipeline, Read
from shardctl.stages.text import text_of
from shardctl.tfdata.shuffle_seeds import shuffle_kernel_seeds
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.inspecting.graph import (
    SHUFFLES,
    Operation,
    call_name,
    operation_of,
    options_in_force,
)
from shardctl.tfds.inspecting.reader import FoundReader
from shardctl.tfds.inspecting.stage_of import global_seed_of, stated_seed
from shardctl.tfds.inspecting.walk import FoundPipeline, FoundStage, Scans, walked
from shardctl.tfds.inspecting.watch import (
    Lines,
    Returned,
    clones_of,
    is_dataset,
    is_read_back,
    returned_by,
)
from shardctl.verbs.inspect.answer import Cure, InspectedStage, Inspection, OpenStage, SourceLine
from shardctl.verbs.inspect.cure import set_argument, set_options, set_shuffle_seed
from shardctl.verbs.inspect.view import layout_name

NO_SEED: KernelPair = (0, 0)  # tells a kernel to take its seeds from the machine

Part = Any  # a stage or a source


def _inspection(
    found: FoundPipeline, changed: Mapping[int, Part], lines: Lines, loop: Loop, name: str
) -> tuple[Inspection, _Remedies]:
    """Return the answer: stages with the seeds that a script states, and what they read.

    changed: the parts that are others than was found, by their ids.
    """
    parts = _Parts.of(found, changed)
    settings = ReadSettings(
        **parts.sole_settings,
        global_seed=parts.global_seed,
        stages=parts.pipeline(found.pipeline),
        loop=loop,
    )
    remedies = _Remedies(found, lines)
    stages, is_open = _shown(found, parts, settings, remedies)
    # Where everything is predictable, a `deterministic=False` that affects nothing is dropped, so
    # that commands take the settings.
    if not is_open:
        settings = replace(settings, stages=with_changed(stages_of(settings), part=_in_order))
    made = Inspection(
        name=name,
        stages=stages,
        open=is_open,
        settings=settings if is_open else short_form(settings),
        dataset=next(iter(parts.datasets.values()), None),
        spec=parts.sole_spec,
        datasets=parts.datasets if len(parts.datasets) > 1 else {},
    )
    if is_open:
        return made, remedies
    # Whether the order of the first pass can really be computed, and on what terms, is tried here.
    try:
        return replace(made, assumptions=made.order().assumptions), remedies
    except ShardctlError as error:
        return replace(made, refused=_spelled(error)), remedies


def _in_order(part: Part) -> Part:
    """Return a part without the deterministic=False of options that nothing goes by.

    In a reader's settings that makes the order nondeterministic, since TFDS decodes in parallel.
    """
    is_loose = isinstance(part, call.WithOptions) and part.deterministic is False
    return replace(part, deterministic=None) if is_loose else part


def _spelled(error: ShardctlError) -> str:
    """Return what an error says: a phrase, which each place spells."""
    return error.args[0] if error.args else str(error)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Parts:
    """How the parts that were found are stated: seeds under one global seed, readers by specs.

    sole: the source where there is one, whose settings are those of the pipeline: a reader of
        files, or of counted elements.
    datasets: by their references, those with files first.
    changed: the parts that are others than was found, by their ids.
    """

    global_seed: int | None
    sole: FoundReader | Read | None
    readers: Mapping[int, FoundReader]
    plain: Mapping[int, Read]
    refs: Mapping[int, str | None]
    datasets: Mapping[str, Dataset]
    changed: Mapping[int, Part]

    @classmethod
    def of(cls, found: FoundPipeline, changed: Mapping[int, Part]) -> _Parts:
        readers: dict[int, FoundReader] = {
            id(s.part): changed.get(id(s.part), s.reader) for s in found.stages if s.reader
        }
        each = list(readers.values())
        # The reader's seed decides what the global seed was; only without one do the other stages.
        own = [reader.pair for reader in each if reader.pair is not None]
        parts = [_pair_of(changed.get(id(stage.part), stage.part)) for stage in found.stages]
        seeds = own or [pair for pair in parts if pair is not None]
        # Where all read one dataset, no reader names it.
        datasets: dict[str, Dataset] = {}
        refs = {key: _reference(one.dataset, datasets) for key, one in readers.items()}
        plain = _plain_reads(found.pipeline)
        datasets |= {read.data or "": as_dataset(read.data or "") for read in plain.values()}
        sources: list[FoundReader | Read] = [*each, *plain.values()]
        return cls(
            global_seed=global_seed_of(seeds),
            sole=sources[0] if len(sources) == 1 else None,
            changed=changed,
            readers=readers,
            plain=plain,
            refs=refs if len(datasets) > 1 else dict.fromkeys(refs),
            datasets=datasets,
        )

    @property
    def sole_settings(self) -> dict[str, Any]:
        """The settings of the one source, none of several."""
        if isinstance(self.sole, Read):
            return reader_arguments(self.sole)
        return {} if self.sole is None else self.settings_of(self.sole)

    @property
    def sole_spec(self) -> str | None:
        """What the one source reads of its dataset, None of several."""
        if isinstance(self.sole, Read):
            return ELEMENTS
        return None if self.sole is None else self.sole.listed.spec

    def settings_of(self, reader: FoundReader) -> dict[str, Any]:
        """Return the settings of a reader, with the seed of its files."""
        settings = dict(reader.settings)
        if reader.in_order == "false":
            if reader.is_tfds and reader.decodes_in_order:
                return settings  # the seedless shuffle of files, which TFDS interleaves so
            settings["deterministic"] = False
        if reader.pair is not None:
            seed = stated_seed(reader.pair, self.global_seed)
            # A pair of kernel seeds that no seed of a script gives stays out of the settings.
            if not isinstance(seed, tuple):
                # `shuffle_seed` implies shuffle_files.
                settings.pop("shuffle_files", None)
                settings["shuffle_seed"] = seed
        return settings

    def _read(self, part: Part) -> Read:
        if (plain := self.plain.get(id(part))) is not None:
            return plain if self.sole is None else replace(plain, data=None, settings=())
        reader = self.readers[id(part)]
        # Where hosts share the files, it is unknown how many examples there are.
        asserts = reader.asserts_cardinality or "host" in dict(reader.settings)
        if self.sole is not None:
            return Read(assert_cardinality=asserts)
        return Read(
            spec=reader.listed.spec,
            data=self.refs[id(part)],
            settings=_own_settings(self.settings_of(reader)),
            assert_cardinality=asserts,
        )

    def part(self, part: Part) -> Part:
        """Return a stage or source as it is stated."""
        if isinstance(part, Read) or id(part) in self.plain:
            return self._read(part)
        return self.stated(self.changed.get(id(part), part))

    def stated(self, part: Part) -> Part:
        """Return a part, changed or not, with its seeds as a script states them."""
        if isinstance(part, call.Shuffle):
            # Of one element any seed makes the same choice, and commands ask for some seed.
            seed = self._seed(part.seed)
            return replace(part, seed=0 if seed is None and part.buffer == 1 else seed)
        if isinstance(part, call.SampleFromDatasets):
            part = replace(part, seed=self._seed(part.seed))
        return part.mapped(self.pipeline)

    def pipeline(self, pipeline: Pipeline) -> Pipeline:
        """Return a pipeline as it is stated."""
        return Pipeline(
            source=self.part(pipeline.source), stages=tuple(map(self.part, pipeline.stages))
        )

    def _seed(self, pair: Any) -> int | KernelPair | None:
        if pair is not None:
            return stated_seed(pair, self.global_seed) or 0
        # Beside a global seed of other stages, a seed of None would take one from that.
        return None if self.global_seed is None else NO_SEED


def _plain_reads(pipeline: Pipeline) -> dict[int, Read]:
    """Return the readers that sources of counted elements are, by the ids of these."""
    numbers: Counter[Source] = Counter()
    reads: dict[int, Read] = {}
    for source in sources_of(pipeline):
        if isinstance(source, call.Range | call.Counter) and id(source) not in reads:
            numbers[source] += 1
            reads[id(source)] = source.as_read(numbers[source])
    return reads


def _reference(dataset: Dataset, datasets: dict[str, Dataset]) -> str:
    """Return what a dataset is referred to by, and note it among the others."""
    # Record files are those of a list, of which a folder may have several.
    ref = layout_name(dataset) if dataset.is_counted else dataset.data_dir or dataset.title
    names = (f"{number}-{ref}" if number > 1 else ref for number in itertools.count(1))
    found = next(name for name in names if datasets.get(name, dataset) == dataset)
    datasets.setdefault(found, dataset)
    return found


def _pair_of(part: Part) -> KernelPair | None:
    seed = part.seed if isinstance(part, call.Shuffle | call.SampleFromDatasets) else None
    return seed if isinstance(seed, tuple) else None


class _Remedies:
    """What fixes the order of stages: a change of the script, and the part as it is with it.

    assumed: the cures whose order is known without running the changed script.
    changed: the parts as they are then, by the ids of those that were found.
    """

    def __init__(self, found: FoundPipeline, lines: Lines) -> None:
        self._found, self._lines = found, lines
        self._seeds: dict[object, int] = {}
        self.assumed: list[Cure] = []
        self.changed: dict[int, Part] = {}

    def line_of(self, stage: FoundStage) -> SourceLine | None:
        """Return the line of the call that a script has for a stage, None where none is known."""
        return self._line_of_last(stage.operations)

    def _line_of_last(self, operations: Sequence[Operation]) -> SourceLine | None:
        return next(filter(None, map(self._lines.of, reversed(operations))), None)

    def of(self, stage: FoundStage, part: Part) -> tuple[Cure, Part] | None:
        """Return the cure of a stage that is `part` so far, or its reader, and what it is then.

        None where no seed and no option fixes its order.
        """
        made = self._of_reader(stage, part) if stage.reader else self._of_part(stage, part)
        if made is not None and self._is_known(stage, made[0]):
            self.assumed.append(made[0])
            self.changed[id(stage.part)] = made[1]
        return made

    def _of_part(self, stage: FoundStage, part: Part) -> tuple[Cure, Part] | None:
        line, call_of_op = self.line_of(stage), call_name(stage.operations[-1].op)
        if isinstance(part, call.Shuffle | call.SampleFromDatasets):
            seed = self._seed(line)
            cure = set_argument("seed", seed, line, part.name)
            return cure, replace(part, seed=_pair_of_seed(seed))
        if isinstance(part, call.ChooseFromDatasets):
            # What chooses is no stage of its own, and has no line.
            seeds = [one.seed for one in part.choices.stages if isinstance(one, call.Shuffle)]
            text = "a seed in the shuffle of its choices"
            return (Cure(text=text, line=line, is_known=False), part) if None in seeds else None
        if not isinstance(part, call.Map):
            return None
        if part.deterministic is False:
            cure = set_argument("deterministic", True, line, call_of_op)
            return cure, replace(part, deterministic=True)
        return self._options(), part

    def _of_reader(self, stage: FoundStage, reader: FoundReader) -> tuple[Cure, FoundReader] | None:
        last, is_loose = reader.operations[-1], reader.in_order == "false"
        # TFDS itself yields what is ready first where nothing but a global seed fixes its files.
        races = reader.is_tfds and is_loose and reader.decodes_in_order
        if dict(reader.settings).get("shuffle_files") and (reader.pair is None or races):
            shuffles = [op for op in reader.operations if op.op in SHUFFLES]
            line = self.line_of(stage) if reader.is_tfds else self._line_of_last(shuffles)
            seed = self._seed(line)
            if reader.is_tfds:
                cure = set_shuffle_seed(seed, line)
            else:
                cure = set_argument("seed", seed, line, "list_files")
            in_order = "true" if races else reader.in_order
            return cure, replace(reader, pair=_pair_of_seed(seed, reader.pair), in_order=in_order)
        if not is_loose:
            return None
        line = self._lines.of(last)
        if last.flag("sloppy"):
            cure = set_argument("sloppy", False, line, "parallel_interleave")
        elif last.text("deterministic") == "false" and not reader.is_tfds:
            cure = set_argument("deterministic", True, line, "interleave")
        else:
            cure = self._options()
        return cure, replace(reader, in_order="true", decodes_in_order=True)

    def _options(self) -> Cure:
        """Return the cure of options; they are of the whole pipeline, so it is changed too."""
        loose = []
        for stage in self._found.stages:
            part = stage.part
            if not isinstance(part, call.WithOptions) or part.deterministic is not False:
                continue
            loose.append(stage)
            self.changed[id(stage.part)] = replace(part, deterministic=True)
        return set_options(map(self.line_of, loose))

    def _seed(self, line: SourceLine | None) -> int:
        """Return a seed, from 0: one for each call, also where it runs several times."""
        key = object() if line is None or line.end is None else (line.file, line.end)
        return self._seeds.setdefault(key, len(self._seeds))

    def _is_known(self, stage: FoundStage, cure: Cure) -> bool:
        if not cure.is_known:
            return False
        # A reader that has a seed draws none from the global one, which changes what others draw.
        pairs = [s.reader.pair if s.reader else _pair_of(s.part) for s in self._found.stages]
        others = sum(pair is not None for pair in pairs) > 1
        return not (stage.reader and stage.reader.pair is not None and others)


def _pair_of_seed(seed: int, drawn: KernelPair | None = None) -> KernelPair:
    """Return the pair that a seed gives where none is set; `drawn` is one of a global seed."""
    # What has no pair was made without a global seed, whatever is in force for other stages.
    pair = shuffle_kernel_seeds(seed, None if drawn is None else drawn[0])
    return pair.seed, pair.seed2


def _shown(
    found: FoundPipeline, parts: _Parts, settings: ReadSettings, remedies: _Remedies
) -> tuple[tuple[InspectedStage, ...], tuple[OpenStage, ...]]:
    options = options_in_stages(stages_of(settings))
    shown: list[InspectedStage] = []
    is_open: list[OpenStage] = []

    def why(stage: FoundStage, part: Part) -> str | None:
        if stage.reader is not None:
            return _why_open(part, parts)
        return _reason(parts.stated(part), options, settings.global_seed)

    for stage in found.stages:
        part = parts.changed.get(id(stage.part), stage.reader or stage.part)
        if stage.reader is not None:
            own = _own_settings(parts.settings_of(part))
            text = _call(Read(spec=part.listed.spec, settings=own))
            endless = ", without end" if part.is_endless else ""
            said = f"reads {part.listed.spec} of {part.dataset.title}{endless}"
        else:
            stated = parts.stated(part)
            text, said = _call(stated), stated.effect
        reason = why(stage, part)
        if stage.is_again and reason in (None, *(one.reason for one in shown)):
            continue
        if stage.removed:
            said = "changes nothing, so TensorFlow removes it"
        shown.append(
            InspectedStage(
                call=text,
                operation=stage.operations[-1].op,
                effect=said if reason is None else f"nondeterministic: {reason}",
                level=stage.level,
                reason=reason,
                line=remedies.line_of(stage),
            )
        )
        # What cures the first reason may leave another one.
        while reason is not None:
            cure, part_then = remedies.of(stage, part) or (None, part)
            is_open.append(OpenStage(stage=shown[-1], reason=reason, cure=cure))
            reason = why(stage, part_then) if part_then is not part else None
            part = part_then
    return tuple(shown), tuple(is_open)


def _reason(part: Part, options: call.WithOptions, global_seed: int | None) -> str | None:
    # Choices are a pipeline of their own, and any nondeterministic stage in it makes the choice so.
    if isinstance(part, call.ChooseFromDatasets | call.InterleaveDatasets):
        for found in open_stages(part.choices, global_seed=global_seed):
            return found.reason
    reason: str | None = part.why_open(options.deterministic, global_seed)
    # What to set is the cure's to say, with the line.
    return reason and reason.removesuffix(SET_A_SEED)


def _why_open(reader: FoundReader, parts: _Parts) -> str | None:
    try:
        settings = ReadSettings(**parts.settings_of(reader), global_seed=parts.global_seed)
        # As scripts have it; `check_predictable` is about options of a command.
        if settings.shuffles_files and reader.pair is None:
            return "its files are shuffled without a seed, in another order in each run"
        if reader.is_tfds and reader.in_order == "false" and reader.decodes_in_order:
            return (
                "only the global seed fixes the order of its files, and TFDS then interleaves with "
                "deterministic=False"
            )
        if reader.in_order == "false":
            return "deterministic=False yields examples in order of completion"
        settings.check_predictable(ordered=reader.dataset.ordered)
        if reader.pair is not None and settings.shuffle_seed is None and reader.in_order != "false":
            return "its files are shuffled under another global seed than those of another reader"
    except ShardctlError as error:
        return _spelled(error)
    return None


def _own_settings(values: Mapping[str, Any]) -> tuple[tuple[str, object], ...]:
    """Return settings of a reader by their names, as documents have them."""
    said = []
    for setting in SETTINGS:
        if setting.field in values:
            value = setting.kind.to_document(values[setting.field])
            said.append((setting.name, tuple(value) if isinstance(value, list) else value))
    return tuple(said)


def _call(part: Part) -> str:
    if isinstance(part, call.Opaque):
        return part.call
    # (0, 0) is TensorFlow's way to say "no seed", and is shown as none.
    if isinstance(part, call.Shuffle) and part.seed == NO_SEED:
        part = replace(part, seed=None)
    if isinstance(part, call.Zip | call.Mixture):
        return f"{part.name}({len(part.inputs)} inputs)"
    if isinstance(part, call.Concatenate):
        return "concatenate(..)"
    if isinstance(part, call.Shared):
        return f"shared({part.label}, ..)"
    is_source = isinstance(part, Source)
    pipeline = Pipeline(source=part) if is_source else Pipeline(stages=(part,))
    return text_of(pipeline)


# A real `tf.data.Dataset` read back as stages: is its order fixed, and what is it?


def _is_inspected(value: Any) -> Any:
    # By what is used of it, since TensorFlow is not imported before it is needed.
    if not (is_read_back(value) or callable(value)):
        raise UsageError(f"{_NEEDED} is needed")
    return value


_NEEDED = "a tf.data.Dataset, an object of another loader, or a function that returns one"


Inspected = Annotated[Any, Kind(take=_is_inspected, needed=_NEEDED, several="datasets")]


@checked
def inspect(dataset: Inspected, *, loop: Loop = "python", assume_seeds: bool = False) -> Inspection:
    """Return a real pipeline stage by stage, and what makes its order nondeterministic.

    The dataset is read back from the graph that TensorFlow has of it, so that seeds, shards,
    interleaves and options are those in force, whatever code set them. Of another loader its own
    object is read back, as a dataset of Grain or of Hugging Face, or a DataLoader; TensorFlow is
    not needed for it.

    Args:
        dataset: a `tf.data.Dataset`, or an object of another loader; one of
            `strategy.experimental_distribute_dataset`, of which this worker's part is inspected;
            or a function without arguments that makes one: then each stage has the line of the
            script that made it.
        loop: the training loop: "keras-fit" takes two iterators an epoch.
        assume_seeds: the answer is about the pipeline with the changes that fix its order, the
            `cures` of a nondeterministic one; its `assumptions` are these changes.

    Returns:
        An Inspection; `ids()` are what iterating the dataset yields.

    Raises:
        UsageError: no dataset, or one that TensorFlow does not write as a graph.
        MissingDependencyError: TensorFlow is not installed.

    >>> import shardctl
    >>> found = shardctl.inspect(make_dataset)  # doctest: +SKIP
    >>> found.predictable, found.ids(pass_index=1)[:4].tolist()  # doctest: +SKIP
    (True, [17, 4, 20, 3])
    """
    lines = Lines()
    return inspected(the_dataset(dataset, lines), lines=lines, loop=loop, assume_seeds=assume_seeds)


def the_dataset(made: Any, lines: Lines) -> Returned:
    """Return a dataset, or the one that a function returns or lets iterate.

    Raises:
        UsageError: there is none, or there are several.
    """
    if is_dataset(made):
        return Returned(dataset=made)
    if (read := object_of(made)) is not None:
        return Returned(dataset=made, read=read)
    found = returned_by(made, "the function", lines)
    if len(found) > 1:
        raise UsageError(
            f"the function returns several datasets ({choices(list(found))}); give one that "
            "returns one"
        )
    (one,) = found.values()
    return one


def inspected(
    found: Returned,
    *,
    lines: Lines,
    loop: Loop,
    name: str = "",
    assume_seeds: bool = False,
    scans: Scans | None = None,
) -> Inspection:
    """Return the answer for a dataset whose making was watched, or was not.

    scans: of stages that depend on data; None is those beside the shardctl.yaml, or here.
    """
    if found.read is not None:
        if assume_seeds:
            raise refused(
                "{assume_seeds}: known of tf.data alone; set the seeds of the other loader in the "
                "script"
            )
        answer = provided("inspection")(found.read, name=name)
        return _if_made_alike(answer, found)
    dataset = found.dataset
    clones = clones_of(dataset)
    if clones is not None:
        # All workers have the same stages; the first one is read.
        dataset = clones[0]
    with tensorflow().init_scope():  # a function that is being traced uses a dataset from outside
        root = operation_of(dataset)
        if (
            loop == "keras-fit"
            and int(dataset.cardinality()) == UNKNOWN
            and not any(each.op == "DirectedInterleaveDataset" for each in root.all())
        ):
            # Of a dataset whose length TensorFlow does not know, as of plain record files or
            # without assert_cardinality, Keras takes one iterator an epoch and reads to its end.
            # The length of a mixture is another one in each pass, and Keras cuts later ones by the
            # first.
            loop = "python"
        pipeline = walked(root, options_in_force(dataset), scans or provided("scans")())
        answer, remedies = _inspection(pipeline, {}, lines, loop, name)
        if assume_seeds and remedies.assumed:
            # The same pipeline under the seeds of the cures: what is still open then, stays so.
            told = tuple(map(str, dict.fromkeys(remedies.assumed)))
            answer, _ = _inspection(pipeline, remedies.changed, lines, loop, name)
            answer = replace(answer, assumptions=(*told, *answer.assumptions))
    if found.before and answer.predictable:
        answer = replace(answer, refused=_SEEDS_ARE_TAKEN.format(found.before[0]))
    iterated = None if found.iterated is None else found.iterated.line
    return _if_made_alike(replace(answer, iterated=iterated), found)


def _if_made_alike(answer: Inspection, found: Returned) -> Inspection:
    """Return the answer, of what each call of a function makes alike."""
    if found.draws and answer.predictable:
        answer = replace(answer, refused=_MADE_ANEW.format(found.draws))
    return replace(answer, assumptions=(*answer.assumptions, *found.assumptions))


_MADE_ANEW = (
    "each call makes another dataset: the script draws numbers from {} without a seed, as for a "
    "list of files or for a seed; set one in the script, as by random.seed or seed="
)


_SEEDS_ARE_TAKEN = (
    "{} iterates the same shuffles first, which draws their seeds, so that this pass is not their "
    "first one: iterate another dataset there, made by the same calls"
)
