"""A script with all that `fit` continues with: fit_everything.py FOLDER outputs|weights RUN.

With `outputs` the model has two outputs, with `weights` `fit` has a `class_weight`; Keras takes
only one of these.
"""

import importlib.util
import os
import sys
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

from shardctl.tfds import Position, ReadSettings, ResumeFit, pipeline

folder, mode, run = sys.argv[1], sys.argv[2], Path(sys.argv[3])
run.mkdir(parents=True, exist_ok=True)
backend = keras.backend.backend()
keras.utils.set_random_seed(7)
settings = ReadSettings(global_seed=7, shuffle_seed=3, buffer=9, buffer_seed=1, batch=8)
builder = tfds.builder_from_directory(folder)
position = Position(builder, "train", settings)


def prepare(example):
    number = tf.cast(example["id"], tf.float32)[tf.newaxis]
    if mode == "weights":
        return number / 100, example["id"] % 2
    return number / 100, (tf.sin(number), number % 2)


def log(step, x):
    names = " ".join(str(round(float(each) * 100)) for each in np.ravel(x))
    with open(run / "trained.log", "a") as file:
        file.write(f"{int(step)} {names}\n")


class Model(keras.Model):
    def train_step(self, *given):
        logs = super().train_step(*given)
        if backend == "jax":
            import jax

            step = logs[1][2][0]  # of the optimizer's variables the first
            jax.debug.callback(log, step, given[1][0], ordered=True)
        elif backend == "torch":
            log(self.optimizer.iterations.numpy(), given[0][0].numpy())
        else:
            numbers = tf.cast(tf.round(tf.reshape(given[0][0], [-1]) * 100), tf.int32)
            names = tf.strings.reduce_join(tf.strings.as_string(numbers), separator=" ")
            tf.print(self.optimizer.iterations, names, output_stream=f"file://{run}/trained.log")
        return logs


class Counting(keras.callbacks.Callback):
    seen = 0

    def get_state(self):
        return self.seen

    def set_state(self, state):
        self.seen = state

    def on_train_batch_end(self, batch, logs=None):
        self.seen += 1
        with open(run / "counted.log", "a") as file:
            file.write(f"{self.seen} {batch} {sorted(logs.items())}\n")


number = keras.Input((1,))
hidden = keras.layers.Dense(4, activation="tanh")(number)
hidden = keras.layers.Dropout(0.2)(hidden)
if mode == "weights":
    outputs = keras.layers.Dense(2, activation="softmax")(hidden)
    losses = {"loss": "sparse_categorical_crossentropy", "weighted_metrics": ["accuracy"]}
else:
    outputs = [keras.layers.Dense(1, name=name)(hidden) for name in ("sine", "odd")]
    losses = {"loss": ["mse", "mae"], "metrics": [["mae"], ["mse"]]}
model = Model(number, outputs)
model.compile(
    keras.optimizers.Adam(0.01, use_ema=True),
    steps_per_execution=1 if backend == "torch" else 4,
    **losses,
)
callbacks = keras.callbacks
board = []
if importlib.util.find_spec("tensorboard"):
    board = [callbacks.TensorBoard(run / "board", write_graph=False, update_freq=4)]
history = model.fit(
    position.dataset(transform=prepare),
    epochs=6,
    class_weight={0: 1.0, 1: 0.5} if mode == "weights" else None,
    validation_data=pipeline(
        builder, "test", ReadSettings(batch=8, global_seed=7), transform=prepare
    ),
    validation_freq=2,
    callbacks=[
        callbacks.CSVLogger(run / "log.csv"),
        callbacks.SwapEMAWeights(swap_on_epoch=True),
        callbacks.BackupAndRestore(run / "backup", save_freq=int(os.environ.get("SAVES", "4"))),
        callbacks.EarlyStopping("loss", mode="max", patience=4, restore_best_weights=True),
        callbacks.ReduceLROnPlateau("loss", mode="max", patience=1, min_delta=0),
        ResumeFit(position),
        callbacks.ModelCheckpoint(
            run / "best.weights.h5", "loss", save_best_only=True, save_weights_only=True
        ),
        *board,
        callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.97),
        Counting(),
    ],
    verbose=0,
    shuffle=False,
)
model.save_weights(run / "final.weights.h5")
np.savez(run / "history.npz", epoch=history.epoch, **history.history)
