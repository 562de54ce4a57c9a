"""MobileNet fixtures, from torchvision's and timm's own classes in float64: see common.py."""

from dataclasses import dataclass
from functools import partial

import timm
from timm.layers import get_act_layer
from timm.models.efficientnet import EfficientNet
from timm.models.mobilenetv3 import MobileNetV3
from timm.models._efficientnet_blocks import SqueezeExcite
from timm.models._efficientnet_builder import decode_arch_def, round_channels
from torch import nn
from torchvision.models.mobilenetv2 import InvertedResidual as InvertedResidualV2
from torchvision.models.mobilenetv3 import InvertedResidual as InvertedResidualV3
from torchvision.models.mobilenetv3 import InvertedResidualConfig
from torchvision.ops import Conv2dNormActivation

from common import case_files, preset

TORCHVISION = ["mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small"]
TIMM = ["mobilenetv2_100", "mobilenetv3_large_100", "mobilenetv3_small_100"]


@dataclass(frozen=True)
class Case:
    name: str
    seed: int
    version: str
    # Kernel, expanded and output channels, squeeze and excitation, activation, stride.
    blocks: tuple[tuple[int, int, int, bool, str, int], ...]
    num_classes: int
    input: tuple[int, int, int, int]
    num_channels: int = 3
    stem_channels: int = 8
    last_conv_channels: int = 20
    last_channel: int | None = None
    steps_batch: tuple[int, int, int, int] | None = None

    def config(self):
        keys = ("kernel_size", "expanded_channels", "out_channels", "use_se", "activation", "stride")
        return {
            "version": self.version,
            "stem_channels": self.stem_channels,
            "blocks": [dict(zip(keys, block)) for block in self.blocks],
            "last_conv_channels": self.last_conv_channels,
            "last_channel": self.last_channel,
            "batch_norm_eps": 1e-5 if self.version == "v2" else 1e-3,
            "batch_norm_momentum": 0.1 if self.version == "v2" else 0.01,
            "num_channels": self.num_channels,
            "num_classes": self.num_classes,
        }


CASES = [
    # Without and with expansion, a stride, and a residual connection.
    Case(
        "v2",
        41,
        "v2",
        ((3, 8, 6, False, "relu6", 1), (3, 18, 10, False, "relu6", 2), (3, 20, 10, False, "relu6", 1)),
        5,
        (3, 3, 17, 21),
        steps_batch=(5, 3, 12, 12),
    ),
    # Squeeze and excitation with and without expansion, both activations, a 5x5 kernel.
    Case(
        "v3",
        42,
        "v3",
        (
            (3, 8, 8, True, "relu", 2),
            (3, 12, 9, False, "relu", 1),
            (5, 40, 9, True, "hardswish", 1),
            (5, 20, 12, True, "hardswish", 2),
        ),
        7,
        (2, 1, 29, 26),
        num_channels=1,
        last_channel=11,
        steps_batch=(6, 1, 14, 14),
    ),
]


# In timm's names: the same networks but for sizes that its strings cannot say (an expansion that is no
# multiple of the input, a stem that is no multiple of 8).
TIMM_CASES = [
    Case(
        "timm_v2",
        43,
        "v2",
        ((3, 8, 8, False, "relu6", 1), (3, 32, 16, False, "relu6", 2), (3, 64, 16, False, "relu6", 1)),
        4,
        (3, 3, 18, 21),
        last_conv_channels=24,
    ),
    Case(
        "timm_v3",
        44,
        "v3",
        (
            (3, 8, 8, True, "relu", 2),
            (5, 32, 16, False, "hardswish", 1),
            (3, 32, 16, True, "hardswish", 1),
        ),
        5,
        (3, 3, 22, 17),
        last_conv_channels=24,
        last_channel=12,
    ),
]


