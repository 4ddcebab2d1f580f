"""Which examples, from which files, in which order, on which host: planned from metadata alone.

There is a function for each command, with the same answer. DATASET is a name such as "mnist" or
"imagenet2012:5.1.0", the path of a dataset or of a layout.yaml, record files without metadata such
as "data/train-*.tfrecord", a list of these, or a Dataset. SPEC is a split or slice as TFDS writes
it; the default is "train". SETTINGS describe the pipeline: a ReadSettings, a dict of its values, or
keywords such as shuffle_seed=42. `help(shardctl.plan)` explains one function.

>>> import shardctl
>>> shardctl.plan("mnist", "train", hosts=3)
<Plans mnist:3.0.1 train: 3 plans>
>>> shardctl.simulate("mnist", "train", shuffle_seed=42, buffer=100, buffer_seed=1, take=3).ids
array([20,  0, 33])
>>> settings = shardctl.ReadSettings(shuffle_seed=42, batch=256)
>>> shardctl.locate("imagenet2012", "train", settings, step=91).matches[0].tfds_id
'imagenet2012-train.tfrecord-00543-of-01024__205'
>>> plan = shardctl.resume("imagenet2012", "train", settings, steps=1234)
>>> plan.remaining, shardctl.prove("imagenet2012", plan).holds
(965263, True)

What is read
    layout(DATASET, SPLIT..)               the shards: examples, bytes, ids, how even
    plan(DATASET, SPEC.., hosts=)          the file instructions, for each host
    simulate(DATASET, SPEC, SETTINGS)      the order of the ids; skip=, take=20, -1 for all
    locate(DATASET, SPEC, SETTINGS, ..)    where an example is: position=, step=, id=, tfds_id=
    plan_order(DATASET, SPEC, SETTINGS)    the Order itself, to ask for any position
    read_dataset(DATASET.., data_dir=)     the Dataset, from a data_dir that you name
    list_datasets(WORD.., data_dir=)       the datasets that names refer to; also shardctl.list

Record files without metadata
    index(PATH..)                          counts their examples; its `dataset` is a DATASET
    check_index(LAYOUT)                    what changed since `shardctl index PATH -o LAYOUT`

After an interruption
    resume(.., consumed= or steps=)        how the same pipeline resumes exactly
    resume_loader(..)                      an older name of resume
    resume_on_hosts(.., hosts=, to_hosts=) the same with another number of hosts
    resume_unseen(.., seen=)               what a log of the examples seen leaves to read
    audit(DATASET, LOGS, SPEC, ..)         what a run was trained on twice, never, out of turn
    StepLog(path, host=)                   the log of a training loop, for audit: log(step, ids)
    prove(DATASET, PLAN)                   whether a plan loses, repeats or moves an example
    read_plan(path)                        the plan that `shardctl resume -o FILE` wrote

On many hosts
    hosts(.., hosts=)                      what each host reads, and the recommended way to share
    evaluate(.., batch=, hosts=, devices=) remainder, padding, hangs; also shardctl.eval

Reports
    report(DATASET, SPEC, SETTINGS, ..)    pictures and figures of one pipeline; to_html() is a page
    compare_reports(A, B)                  two pipelines: where their orders differ, how each mixes

Checks
    quality(DATASET, SPEC, SETTINGS)       how well the order is shuffled, from 0 to 1
    compare_loaders(DATASET, SPEC, ..)     the same of each loader, and how it ends and resumes
    lint(DATASET, SPECS, SETTINGS)         what is wrong with the settings
    snapshot(DATASET, SPEC, SETTINGS)      a small value that identifies an order
    read_snapshot(path)                    the one that `shardctl snapshot -o FILE` wrote
    diff(A, B)                             where and why two snapshots or plans differ, or their
                                           files; without B a snapshot and the current order
    verify(DATASET, SPEC, SETTINGS)        the order compared with the one that TensorFlow reads
    rehearse(DATASET, SPEC, .., hosts=)    a run in TensorFlow stopped and resumed: nothing lost?
    verify_files(DATASET, SPLIT..)         every record of every file, without TensorFlow
    beam_runner(OPTION..)                  a Beam pipeline, as runner= of verify_files and index
    inspect(TF_DATASET, loop=)             the stages of a real tf.data.Dataset, or of an object of
                                           another loader, its ids, and what makes its order
                                           nondeterministic

Answers are frozen values. `to_dict()` and `to_json()` return what `-f json` prints, `save(path)`
writes what `-o path` writes, and `warnings` are those of the command. Answers with rows have
`to_pandas()`, where pandas is installed, and are tables in a notebook. A Host may be written "1/3";
numbers of NumPy and TensorFlow are numbers. Errors are ShardctlErrors: UsageError (names the
option, `--batch` for batch=), DatasetError, UnpredictableOrderError (with the fix) and
MissingDependencyError. `shardctl.tfds` reads with TensorFlow what is planned here, and keeps the
position of a training loop (Position, ResumeFit) in checkpoints; `shardctl.orbax` in Orbax's;
`shardctl.grain` and `shardctl.torch` give Grain and PyTorch the order of tf.data.

Names are looked up in TFDS_DATA_DIR, ~/tensorflow_datasets and the built-in catalog. Importing
shardctl loads neither TensorFlow nor NumPy; each name loads what it needs when it is first used.
"""

from __future__ import annotations

from shardctl.base.by_name import PROVIDERS

__version__ = "0.2.0"

PROVIDERS.update(
    dataset="api.arguments:dataset_of_argument",
    plan="api.arguments:read_plan",
    html="api.tables:html_of",
    inspection="live.objects:inspection",
    installed_version="metadata.loader_versions:installed_version",
    kept="metadata.example_log:read_kept",
    listed="metadata.index.listing:listed_spec",
    comparison_body="verbs.report.compare_page:comparison_body",
    comparison_page="verbs.report.compare_page:comparison_page",
    report_body="verbs.report.page:report_body",
    report_page="verbs.report.page:report_page",
    same_source="metadata.loader_versions:same_source",
    save="api.tables:save",
    scans="tfds.training.scan:Scans",
    text="api.tables:text_of",
    to_pandas="api.tables:to_pandas",
    verify_loader="live.verify:verify_loader",
    verify_object="live.objects:verify_object",
    verified_version="metadata.loader_versions:verified_version",
)

_HOMES = {}  # public names, each with its module; filled when one is first asked for
# Commands whose names are functions of Python already; `import *` leaves these alone.
_COMMANDS = {"eval": "evaluate", "list": "list_datasets"}


def _homes():
    """Return the module of each public name, as `__init__.pyi` tells checkers of types."""
    if not _HOMES:
        import re
        from pathlib import Path

        stub = Path(__file__).with_suffix(".pyi").read_text("utf-8")
        for module, names in re.findall(r"^from (shardctl\.\S+) import (.*)$", stub, re.MULTILINE):
            _HOMES.update(dict.fromkeys(re.findall(r"\w+(?= as )", names), module))
    return _HOMES


def __getattr__(name):
    import importlib

    if name == "tfds":
        return importlib.import_module("shardctl.tfds")
    if name == "__all__":
        return sorted(_homes())
    home = _COMMANDS.get(name, name)
    # What Python itself asks a module for is no public name, and reads no file.
    if name.startswith("_") or home not in _homes():
        raise AttributeError(f"module 'shardctl' has no attribute {name!r}")
    value = getattr(importlib.import_module(_homes()[home]), home)
    if name == home:  # `eval` and `list` stay Python's own in here
        globals()[name] = value
    return value


def __dir__():
    return sorted((*_homes(), *_COMMANDS))
