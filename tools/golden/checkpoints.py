"""PyTorch checkpoints in every shape that `torch.save` gives them, and what is in them.

checkpoints/<case>.pth   one state dict, saved in one way
checkpoints/expected.safetensors   its tensors, as `<case>/<key>` where a case has its own
"""

import io
import os
from collections import OrderedDict

import numpy as np
import torch
from torch import nn


class Hostile:
    """Runs a command when it is unpickled."""

    def __reduce__(self):
        return os.system, ("touch burn-zoo-was-here",)


def saved(value, legacy=False):
    buffer = io.BytesIO()
    torch.save(value, buffer, _use_new_zipfile_serialization=not legacy)
    return buffer.getvalue()


def files():
    rng = np.random.default_rng(31)

    def random(*shape):
        return torch.from_numpy(rng.standard_normal(shape).astype(np.float32))

    state = OrderedDict(
        [("conv.weight", random(3, 2, 3, 3)), ("fc.weight", random(4, 3)), ("fc.bias", random(4))]
    )
    # Views into one storage: an offset, a transpose, a step, and a row repeated with stride 0.
    base = random(6, 8)
    strided = OrderedDict(
        [
            ("whole", base),
            ("row", base[3]),
            ("transposed", base.t()),
            ("stepped", base[::2, 1::3]),
            ("expanded", base[:1].expand(4, 8)),
            ("scalar", base[2, 5]),
            ("empty", base[:0]),
        ]
    )
    numbers = np.array([0, 1, -2, 3.5, 1e-3])
    dtypes = OrderedDict(
        (str(dtype).removeprefix("torch."), torch.from_numpy(numbers).to(dtype))
        for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32)
    )
    training = {
        "epoch": 3,
        "arch": "tiny",
        "state_dict": state,
        "optimizer": {"state": {0: {"exp_avg": random(4)}}, "param_groups": [{"lr": 0.1}]},
    }
    module = nn.Sequential(OrderedDict([("fc", nn.Linear(3, 4)), ("norm", nn.BatchNorm1d(4))]))
    with torch.no_grad():
        for value in module.state_dict().values():
            if value.is_floating_point():
                value.copy_(random(*value.shape))

    wrapped = OrderedDict((f"module.{k}", v) for k, v in state.items())
    yield "checkpoints/zip.pth", saved(state)
    yield "checkpoints/legacy.pth", saved(state, legacy=True)
    yield "checkpoints/nested.pth", saved(training)
    yield "checkpoints/nested_legacy.pth", saved(training, legacy=True)
    yield "checkpoints/data_parallel.pth", saved({"model": wrapped})
    yield "checkpoints/strided.pth", saved(strided)
    yield "checkpoints/strided_legacy.pth", saved(strided, legacy=True)
    yield "checkpoints/dtypes.pth", saved(dtypes)
    yield "checkpoints/whole_module.pth", saved(module)
    yield "checkpoints/hostile.pth", saved({"fc.bias": state["fc.bias"], "other": Hostile()})
    yield "checkpoints/hostile_legacy.pth", saved(Hostile(), legacy=True)
    expected = {f"state/{k}": v for k, v in state.items()}
    expected |= {f"strided/{k}": v.clone() for k, v in strided.items()}
    expected |= {f"dtypes/{k}": v for k, v in dtypes.items()}
    expected |= {f"module/{k}": v for k, v in module.state_dict().items()}
    yield "checkpoints/expected.safetensors", (expected, {"torch": torch.__version__.split("+")[0]})