def timm_model(case):
    """The strings that timm's own networks are written as; a stage for each width."""
    rows, channels = [], case.stem_channels
    for kernel, expanded, out, use_se, activation, stride in case.blocks:
        kind = "ir" if expanded != channels else "ds"
        end = ("_se0.25" if use_se else "") + ("_nre" if activation == "relu" else "")
        row = f"{kind}_r1_k{kernel}_s{stride}_e{expanded // channels}_c{out}{end}"
        if out == channels and rows:
            rows[-1].append(row)
        else:
            rows.append([row])
        channels = out
    config = case.config()
    norm = partial(
        nn.BatchNorm2d, eps=config["batch_norm_eps"], momentum=config["batch_norm_momentum"]
    )
    common = dict(num_classes=case.num_classes, stem_size=case.stem_channels, norm_layer=norm)
    if case.version == "v2":
        return EfficientNet(
            decode_arch_def(rows),
            num_features=case.last_conv_channels,
            act_layer=get_act_layer("relu6"),
            **common,
        )
    rows.append([f"cn_r1_k1_s1_c{case.last_conv_channels}"])
    se = partial(
        SqueezeExcite, gate_layer="hard_sigmoid", force_act_layer=nn.ReLU, rd_round_fn=round_channels
    )
    return MobileNetV3(
        decode_arch_def(rows),
        num_features=case.last_channel,
        act_layer=get_act_layer("hard_swish"),
        se_layer=se,
        **common,
    )


def timm_stages(model):
    blocks = [block for stage in model.blocks for block in stage]
    if isinstance(model, EfficientNet):
        blocks.append(model.bn2)
    named = {f"features.{i}": block for i, block in enumerate([model.bn1, *blocks])}
    return named | {"pool": model.global_pool}


class Block(InvertedResidualConfig):
    """torchvision's, without rounding its channels to multiples of 8."""

    @staticmethod
    def adjust_channels(channels, _width_mult):
        return channels


class MobileNet(nn.Module):
    """torchvision's blocks in torchvision's arrangement and names, with a choice of every size."""

    def __init__(self, config):
        super().__init__()
        v2 = config["version"] == "v2"
        act = nn.ReLU6 if v2 else nn.Hardswish
        norm = partial(
            nn.BatchNorm2d, eps=config["batch_norm_eps"], momentum=config["batch_norm_momentum"]
        )
        stem = config["stem_channels"]
        conv = partial(Conv2dNormActivation, norm_layer=norm, activation_layer=act)
        layers = [conv(config["num_channels"], stem, kernel_size=3, stride=2)]
        channels = stem
        for block in config["blocks"]:
            kernel, expanded, out, use_se, activation, stride = block.values()
            if v2:
                layers.append(InvertedResidualV2(channels, out, stride, expanded / channels, norm))
            else:
                name = {"relu": "RE", "hardswish": "HS"}[activation]
                cnf = Block(channels, kernel, expanded, out, use_se, name, stride, 1, 1.0)
                layers.append(InvertedResidualV3(cnf, norm))
            channels = out
        layers.append(conv(channels, config["last_conv_channels"], kernel_size=1))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        last, classes = config["last_conv_channels"], config["num_classes"]
        if v2:
            self.classifier = nn.Sequential(nn.Identity(), nn.Linear(last, classes))
        else:
            hidden = config["last_channel"]
            self.classifier = nn.Sequential(
                nn.Linear(last, hidden), nn.Hardswish(), nn.Identity(), nn.Linear(hidden, classes)
            )

    def forward(self, x):
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def exact_hardsigmoid(model):
    """torch's own derivative of hard-sigmoid is 1/6 rounded to float32, in float64 too."""
    for module in model.modules():
        for name, child in module.named_children():
            if isinstance(child, nn.Hardsigmoid):
                setattr(module, name, HardSigmoid())
    return model


class HardSigmoid(nn.Module):
    def forward(self, x):
        return nn.functional.relu6(x + 3) / 6


def stages(model):
    return {f"features.{i}": m for i, m in model.features.named_children()} | {"pool": model.avgpool}


def files():
    for case in CASES:
        config = case.config()
        yield from case_files("mobilenet", case, config, exact_hardsigmoid(MobileNet(config)), stages)
    for case in TIMM_CASES:
        model = exact_hardsigmoid(timm_model(case))
        yield from case_files("mobilenet", case, case.config(), model, timm_stages, "timm")
    presets = {name: preset(name) for name in TORCHVISION}
    yield "mobilenet/presets.json.gz", presets | {name: preset(name, timm.create_model) for name in TIMM}
