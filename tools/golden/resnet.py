"""ResNet fixtures, from torchvision's own classes in float64.

resnet/<case>.safetensors         weights, an eval pass and a train pass, each with gradients
resnet/<case>.steps.safetensors   ten training steps from the case's weights, for three optimizers
resnet/schedule.json              learning rates of a linear warm-up followed by a cosine
resnet/presets.json.gz            parameter count, flops and state_dict shapes of torchvision's presets
resnet/preprocess.safetensors     small images before and after torchvision's evaluation transform
"""

import copy
import json
import math
from dataclasses import asdict, dataclass

import numpy as np
import PIL
import torch
import torch.nn.functional as F
import torchvision
from PIL import Image
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LinearLR, SequentialLR
from torch.utils.flop_counter import FlopCounterMode
from torchvision.models.resnet import BasicBlock, Bottleneck
from torchvision.transforms import functional as TF
from torchvision.transforms._presets import ImageClassification
from torchvision.transforms.functional import InterpolationMode

# Without the build tag (`+cpu`, `+cu132`).
VERSIONS = {m.__name__: m.__version__.split("+")[0] for m in (torch, torchvision)}
BLOCKS = {"basic": BasicBlock, "bottleneck": Bottleneck}
STEPS = 10
LABEL_SMOOTHING = 0.1
OPTIMIZERS = {
    # name: (constructor, norm the gradients are clipped to or None)
    "adamw": (lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=5e-2), None),
    "sgd": (lambda p: torch.optim.SGD(p, lr=5e-2, momentum=0.9, weight_decay=1e-2), None),
    "sgd_clip": (lambda p: torch.optim.SGD(p, lr=5e-2, momentum=0.9, nesterov=True), 0.5),
}
PRESETS = [
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnet152",
    "resnext50_32x4d",
    "resnext101_32x8d",
    "resnext101_64x4d",
    "wide_resnet50_2",
    "wide_resnet101_2",
]


@dataclass(frozen=True)
class Config:
    block: str
    layers: tuple[int, ...]
    width: int
    num_classes: int
    groups: int = 1
    width_per_group: int = 64
    stem: str = "imagenet"
    in_channels: int = 3


@dataclass(frozen=True)
class Case:
    name: str
    seed: int
    config: Config
    input: tuple[int, int, int, int]
    # More than a few values per channel in every batch norm, or training amplifies rounding errors.
    steps_batch: tuple[int, int, int, int] | None = None  # shape of one batch; None: no steps file


CASES = [
    Case("basic_imagenet", 1, Config("basic", (2, 1, 1, 1), width=2, num_classes=5), (2, 3, 33, 37)),
    Case(
        "bottleneck_imagenet",
        2,
        Config("bottleneck", (1, 2, 1), width=2, num_classes=7),
        (3, 3, 32, 30),
        steps_batch=(6, 3, 10, 10),
    ),
    Case(
        "resnext",
        3,
        Config("bottleneck", (1, 1, 1), width=4, num_classes=5, groups=2, width_per_group=32),
        (2, 3, 24, 24),
    ),
    Case(
        "wide",
        4,
        Config("bottleneck", (1, 1, 1), width=2, num_classes=5, width_per_group=128),
        (2, 3, 24, 24),
    ),
    Case(
        "basic_cifar",
        5,
        Config("basic", (2, 1, 1), width=4, num_classes=10, stem="cifar", in_channels=1),
        (4, 1, 9, 11),
        steps_batch=(4, 1, 9, 11),
    ),
    Case("one_pixel", 6, Config("basic", (1, 1, 1), width=4, num_classes=3, stem="cifar"), (2, 3, 1, 1)),
]


class ResNet(torchvision.models.ResNet):
    """torchvision's ResNet with a choice of width, stem, input channels and three or four stages."""

    def __init__(self, config):
        block, stages = BLOCKS[config.block], len(config.layers)
        with torch.device("meta"):  # full width; every module that has parameters is replaced below
            super().__init__(
                block,
                [*config.layers, 1][:4],
                groups=config.groups,
                width_per_group=config.width_per_group,
            )
        width = self.inplanes = config.width
        if config.stem == "imagenet":
            self.conv1 = nn.Conv2d(config.in_channels, width, 7, stride=2, padding=3, bias=False)
        else:
            self.conv1 = nn.Conv2d(config.in_channels, width, 3, stride=1, padding=1, bias=False)
            self.maxpool = nn.Identity()
        self.bn1 = self._norm_layer(width)
        for i, blocks in enumerate(config.layers):
            layer = self._make_layer(block, width << i, blocks, stride=1 if i == 0 else 2)
            setattr(self, f"layer{i + 1}", layer)
        if stages == 3:
            self.layer4 = nn.Identity()
        self.fc = nn.Linear((width << stages - 1) * block.expansion, config.num_classes)


def randn(rng, *shape):
    return torch.from_numpy(rng.standard_normal(shape))


def build(config, rng):
    """A float64 model with every parameter and running statistic random, activations O(1)."""
    model = ResNet(config).double()
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
    return {prefix + k: p.grad.clone() for k, p in model.named_parameters()}


def eval_pass(model, inputs, grad_output):
    model = copy.deepcopy(model).eval()
    stages = {"stem": model.maxpool, "pool": model.avgpool}
    for i in range(1, 5):
        stages |= {f"layer{i}.{j}": block for j, block in getattr(model, f"layer{i}").named_children()}

    out = {}

    def record(name):
        def hook(_module, _args, output):
            value = output.detach().clone()
            out[f"eval.stage.{name}"] = value.flatten(1) if name == "pool" else value

        return hook

    for name, module in stages.items():
        module.register_forward_hook(record(name))
    inputs = inputs.clone().requires_grad_()
    logits = model(inputs)
    (logits * grad_output).sum().backward()
    out |= {"eval.logits": logits, "eval.grad.input": inputs.grad}
    return out | named_grads(model, "eval.grad.")


