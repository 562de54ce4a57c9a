"""What the fixtures of every family have in common.

<family>/<case>.safetensors         weights, an eval pass and a train pass, each with gradients
<family>/<case>.steps.safetensors   ten training steps from the case's weights, for three optimizers
<family>/presets.json.gz            parameter count, flops and state_dict shapes at full size
"""

import copy
import json
import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
import torchvision
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from torchvision.ops import StochasticDepth

# Without the build tag (`+cpu`, `+cu132`).
VERSIONS = {m.__name__: m.__version__.split("+")[0] for m in (torch, torchvision)}
STEPS = 10
LABEL_SMOOTHING = 0.1
OPTIMIZERS = {
    # name: (constructor, norm the gradients are clipped to or None)
    "adamw": (lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=5e-2), None),
    "sgd": (lambda p: torch.optim.SGD(p, lr=5e-2, momentum=0.9, weight_decay=1e-2), None),
    "sgd_clip": (lambda p: torch.optim.SGD(p, lr=5e-2, momentum=0.9, nesterov=True), 0.5),
}


def randn(rng, *shape):
    return torch.from_numpy(rng.standard_normal(shape))


def randomise(model, rng):
    """`model` in float64 with every parameter and running statistic random, activations O(1)."""
    model = model.double()
    with torch.no_grad():
        for name, module in model.named_modules():
            if isinstance(module, nn.BatchNorm2d):
                size = module.num_features
                module.weight.copy_(torch.from_numpy(rng.uniform(0.7, 1.3, size)))
                module.bias.copy_(0.2 * randn(rng, size))
                module.running_mean.copy_(0.2 * randn(rng, size))
                module.running_var.copy_(torch.from_numpy(rng.uniform(0.5, 1.5, size)))
            elif isinstance(module, (nn.Conv2d, nn.Linear)):
                fan_in = module.weight[0].numel()
                gain = 1 if isinstance(module, nn.Linear) else 2
                module.weight.copy_(randn(rng, *module.weight.shape) * math.sqrt(gain / fan_in))
                if module.bias is not None:
                    module.bias.copy_(0.2 * randn(rng, *module.bias.shape))
    return model


def named_state(model, prefix):
    state = {k: v for k, v in model.state_dict().items() if not k.endswith("num_batches_tracked")}
    return {prefix + k: v.clone() for k, v in state.items()}


def named_grads(model, prefix):
    """What the output does not depend on has none."""
    return {prefix + k: p.grad.clone() for k, p in model.named_parameters() if p.grad is not None}


@dataclass(frozen=True)
class Before:
    """What goes into a module, where no module gives a stage out."""

    module: nn.Module


def classify(model, inputs):
    """The logits of an image classifier."""
    return model(inputs["pixel_values"])


def floats(inputs):
    return {name: value for name, value in inputs.items() if value.is_floating_point()}


def eval_pass(model, stages, inputs, grad_output, call=classify):
    """`stages(model)` gives the modules whose outputs are recorded, by name, or `Before` one;
    `call(model, inputs)` the primary output for arguments by name."""
    model = copy.deepcopy(model).eval()
    out = {}

    def record(name):
        def hook(_module, _args, output):
            output = output[0] if isinstance(output, tuple) else output
            value = output.detach().clone()
            out[f"eval.stage.{name}"] = value.flatten(1) if name == "pool" else value

        return hook

    for name, module in stages(model).items():
        if isinstance(module, Before):
            hook = record(name)
            module.module.register_forward_pre_hook(lambda m, args, hook=hook: hook(m, (), args[0]))
        else:
            module.register_forward_hook(record(name))
    inputs = inputs | {name: value.clone().requires_grad_() for name, value in floats(inputs).items()}
    logits = call(model, inputs)
    (logits * grad_output).sum().backward()
    out["eval.logits"] = logits
    out |= {f"eval.grad.input.{name}": value.grad for name, value in floats(inputs).items()}
    return out | named_grads(model, "eval.grad.")


def rows(logits):
    """A row for each label."""
    return logits.reshape(-1, logits.shape[-1])


def train_pass(model, inputs, labels, call=classify):
    model = copy.deepcopy(model).train()
    logits = call(model, inputs)
    loss = F.cross_entropy(rows(logits), labels, label_smoothing=LABEL_SMOOTHING)
    loss.backward()
    out = {"train.logits": logits, "train.loss": loss.reshape(1)}
    stats = {k: v for k, v in named_state(model, "train.stats.").items() if ".running_" in k}
    return out | named_grads(model, "train.grad.") | stats


