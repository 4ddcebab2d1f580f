"""The bridge to TensorFlow Datasets: plans and orders as datasets that a training loop reads.

Importing this loads neither TensorFlow nor TFDS; the calls do.
"""

from shardctl.core.hosts import Host
from shardctl.core.read_settings import ReadSettings
from shardctl.tfds.builder_layout import dataset_of
from shardctl.tfds.keras import keras_epochs
from shardctl.tfds.pipeline import pipeline
from shardctl.tfds.position import Position
from shardctl.tfds.read_config import read_config
from shardctl.tfds.resume import exact_order, resume, resume_epochs
from shardctl.tfds.verify import verify
from shardctl.tfds.verify_plan import verify_plan

__all__ = [
    "Host",
    "Position",
    "ReadSettings",
    "dataset_of",
    "exact_order",
    "keras_epochs",
    "pipeline",
    "read_config",
    "resume",
    "resume_epochs",
    "verify",
    "verify_plan",
]