def train_pass(model, inputs, labels):
    model = copy.deepcopy(model).train()
    logits = model(inputs)
    loss = F.cross_entropy(logits, labels, label_smoothing=LABEL_SMOOTHING)
    loss.backward()
    out = {"train.logits": logits, "train.loss": loss.reshape(1)}
    stats = {k: v for k, v in named_state(model, "train.stats.").items() if ".running_" in k}
    return out | named_grads(model, "train.grad.") | stats


def train_steps(model, inputs, labels, optimizer, clip):
    """The losses before each step, and the model after the last."""
    model = copy.deepcopy(model).train()
    optimizer = optimizer(model.parameters())
    losses = []
    for batch, target in zip(inputs, labels):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch), target)
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses), model


def case_files(case):
    config = case.config
    metadata = VERSIONS | {"config": json.dumps(asdict(config)), "seed": str(case.seed)}
    rng = np.random.default_rng(case.seed)
    model = build(config, rng)
    batch = case.input[0]
    inputs = randn(rng, *case.input)
    labels = torch.from_numpy(rng.integers(0, config.num_classes, batch))
    grad_output = randn(rng, batch, config.num_classes)
    tensors = named_state(model, "model.")
    tensors |= {"input": inputs, "labels": labels, "grad_output": grad_output}
    tensors |= eval_pass(model, inputs, grad_output)
    dead = [k for k, v in tensors.items() if not v.any()]
    assert not dead, f"{case.name}: all zero, try another seed: {dead}"
    tensors |= train_pass(model, inputs, labels)
    yield f"resnet/{case.name}.safetensors", (tensors, metadata)

    if case.steps_batch is None:
        return
    inputs = randn(rng, STEPS, *case.steps_batch)
    labels = torch.from_numpy(rng.integers(0, config.num_classes, (STEPS, case.steps_batch[0])))
    tensors = {"batch.inputs": inputs, "batch.labels": labels}
    for name, (optimizer, clip) in OPTIMIZERS.items():
        losses, trained = train_steps(model, inputs, labels, optimizer, clip)
        tensors |= {f"{name}.losses": losses} | named_state(trained, f"{name}.model.")
    yield f"resnet/{case.name}.steps.safetensors", (tensors, metadata)


def schedule(base_lr=0.1, warmup=5, total=20):
    def factor(step):
        if step < warmup:
            return (step + 1) / warmup
        return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))

    def run(scheduler):
        optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=base_lr)
        scheduler = scheduler(optimizer)
        lrs = []
        for _ in range(total):
            lrs.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
        return lrs

    def sequential(optimizer):
        linear = LinearLR(optimizer, start_factor=1 / warmup, total_iters=warmup - 1)
        cosine = CosineAnnealingLR(optimizer, T_max=total - warmup)
        return SequentialLR(optimizer, [linear, cosine], milestones=[warmup])

    # torch's own schedulers update the rate in place and so carry rounding along; they only confirm.
    lrs = run(lambda optimizer: LambdaLR(optimizer, factor))
    np.testing.assert_allclose(run(sequential), lrs, rtol=1e-12)
    return {"base_lr": base_lr, "warmup_steps": warmup, "total_steps": total, "min_lr": 0.0, "lrs": lrs}


def preset(name):
    with torch.device("meta"):
        model = torchvision.models.get_model(name).eval()
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            model(torch.empty(1, 3, 224, 224))
    return {
        "params": sum(p.numel() for p in model.parameters()),
        "flops": counter.get_total_flops(),
        "keys": {k: list(v.shape) for k, v in named_state(model, "").items()},
    }


def synthetic_image(rng, height, width):
    """uint8 [H, W, 3]: a different slope per channel, plus noise."""
    y, x = np.mgrid[0:height, 0:width]
    down, right = 200 * y // (height - 1), 200 * x // (width - 1)
    image = np.stack([down, right, 200 - (down + right) // 2], axis=-1)
    image = image + rng.integers(0, 56, image.shape)
    return image.astype(np.uint8)


def preprocess(seed=7, resize=32, crop=28):
    rng = np.random.default_rng(seed)
    transform = ImageClassification(crop_size=crop, resize_size=resize)
    tensors = {}
    for i, (height, width) in enumerate([(37, 53), (80, 64)]):
        pixels = synthetic_image(rng, height, width)
        image = Image.fromarray(pixels)
        tensors[f"image.{i}"] = torch.from_numpy(pixels)
        for name, mode in [
            ("resized", InterpolationMode.BILINEAR),
            ("resized_bicubic", InterpolationMode.BICUBIC),
        ]:
            resized = TF.resize(image, [resize], interpolation=mode)
            tensors[f"{name}.{i}"] = torch.from_numpy(np.array(resized))
        tensors[f"pixel_values.{i}"] = transform(image)
    config = {"resize": resize, "crop": crop, "mean": transform.mean, "std": transform.std}
    metadata = VERSIONS | {"pillow": PIL.__version__, "config": json.dumps(config), "seed": str(seed)}
    return tensors, metadata


def files():
    for case in CASES:
        yield from case_files(case)
    yield "resnet/schedule.json", schedule()
    yield "resnet/presets.json.gz", {name: preset(name) for name in PRESETS}
    yield "resnet/preprocess.safetensors", preprocess()
