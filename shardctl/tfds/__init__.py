"""The bridge to TensorFlow Datasets: plans and orders as datasets that a training loop reads.

Importing this loads neither TensorFlow nor TFDS; the calls do.
"""

from shardctl.core.hosts.host import Host
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.tfds.builder_layout import dataset_of
from shardctl.tfds.evaluating.evaluation import evaluation
from shardctl.tfds.inspecting.inspect import inspect
from shardctl.tfds.keras.keras_epochs import keras_epochs
from shardctl.tfds.keras.resume_fit import ResumeFit
from shardctl.tfds.metadata.write import write_metadata
from shardctl.tfds.position.position import Position
from shardctl.tfds.record_files import record_files
from shardctl.tfds.training.pipeline import pipeline
from shardctl.tfds.training.read_config import read_config
from shardctl.tfds.training.resume import exact_order, resume, resume_epochs
from shardctl.tfds.training.resume_like import resume_like
from shardctl.tfds.verifying.verify import verify
from shardctl.tfds.verifying.verify_dataset import verify_dataset
from shardctl.tfds.verifying.verify_plan import verify_plan

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
