"""Whole checkpoints as transformers saves them, with outputs and gradients of the upstream class in
float64: what `zoo forward --grad` must give.

forward/<case>/config.json, model.safetensors, input.safetensors, expected.safetensors
"""

import json
from dataclasses import dataclass

import numpy as np
import torch
import transformers
from transformers import ResNetConfig, ResNetForImageClassification, ResNetModel

VERSIONS = {m.__name__: m.__version__.split("+")[0] for m in (torch, transformers)}


@dataclass(frozen=True)
class Case:
    name: str
    seed: int
    cls: type
    config: dict
    input: tuple[int, int, int, int]


CASES = [
    # Every switch of the configuration away from its default, and an activation that is not ReLU.
    Case(
        "resnet_bottleneck_v1",
        21,
        ResNetForImageClassification,
        dict(
            embedding_size=6,
            hidden_sizes=[12, 20],
            depths=[1, 2],
            downsample_in_first_stage=True,
            downsample_in_bottleneck=True,
            hidden_act="gelu",
            num_labels=5,
        ),
        (2, 3, 40, 31),
    ),
    Case(
        "resnet_basic",
        22,
        ResNetForImageClassification,
        dict(
            num_channels=1,
            embedding_size=4,
            hidden_sizes=[6, 8, 10],
            depths=[1, 2, 1],
            layer_type="basic",
            hidden_act="silu",
            num_labels=3,
        ),
        (3, 1, 33, 35),
    ),
    # No head: another primary output, and no prefix before the keys.
    Case(
        "resnet_model",
        23,
        ResNetModel,
        dict(embedding_size=8, hidden_sizes=[8, 16], depths=[2, 1]),
        (2, 3, 24, 24),
    ),
]


def randomise(model, rng):
    """Random weights, biases, norms and running statistics; numbers that float32 holds."""
    for key, value in model.state_dict().items():
        if not value.is_floating_point():
            continue
        values = rng.standard_normal(value.shape)
        if key.endswith("running_var") or key.endswith("normalization.weight"):
            values = 0.5 + rng.random(value.shape)
        elif value.ndim > 1:
            values *= (2 / value[0].numel()) ** 0.5
        value.copy_(torch.from_numpy(values.astype(np.float32)))


def case_files(case):
    rng = np.random.default_rng(case.seed)
    config = ResNetConfig(**case.config)
    model = case.cls(config).double().eval()
    with torch.no_grad():
        randomise(model, rng)
    inputs = torch.from_numpy(rng.standard_normal(case.input).astype(np.float32))
    outputs = model(inputs.double(), output_hidden_states=True)
    primary = outputs.logits if "logits" in outputs else outputs.last_hidden_state
    grad_output = torch.from_numpy(rng.standard_normal(primary.shape).astype(np.float32))
    (primary * grad_output.double()).sum().backward()

    expected = {k: v for k, v in outputs.items() if torch.is_tensor(v)}
    expected |= {f"hidden_states.{i}": v for i, v in enumerate(outputs.hidden_states)}
    for key, parameter in model.named_parameters():
        grad = parameter.grad
        expected[f"grad.{key}"] = torch.zeros_like(parameter) if grad is None else grad
    weights = {k: v.float() if v.is_floating_point() else v for k, v in model.state_dict().items()}
    about = {"seed": str(case.seed), **VERSIONS}
    folder = f"forward/{case.name}"
    config.architectures = [case.cls.__name__]
    yield f"{folder}/config.json", json.loads(config.to_json_string(use_diff=False))
    yield f"{folder}/model.safetensors", (weights, {"format": "pt"})
    yield f"{folder}/input.safetensors", ({"pixel_values": inputs, "grad_output": grad_output}, about)
    yield f"{folder}/expected.safetensors", (expected, about)


def files():
    for case in CASES:
        yield from case_files(case)
