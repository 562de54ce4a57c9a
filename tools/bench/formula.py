"""The numbers that `zoo bench` makes its inputs and weights of: see crates/zoo-cli/src/bench/formula.rs."""

import numpy as np


def numbers(name, count):
    """Numbers in -1..1 that belong to a name: the upper 24 bits of SplitMix64."""
    state = 0xCBF29CE484222325
    for byte in name.encode():
        state = ((state ^ byte) * 0x100000001B3) & (2**64 - 1)
    with np.errstate(over="ignore"):
        z = np.uint64(state) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = (z ^ (z >> np.uint64(31))) >> np.uint64(40)
    return z.astype(np.float32) / np.float32(1 << 23) - np.float32(1)


def whole(name, count, below):
    """Whole numbers of `0..below`."""
    return ((numbers(name, count).astype(np.float64) + 1) / 2 * below).astype(np.int64)


def weight(key, shape):
    """The weight of a model under this key."""
    values = numbers(key, int(np.prod(shape)))
    if len(shape) > 1:
        values = np.sqrt(np.float32(3) / np.float32(np.prod(shape[1:]))) * values
    elif key.endswith(("running_var", "weight")):
        values = np.float32(1) + np.float32(0.1) * values
    else:
        values = np.float32(0.1) * values
    return values.reshape(shape)


if __name__ == "__main__":
    print([float(v) for v in numbers("input", 3)], whole("labels", 4, 10).tolist())
