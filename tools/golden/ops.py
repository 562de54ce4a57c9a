"""Activations and their derivatives by torch, in float64.

ops/activations.safetensors   x, and y.NAME and dy.NAME for the names of transformers' ACT2FN
"""

import torch
from torch.nn.functional import relu6
from transformers.activations import ACT2FN

NAMES = [
    "relu",
    "relu6",
    "silu",
    "hardswish",
    "hardsigmoid",
    "sigmoid",
    "tanh",
    "gelu",
    "gelu_new",
    "gelu_pytorch_tanh",
    "quick_gelu",
]


def files():
    # Every corner but the ones of hard-swish, where torch takes another one-sided derivative.
    x = torch.cat([torch.linspace(-9.7, 9.7, 98, dtype=torch.float64), torch.tensor([0.0, 6.0, -40, 40])])
    tensors = {"x": x}
    for name in NAMES:
        leaf = x.clone().requires_grad_()
        # torch's own derivative of hard-sigmoid is 1/6 rounded to float32, in float64 too.
        f = (lambda x: relu6(x + 3) / 6) if name == "hardsigmoid" else ACT2FN[name]
        y = f(leaf)
        y.sum().backward()
        tensors[f"y.{name}"] = y
        tensors[f"dy.{name}"] = leaf.grad
    yield "ops/activations.safetensors", (tensors, {"torch": torch.__version__.split("+")[0]})
