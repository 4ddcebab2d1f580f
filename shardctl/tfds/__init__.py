"""The bridge to TensorFlow Datasets: plans and orders as datasets that a training loop reads.

BUILDER is a TFDS builder, as `tfds.builder("mnist")`; SPEC is a split or slice as TFDS writes it.
SETTINGS describe the pipeline: a ReadSettings, a dict of its values, or keywords. PLAN is a plan
file of `shardctl resume`, or what `shardctl.resume` returns.

Training that resumes after an interruption
    Position(BUILDER, SPEC, SETTINGS)      how far a loop has come: dataset(), count(..), and for
                                           checkpoints get_state, set_state, set_states
    ResumeFit(POSITION)                    the callback with which Keras `fit` resumes
    keras_epochs(BUILDER, .., epochs=)     `fit` epoch by epoch, from any epoch
    resume(BUILDER, PLAN)                  what a plan has left, in exact order
    resume_epochs(BUILDER, PLAN)           the same, a dataset an epoch
    resume_like(TF_DATASET, ..)            what a pipeline of your own has left
    exact_order(BUILDER, .., consumed=)    what an order has left, without a plan
    read_config(PLAN)                      the tfds.ReadConfig for a tfds.load of your own
    pipeline(BUILDER, SPEC, SETTINGS)      the TFDS and tf.data calls that settings describe

Evaluation
    evaluation(BUILDER, SPEC, batch=)      every example once, padded batches with masks, and the
                                           same number of steps on all hosts

Checks
    inspect(TF_DATASET)                    the stages of a pipeline, and what makes its order
                                           nondeterministic
    verify(DATASET, SPEC, SETTINGS)        an order compared with the one that TensorFlow reads
    verify_dataset(TF_DATASET)             what is predicted of a pipeline, and what it yields
    verify_plan(DATASET, PLAN)             a plan, resumed and compared with the rest of its order

Builders
    dataset_of(BUILDER)                    the Dataset of shardctl that a builder reads
    record_files(DATASET)                  a builder of files without metadata
    write_metadata(DATASET, FOLDER, ..)    the metadata with which TFDS reads such files

ReadSettings and Host are those of shardctl. Importing this loads neither TensorFlow nor TFDS; the
calls do. `shardctl.orbax` puts positions into the checkpoints of Orbax.
"""

from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.tfds.builder_layout import dataset_of, record_files
from shardctl.tfds.inspecting.inspect import inspect
from shardctl.tfds.keras_fit import ResumeFit, keras_epochs
from shardctl.tfds.metadata_files import write_metadata
from shardctl.tfds.padded_evaluation import evaluation
from shardctl.tfds.position import Position
from shardctl.tfds.training.pipeline import pipeline, resume_like
from shardctl.tfds.training.read_config import read_config
from shardctl.tfds.training.resume import exact_order, resume, resume_epochs
from shardctl.tfds.verifying.verify import verify, verify_plan
from shardctl.tfds.verifying.verify_dataset import verify_dataset

__all__ = [
    "Host",
    "Position",
    "ReadSettings",
    "ResumeFit",
    "dataset_of",
    "evaluation",
    "exact_order",
    "inspect",
    "keras_epochs",
    "pipeline",
    "read_config",
    "record_files",
    "resume",
    "resume_epochs",
    "resume_like",
    "verify",
    "verify_dataset",
    "verify_plan",
    "write_metadata",
]