def train_steps(model, inputs, labels, optimizer, clip, call=classify):
    """The losses before each step, and the model after the last."""
    model = copy.deepcopy(model).train()
    optimizer = optimizer(model.parameters())
    losses = []
    for i, target in enumerate(labels):
        optimizer.zero_grad()
        logits = call(model, {name: value[i] for name, value in inputs.items()})
        loss = F.cross_entropy(rows(logits), target)
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses), model


def error(got, want):
    """The relative error of all tensors together: one flipped ReLU is much of a small tensor."""
    off = sum((got[name].detach().double() - value.detach()).square().sum() for name, value in want.items())
    whole = sum(value.detach().square().sum() for value in want.values())
    return float((off / whole).sqrt())


def half_errors(model, stages, inputs, grad_output, want, call=classify, narrow=lambda model, dtype: model.to(dtype)):
    """torch's own errors in the half types: of outputs and stages, and of gradients."""
    errors = {}
    for name, dtype in {"bf16": torch.bfloat16, "f16": torch.float16}.items():
        half = narrow(copy.deepcopy(model), dtype)
        narrowed = inputs | {name: value.to(dtype) for name, value in floats(inputs).items()}
        got = eval_pass(half, stages, narrowed, grad_output.to(dtype), call)
        grads = {k for k in want if k.startswith("eval.grad.")}
        outputs = {k: v for k, v in want.items() if k not in grads}
        pair = error(got, outputs), error(got, {k: want[k] for k in grads})
        # Two digits: the next ones depend on the CPU. Above 1 is one fault or another of torch's kernels.
        errors[name] = [float(f"{min(value, 1.0):.1e}") for value in pair]
    return errors


def case_files(family, case, config, model, stages, spelling="torchvision"):
    """`case` has name, seed, input, steps_batch, and `f64_only`: what is too ill-conditioned for f32;
    `config` is the zoo's configuration, `spelling` whose names the weights have."""
    metadata = VERSIONS | {
        "config": json.dumps({"model_type": family} | config),
        "spelling": spelling,
        "f64_only": json.dumps(getattr(case, "f64_only", ())),
        "seed": str(case.seed),
    }
    rng = np.random.default_rng(case.seed)
    model = randomise(model, rng)
    batch, num_classes = case.input[0], config["num_classes"]
    inputs = {"pixel_values": randn(rng, *case.input)}
    labels = torch.from_numpy(rng.integers(0, num_classes, batch))
    grad_output = randn(rng, batch, num_classes)
    tensors = named_state(model, "model.")
    tensors |= {f"input.{name}": value for name, value in inputs.items()}
    tensors |= {"labels": labels, "grad_output": grad_output}
    evaluated = eval_pass(model, stages, inputs, grad_output)
    tensors |= evaluated
    halves = half_errors(model, stages, inputs, grad_output, evaluated)
    metadata["half_errors"] = json.dumps(halves)
    dead = [k for k, v in tensors.items() if not v.any()]
    assert not dead, f"{case.name}: all zero, try another seed: {dead}"
    tensors |= train_pass(model, inputs, labels)
    yield f"{family}/{case.name}.safetensors", (tensors, metadata)

    if case.steps_batch is None:
        return
    inputs = {"pixel_values": randn(rng, STEPS, *case.steps_batch)}
    labels = torch.from_numpy(rng.integers(0, num_classes, (STEPS, case.steps_batch[0])))
    yield f"{family}/{case.name}.steps.safetensors", (steps(model, inputs, labels), metadata)


def steps(model, inputs, labels, call=classify):
    """Ten steps of every optimizer; the first dimension of inputs and labels counts them."""
    tensors = {f"batch.input.{name}": value for name, value in inputs.items()} | {"batch.labels": labels}
    for name, (optimizer, clip) in OPTIMIZERS.items():
        losses, trained = train_steps(model, inputs, labels, optimizer, clip, call)
        tensors |= {f"{name}.losses": losses} | named_state(trained, f"{name}.model.")
    return tensors


def preset(name, make=torchvision.models.get_model, side=224):
    with torch.device("meta"):
        model = make(name).eval()
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            model(torch.empty(1, 3, side, side))
    return {
        "side": side,
        "params": sum(p.numel() for p in model.parameters()),
        "flops": counter.get_total_flops(),
        "drops": [m.p for m in model.modules() if isinstance(m, (torch.nn.Dropout, StochasticDepth))],
        "keys": {k: list(v.shape) for k, v in named_state(model, "").items()},
    }
