"""What a training script says in each framework: its imports, a model to replace, the training.

In each the position is in the framework's own checkpoints: `tf.train.Checkpoint`,
`BackupAndRestore` of Keras with `ResumeFit`, an item of Orbax. The same model with the same first
weights learns by the same rule in all of them, so that one can be held against the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, kw_only=True)
class Framework:
    """The parts of a script behind its `position`.

    Where they begin is `$step`, counted over all epochs, and in Keras `$epoch` of `$epochs`.

    imports: besides those of TensorFlow, TFDS and shardctl.tfds.
    model: a model and its loss for examples of `num_pixels` numbers and `num_classes` labels.
    train: what restores, trains and saves.
    """

    imports: tuple[str, ...]
    model: str
    train: str


# For images with labels, of any size, also as plain tensors. Other examples are refused before
# anything is trained.
PREPARE = """\
features = builder.info.features
image, label = (dict(features).get(name) for name in ("image", "label"))
if not (
    isinstance(image, (tfds.features.Image, tfds.features.Tensor))
    and isinstance(label, tfds.features.ClassLabel)
    and image.tf_dtype == tf.uint8
    and len(image.shape) in (2, 3)
):
    raise SystemExit(
        f"these are no images with labels: write prepare and the model for {features}"
    )
num_pixels = 32 * 32 * (image.shape[2] if len(image.shape) == 3 else 1)
num_classes = label.num_classes


def prepare(example):
    pixels = example["image"]
    pixels = pixels if pixels.shape.rank == 3 else pixels[:, :, tf.newaxis]
    pixels = tf.image.resize(pixels, [32, 32]) / 255
    return tf.reshape(pixels, [num_pixels]), example["label"]
"""

_KERAS_MODEL = """\
model = keras.Sequential(
    [
        keras.Input([num_pixels]),
        keras.layers.Dense(num_classes, kernel_initializer="zeros"),
    ]
)
optimizer = keras.optimizers.SGD(0.1)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
"""

_LOOP = """\
optimizer.build(model.trainable_variables)
step = tf.Variable($step, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(
    step=step, model=model, optimizer=optimizer, data=position
)
checkpoints = tf.train.CheckpointManager(checkpoint, "checkpoints", max_to_keep=3)
checkpoints.restore_or_initialize()


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        value = loss(y, model(x, training=True))
    gradients = tape.gradient(value, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return value


for x, y in position.count(position.dataset(transform=prepare), step=step):
    value = train_step(x, y)
    step.assign_add(1)
    if step % 100 == 0 or position.consumed == position.num_examples:
        checkpoints.save(checkpoint_number=step)
        print("step", int(step), "loss", float(value))
"""

_KERAS = """\
model.compile(optimizer, loss, metrics=["accuracy"])
model.fit(
    position.dataset(transform=prepare),
    initial_epoch=$epoch,
    epochs=$epochs,
    callbacks=[
        keras.callbacks.BackupAndRestore(
            "checkpoints", save_freq=100, delete_checkpoint=False
        ),
        shardctl.tfds.ResumeFit(position),
    ],
)
model.save("model.keras")
"""

_FLAX_MODEL = """\
tf.config.set_visible_devices([], "GPU")  # they are JAX's
model = nnx.Linear(
    num_pixels, num_classes, kernel_init=nnx.initializers.zeros, rngs=nnx.Rngs(0)
)
optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)


def loss(model, x, y):
    logits = model(x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()
"""

_FLAX = """\
step = $step
checkpoints = ocp.CheckpointManager(
    os.path.abspath("checkpoints"), options=ocp.CheckpointManagerOptions(max_to_keep=3)
)
if checkpoints.latest_step() is not None:
    step = checkpoints.latest_step()
    restored = checkpoints.restore(
        step,
        args=ocp.args.Composite(
            state=ocp.args.StandardRestore(nnx.state((model, optimizer))),
            data=shardctl.orbax.Restore(position),
        ),
    )
    nnx.update((model, optimizer), restored.state)


@nnx.jit
def train_step(model, optimizer, x, y):
    value, gradients = nnx.value_and_grad(loss)(model, x, y)
    optimizer.update(model, gradients)
    return value


batches = position.dataset(transform=prepare).as_numpy_iterator()
for x, y in position.count(batches):
    value = train_step(model, optimizer, x, y)
    step += 1
    if step % 100 == 0 or position.consumed == position.num_examples:
        checkpoints.save(
            step,
            args=ocp.args.Composite(
                state=ocp.args.StandardSave(nnx.state((model, optimizer))),
                data=shardctl.orbax.Save(position),
            ),
        )
        print("step", step, "loss", float(value))
checkpoints.wait_until_finished()
"""

FRAMEWORKS: Mapping[str, Framework] = MappingProxyType(
    {
        "loop": Framework(imports=("import keras",), model=_KERAS_MODEL, train=_LOOP),
        "keras": Framework(imports=("import keras",), model=_KERAS_MODEL, train=_KERAS),
        "flax": Framework(
            imports=(
                "import optax",
                "import orbax.checkpoint as ocp",
                "from flax import nnx",
                "import shardctl.orbax",
            ),
            model=_FLAX_MODEL,
            train=_FLAX,
        ),
    }
)
