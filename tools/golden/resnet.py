"""ResNet fixtures, from torchvision's and transformers' own classes in float64: see common.py, and

training/schedule.json           learning rates of a linear warm-up followed by a cosine
images/preprocess.safetensors    small images before and after torchvision's evaluation transform
images/cmyk.jpg, .safetensors    a JPEG in four inks, and PIL's pixels of it
"""

import io
import json
import math
from dataclasses import dataclass

import numpy as np
import PIL
import torch
import torchvision
import transformers
from PIL import Image
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LinearLR, SequentialLR
from torchvision.models.resnet import BasicBlock, Bottleneck
from torchvision.transforms import functional as TF
from torchvision.transforms._presets import ImageClassification
from torchvision.transforms.functional import InterpolationMode

from common import VERSIONS, case_files, preset

BLOCKS = {"basic": BasicBlock, "bottleneck": Bottleneck}
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

    def zoo(self):
        """The zoo's `ResNetConfig`."""
        expansion = BLOCKS[self.block].expansion
        return {
            "layer_type": self.block,
            "depths": self.layers,
            "embedding_size": self.width,
            "hidden_sizes": [(self.width << i) * expansion for i in range(len(self.layers))],
            "groups": self.groups,
            "width_per_group": self.width_per_group,
            "stem": self.stem,
            "num_channels": self.in_channels,
            "num_classes": self.num_classes,
        }


@dataclass(frozen=True)
class Case:
    name: str
    seed: int
    config: Config
    input: tuple[int, int, int, int]
    # More than a few values per channel in every batch norm, or training amplifies rounding errors.
    steps_batch: tuple[int, int, int, int] | None = None  # shape of one batch; None: no steps file
    # Parts that lose most digits of f32.
    f64_only: tuple[str, ...] = ()


CASES = [
    Case("basic_imagenet", 1, Config("basic", (2, 1, 1, 1), width=2, num_classes=5), (2, 3, 33, 37)),
    Case(
        "bottleneck_imagenet",
        2,
        Config("bottleneck", (1, 2, 1), width=2, num_classes=7),
        (3, 3, 32, 30),
        steps_batch=(6, 3, 10, 10),
        # Gradients that nearly cancel, which AdamW makes as large as others; unclipped SGD runs away.
        f64_only=("adamw", "sgd"),
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
    Case(
        "one_pixel",
        6,
        Config("basic", (1, 1, 1), width=4, num_classes=3, stem="cifar"),
        (2, 3, 1, 1),
        # Two values per channel: gradients are differences of nearly equal numbers.
        f64_only=("train",),
    ),
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


@dataclass(frozen=True)
class TransformersCase:
    """Every switch of transformers' `ResNetConfig` away from its default."""

    name: str
    seed: int
    hidden_act: str
    input: tuple[int, int, int, int]
    steps_batch: None = None

    def config(self):
        return {
            "layer_type": "bottleneck",
            "depths": [1, 2],
            "embedding_size": 6,
            "hidden_sizes": [12, 20],
            "hidden_act": self.hidden_act,
            "downsample_in_first_stage": True,
            "downsample_in_bottleneck": True,
        }


TRANSFORMERS_CASES = [TransformersCase("transformers_gelu", 8, "gelu", (3, 3, 40, 31))]


class Transformers(transformers.ResNetForImageClassification):
    """transformers' ResNet that gives its logits alone."""

    def forward(self, inputs):
        return super().forward(pixel_values=inputs).logits


def transformers_stages(model):
    resnet = model.resnet
    named = {"stem": resnet.embedder, "pool": resnet.pooler}
    for i, stage in enumerate(resnet.encoder.stages):
        named |= {f"layer{i + 1}.{j}": block for j, block in enumerate(stage.layers)}
    return named


def stages(model):
    named = {"stem": model.maxpool, "pool": model.avgpool}
    for i in range(1, 5):
        named |= {f"layer{i}.{j}": block for j, block in getattr(model, f"layer{i}").named_children()}
    return named


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


def cmyk(seed=8):
    """A JPEG as printers have it, and what PIL makes of it."""
    rng = np.random.default_rng(seed)
    pixels = synthetic_image(rng, 24, 16)
    ink = Image.fromarray(pixels).convert("CMYK")
    black = Image.fromarray(np.tile(np.arange(16, dtype=np.uint8) * 8, (24, 1)))
    ink = Image.merge("CMYK", (*ink.split()[:3], black))
    with io.BytesIO() as file:
        ink.save(file, "JPEG", quality=95, subsampling=0)
        jpeg = file.getvalue()
    rgb = np.array(Image.open(io.BytesIO(jpeg)).convert("RGB"))
    return jpeg, ({"pixels": torch.from_numpy(rgb)}, VERSIONS | {"pillow": PIL.__version__})


def files():
    for case in CASES:
        yield from case_files("resnet", case, case.config.zoo(), ResNet(case.config), stages)
    for case in TRANSFORMERS_CASES:
        model = Transformers(transformers.ResNetConfig(**case.config(), num_labels=5))
        config = case.config() | {"stem": "imagenet", "num_classes": 5}
        yield from case_files("resnet", case, config, model, transformers_stages, "transformers")
    yield "training/schedule.json", schedule()
    yield "resnet/presets.json.gz", {name: preset(name) for name in PRESETS}
    yield "images/preprocess.safetensors", preprocess()
    jpeg, expected = cmyk()
    yield "images/cmyk.jpg", jpeg
    yield "images/cmyk.safetensors", expected
