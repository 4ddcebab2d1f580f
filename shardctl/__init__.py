"""Which examples, from which files, in which order, on which host: planned from metadata alone.

A function for each command, and what a command prints, the function of its name returns. DATASET is
a name as "mnist" or "imagenet2012:5.1.0", the path of a dataset or of a layout.yaml, record files
without metadata as "data/train-*.tfrecord", a list of these, or a Dataset. SPEC is a subsplit as
TFDS writes it, "train" where it is left out. SETTINGS is a ReadSettings or a dict of its values,
and says how the pipeline reads. help(shardctl.plan), or shardctl.plan? in a notebook, tells more
of one function.

>>> import shardctl
>>> shardctl.plan("mnist", "train", hosts=3)
<Plans mnist:3.0.1 train: 3 plans>
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
    list_datasets(WORD.., data_dir=)       the datasets that names lead to; also shardctl.list

Record files without metadata
    index(PATH..)                          their examples, counted; its `dataset` is a DATASET
    check_index(LAYOUT)                    what changed since `shardctl index PATH -o LAYOUT`

After an interruption
    resume(.., consumed= or steps=)        how the same pipeline goes on exactly
    resume_loader(..)                      the same by its older name for loaders besides TFDS's
    resume_on_hosts(.., hosts=, to_hosts=) the same with another number of hosts
    resume_unseen(.., seen=)               what a log of the examples seen leaves
    prove(DATASET, PLAN)                   whether a plan loses, repeats or moves an example
    read_plan(path)                        the plan that `shardctl resume -o FILE` wrote

On many hosts
    hosts(.., hosts=)                      what each host reads, and how best to share
    evaluate(.., batch=, hosts=, devices=) remainder, padding, hangs; also shardctl.eval

To look at
    report(DATASET, SPEC, SETTINGS, ..)    pictures and figures of one pipeline; to_html() is a page
    compare_reports(A, B)                  two side by side: where they differ, how each is shuffled

Whether it is right
    quality(DATASET, SPEC, SETTINGS)       how well the order is shuffled, from 0 to 1
    compare_loaders(DATASET, SPEC, ..)     the same of each loader, and how it ends and goes on
    lint(DATASET, SPECS, SETTINGS)         what is wrong with the settings
    snapshot(DATASET, SPEC, SETTINGS)      what fixes an order
    read_snapshot(path)                    the one that `shardctl snapshot -o FILE` wrote
    diff(A, B)                             where and why two snapshots or plans differ, or their
                                           files; without B a snapshot and the order as it is now
    verify(DATASET, SPEC, SETTINGS)        the order beside the one that TensorFlow reads
    verify_files(DATASET, SPLIT..)         every record of every file, without TensorFlow
    beam_runner(OPTION..)                  a Beam pipeline, as runner= of verify_files and index
    inspect(TF_DATASET, loop=)             the stages of a real tf.data.Dataset, where its order is
                                           open, and its ids

Answers are frozen values, with their warnings in `warnings`. Those with rows have `to_pandas()`,
where pandas is installed, and are tables in a notebook. A Host may be written "1/3"; numbers of
NumPy and TensorFlow are numbers. What goes wrong is a ShardctlError: UsageError (names the
option, `--batch` for batch=), DatasetError, UnpredictableOrderError (says what would fix the order)
or MissingDependencyError. `shardctl.tfds` reads with TensorFlow what is planned here, and keeps the
position of a training loop (Position, ResumeFit) in checkpoints; `shardctl.orbax` in Orbax's;
`shardctl.grain` and `shardctl.torch` feed Grain and PyTorch tf.data's order.

Names are looked up in TFDS_DATA_DIR, ~/tensorflow_datasets and the built-in catalog. Importing
shardctl loads neither TensorFlow nor NumPy; each name loads what it needs when it is first used.
"""

from __future__ import annotations

from shardctl.base.hooks import PROVIDERS

__version__ = "0.2.0"

PROVIDERS.update(
    dataset="api.arguments:dataset_of_argument",
    plan="api.arguments:read_plan",
    html="api.tables:html_of",
    installed_version="metadata.loader_versions:installed_version",
    kept="metadata.seen_file:read_kept",
    listed="metadata.index.listing:listed_spec",
    comparison_body="verbs.report.compared:comparison_body",
    comparison_page="verbs.report.compared:comparison_page",
    report_body="verbs.report.page:report_body",
    report_page="verbs.report.page:report_page",
    to_pandas="api.tables:to_pandas",
    verify_loader="live.verify:verify_loader",
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
