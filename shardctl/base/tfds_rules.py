"""The numbers and names of TensorFlow, TFDS and Keras that the rules here are made of.

Each with its source, as of the versions in `ORDER_RULES`. Where a rule is a grammar or a way to
calculate, its source is beside the function that follows it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

# The lines of TensorFlow that orders were compared with, and what pip has to be told for each.
#
# Left to itself, pip puts packages beside an older TensorFlow that are too new for it: it looks at
# what they ask of each other, and not all of them say what they need.

# Older ones are broken by protobuf 7, which pip puts beside TensorFlow 2.20 and newer; 4.9.6 also
# leaves out that it needs importlib_resources.
TFDS = "tensorflow-datasets>=4.9.10"

# TFDS imports tensorflow-metadata, whose code from 1.18 on refuses the protobuf that TensorFlow up
# to 2.19 takes, but does not ask pip for another.
_METADATA = "tensorflow-metadata<1.18"

# From 26 on pyarrow refuses the NumPy 1 of TensorFlow up to 2.17, but does not ask pip for another.
_PYARROW = "pyarrow<26"


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorflowLine:
    """A line of TensorFlow, as 2.18.

    pythons: the versions of Python that it is published for, of those that shardctl supports.
    besides: what pip has to be told of other packages.
    """

    name: str
    pythons: tuple[str, ...]
    besides: tuple[str, ...] = ()


LINES = (
    TensorflowLine(name="2.16", pythons=("3.11", "3.12"), besides=(_METADATA, _PYARROW)),
    TensorflowLine(name="2.17", pythons=("3.11", "3.12"), besides=(_METADATA, _PYARROW)),
    TensorflowLine(name="2.18", pythons=("3.11", "3.12"), besides=(_METADATA,)),
    TensorflowLine(name="2.19", pythons=("3.11", "3.12"), besides=(_METADATA,)),
    TensorflowLine(name="2.20", pythons=("3.11", "3.12", "3.13")),
    TensorflowLine(name="2.21", pythons=("3.11", "3.12", "3.13")),
)

_NUMBERS = re.compile(r"(\d+)\.(\d+)")


def line_of(version: str) -> str | None:
    """Return the line that a version belongs to; None of what is no version.

    >>> line_of("2.18.1"), line_of("2.23.0-dev20270101"), line_of("unknown")
    ('2.18', '2.23', None)
    """
    numbers = _NUMBERS.match(version)
    return None if numbers is None else numbers[0]


def is_newer_than_known(version: str) -> bool:
    """Return whether a version of TensorFlow is of a newer line than any that was compared.

    >>> is_newer_than_known("2.21.3"), is_newer_than_known("2.110.0")
    (False, True)
    """
    line = line_of(version)
    return line is not None and _numbers(line) > _numbers(LINES[-1].name)


def install_command(version: str, package: str = "tensorflow") -> str:
    """Return the command that installs TFDS beside a version of TensorFlow, so that both work.

    package: what TensorFlow was installed as.

    >>> install_command("2.20.0").partition(" install ")[2]
    "'tensorflow==2.20.*' 'tensorflow-datasets>=4.9.10'"
    """
    from shardctl.base.install import to_install  # 2 ms

    line = next((line for line in LINES if line.name == line_of(version)), None)
    if line is None:  # nobody has tried what goes with it
        return to_install("-U", "tensorflow", "tensorflow-datasets")
    return to_install(f"{package}=={line.name}.*", TFDS, *line.besides)


def _numbers(line: str) -> tuple[int, ...]:
    return tuple(map(int, line.split(".")))


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleSet:
    """A set of rules, and the versions of TensorFlow and TFDS that it was compared with.

    `version` grows by one whenever an order changes that shardctl gave before.
    """

    version: int
    tensorflow: str
    tensorflow_datasets: str

    def __str__(self) -> str:
        return f"{self.version} (TensorFlow {self.tensorflow}, TFDS {self.tensorflow_datasets})"


ORDER_RULES = RuleSet(
    version=1,
    tensorflow=f"{LINES[0].name} to {LINES[-1].name}",
    tensorflow_datasets="4.9.4 to 4.9.10",
)


# The largest number that a dataset's counts, its ids and most arguments of tf.data can be.
INT64_MAX = 2**63 - 1


# The reader and its interleave.

# TFDS core/reader.py, _get_default_interleave_cycle_length.
DEFAULT_CYCLE = 16
ORDERED_CYCLE = 1  # of a dataset with disable_shuffling=True

# TFDS core/utils/read_config.py, ReadConfig.interleave_block_length.
DEFAULT_BLOCK = 16

# tensorflow/core/kernels/data/parallel_interleave_dataset_op.cc, kDefaultCyclePrefetchFactor: so
# many files are read ahead for each one of the cycle. A cycle length of None is as long as gives
# each file open and each read ahead a CPU.
CYCLE_PREFETCH_FACTOR = 2

# tensorflow/python/data/ops/dataset_ops.py, UNKNOWN: as a buffer size it stands for the whole input
# (tensorflow/core/kernels/data/shuffle_dataset_op.cc).
WHOLE_DATASET = -2

# TFDS core/dataset_builder.py, _should_cache_ds: the largest dataset_size that is cached.
AUTOCACHE_BYTES = 250 * 1024**2

# TFDS core/reader.py, _make_id: between file name and index of a tfds_id.
TFDS_ID_SEPARATOR = "__"


# Shuffles and their seeds.

# tensorflow/python/framework/random_seed.py, DEFAULT_GRAPH_SEED: the seed without a global one.
DEFAULT_GRAPH_SEED = 87654321

# tensorflow/python/framework/random_seed.py, _MAXINT32: seeds are taken modulo it
# (_truncate_seed), it stands for a pair of zeros (data/util/random_seed.py, get_seed), and op seeds
# are drawn from 0 up to it (tensorflow/python/eager/context.py, _internal_operation_seed).
SEED_MODULUS = 2**31 - 1

# xla/tsl/lib/random/philox_random.h, PhiloxRandom; Salmon, Moraes, Dror, Shaw: "Parallel random
# numbers: as easy as 1, 2, 3" (SC 2011).
PHILOX_ROUNDS = 10
PHILOX_SAMPLES_PER_BLOCK = 4  # kResultElementCount
PHILOX_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)  # kPhiloxM4x32A, kPhiloxM4x32B
PHILOX_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)  # kPhiloxW32A, kPhiloxW32B

# tensorflow/core/kernels/stateless_random_ops.cc, GenerateKey: the key that mixes the two seeds of
# a stateless op, as `sample_from_datasets` makes its choices with.
STATELESS_KEY = (0x3EC8F720, 0x02461E29)

# tensorflow/core/kernels/data/random_seed_ops.cc, RandomSeedGenerator: samples for each iterator.
SEEDS_PER_ITERATOR = 2
MAX_ITERATORS = 2**63 // SEEDS_PER_ITERATOR  # num_random_samples_ is an int64

# keras/src/trainers/epoch_iterator.py, EpochIterator._enumerate_iterator: an epoch over a dataset
# of known length makes so many iterators that nobody reads.
KERAS_UNREAD_ITERATORS = 1

# Who iterates: `for` in Python, or Keras's `fit`.
Loop = Literal["python", "keras-fit"]


# File names.

# TFDS core/naming.py, DEFAULT_FILENAME_TEMPLATE.
DEFAULT_TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"

# TFDS core/naming.py, _VAR_REGEX_MAPPING.
TEMPLATE_VARIABLES = ("DATASET", "SPLIT", "FILEFORMAT", "SHARD_INDEX", "NUM_SHARDS", "SHARD_X_OF_Y")

# TFDS core/naming.py, _DEFAULT_NUM_DIGITS_FOR_SHARDS.
MIN_SHARD_DIGITS = 5

# TFDS core/constants.py, DATASET_INFO_FILENAME.
DATASET_INFO_FILENAME = "dataset_info.json"
# TFDS core/constants.py, FEATURES_FILENAME.
FEATURES_FILENAME = "features.json"


# A range beyond it counts on without end, as that of `enumerate` does (to the largest int64,
# tensorflow/python/data/ops/dataset_ops.py).
LONGEST_RANGE = (1 << 62) - 1


# File formats.

# TFDS core/file_adapters.py, FileFormat.
FILE_FORMATS = ("tfrecord", "riegeli", "array_record", "parquet")

# None of TFDS core/file_adapters.py, FileFormat: MosaicML Streaming's, WebDataset's tar, Arrow of
# Hugging Face Datasets, chunks of litdata. Their examples are counted too; TFDS reads none of them.
OTHER_FORMATS = ("mds", "webdataset", "arrow", "litdata")
# What tf.data reads line by line, or in pieces of one length; TFDS reads none of them
# (tensorflow/python/data/ops/readers.py).
_LINE_FORMATS = ("text", "csv", "fixed_length")
RECORD_FORMATS = FILE_FORMATS + OTHER_FORMATS + _LINE_FORMATS
POSITIONS = "positions"  # of elements that no file of a dataset holds


def has_builder(file_format: str) -> bool:
    """Whether TFDS may have a builder of it; of a mixture several formats are named.

    >>> has_builder("tfrecord"), has_builder("tfrecord + positions")
    (True, False)
    """
    return not {*file_format.split(" + ")} & {POSITIONS, *_LINE_FORMATS}


# TFDS core/file_adapters.py, DEFAULT_FILE_FORMAT.
DEFAULT_FILE_FORMAT = "tfrecord"

# TFDS core/file_adapters.py, FileFormat.with_random_access: what as_data_source reads.
RANDOM_ACCESS_FORMATS = ("array_record", "parquet")

# TFDS core/file_adapters.py, ParquetFileAdapter._BATCH_SIZE.
PARQUET_BATCH = 100

# xla/tsl/lib/io/record_writer.h, RecordWriter: kHeaderSize, the length and its checksum before the
# data of a record, and kFooterSize, the checksum of the data behind it.
TFRECORD_HEADER_BYTES = 12
TFRECORD_FOOTER_BYTES = 4

# xla/tsl/lib/hash/crc32c.h: kMaskDelta of Mask.
CRC32C_MASK_DELTA = 0xA282EAD8
