"""EfficientNet fixtures, from torchvision's, timm's and efficientnet_pytorch's own classes in float64:
see common.py. A case's weights have its upstream's names."""

from dataclasses import dataclass
from functools import partial

import efficientnet_pytorch
import timm
from efficientnet_pytorch.utils import BlockArgs, GlobalParams
from timm.layers import get_act_layer
from timm.models import efficientnet as timm_efficientnet
from timm.models._efficientnet_builder import decode_arch_def
from torch import nn
from torchvision.models import efficientnet as torchvision_efficientnet
from torchvision.models.efficientnet import FusedMBConvConfig, MBConvConfig

from common import Before, case_files, preset

TORCHVISION = [f"efficientnet_b{i}" for i in range(8)] + [f"efficientnet_v2_{s}" for s in "sml"]
TIMM = (
    [f"tf_efficientnet_b{i}" for i in range(8)]
    + [f"tf_efficientnet_lite{i}" for i in range(5)]
    + [f"tf_efficientnetv2_{s}" for s in "sml"]
)


@dataclass(frozen=True)
class Case:
    name: str
    seed: int
    upstream: str
    # Fused, expansion ratio, kernel, stride, output channels, layers.
    stages: tuple[tuple[bool, int, int, int, int, int], ...]
    num_classes: int
    input: tuple[int, int, int, int]
    stem_channels: int = 8
    last_channel: int = 20
    hidden_act: str = "silu"
    use_se: bool = True
    padding: str = "half"
    batch_norm_eps: float = 1e-5
    batch_norm_momentum: float = 0.1
    steps_batch: tuple[int, int, int, int] | None = None

    def config(self):
        keys = ("fused", "expand_ratio", "kernel_size", "stride", "out_channels", "num_layers")
        return {
            "stem_channels": self.stem_channels,
            "stages": [dict(zip(keys, stage)) for stage in self.stages],
            "last_channel": self.last_channel,
            "hidden_act": self.hidden_act,
            "use_se": self.use_se,
            "padding": self.padding,
            "batch_norm_eps": self.batch_norm_eps,
            "batch_norm_momentum": self.batch_norm_momentum,
            "num_channels": 3,
            "num_classes": self.num_classes,
        }


ORIGINAL = {"padding": "same", "batch_norm_eps": 1e-3, "batch_norm_momentum": 0.01}

CASES = [
    # Without and with expansion, both kernels, a stride, a residual connection.
    Case(
        "torchvision",
        51,
        "torchvision",
        ((False, 1, 3, 1, 8, 1), (False, 4, 5, 2, 16, 2)),
        5,
        (3, 3, 19, 22),
    ),
    # Fused blocks without and with expansion, each with and without a residual connection.
    Case(
        "torchvision_v2",
        152,
        "torchvision",
        ((True, 1, 3, 1, 8, 2), (True, 4, 3, 2, 16, 2), (False, 4, 3, 2, 24, 1)),
        4,
        (2, 3, 24, 21),
        batch_norm_eps=1e-3,
        steps_batch=(4, 3, 16, 16),
    ),
    # TensorFlow's padding on even and odd sides with strides.
    Case(
        "timm",
        53,
        "timm",
        ((False, 1, 3, 1, 8, 1), (False, 4, 5, 2, 16, 2), (False, 4, 3, 2, 24, 1)),
        6,
        (2, 3, 26, 33),
        **ORIGINAL,
    ),
    Case(
        "timm_v2",
        154,
        "timm",
        ((True, 1, 3, 1, 8, 1), (True, 4, 3, 2, 16, 1), (False, 4, 3, 1, 16, 1)),
        3,
        (3, 3, 18, 15),
        **ORIGINAL,
    ),
    Case(
        "lite",
        55,
        "timm",
        ((False, 1, 3, 1, 8, 1), (False, 6, 5, 2, 16, 2)),
        4,
        (3, 3, 20, 27),
        hidden_act="relu6",
        use_se=False,
        **ORIGINAL,
    ),
    # That port adds no input in the first block of a stage, whatever its sizes: in its own networks
    # those sizes differ anyway, and so they do here.
    Case(
        "efficientnet_pytorch",
        56,
        "efficientnet_pytorch",
        ((False, 1, 3, 1, 16, 1), (False, 4, 5, 2, 24, 2)),
        5,
        (3, 3, 28, 25),
        **ORIGINAL,
    ),
]


def torchvision_model(case):
    channels, settings = case.stem_channels, []
    for fused, ratio, kernel, stride, out, layers in case.stages:
        cls = FusedMBConvConfig if fused else MBConvConfig
        settings.append(cls(ratio, kernel, stride, channels, out, layers))
        channels = out
    norm = partial(nn.BatchNorm2d, eps=case.batch_norm_eps, momentum=case.batch_norm_momentum)
    return torchvision_efficientnet.EfficientNet(
        settings,
        dropout=0.0,
        stochastic_depth_prob=0.0,
        num_classes=case.num_classes,
        norm_layer=norm,
        last_channel=case.last_channel,
    )


def timm_model(case):
    """The string that timm's own networks are written as."""
    rows = []
    for fused, ratio, kernel, stride, out, layers in case.stages:
        kind = ("er" if ratio > 1 else "cn") if fused else ("ir" if ratio > 1 else "ds")
        se = "_se0.25" if case.use_se and not fused else ""
        skip = "_skip" if kind == "cn" else ""
        rows.append([f"{kind}_r{layers}_k{kernel}_s{stride}_e{ratio}_c{out}{se}{skip}"])
    norm = partial(nn.BatchNorm2d, eps=case.batch_norm_eps, momentum=case.batch_norm_momentum)
    return timm_efficientnet.EfficientNet(
        decode_arch_def(rows),
        num_classes=case.num_classes,
        num_features=case.last_channel,
        stem_size=case.stem_channels,
        pad_type="same",
        act_layer=get_act_layer(case.hidden_act),
        norm_layer=norm,
    )


def port_model(case):
    channels, blocks = case.stem_channels, []
    for _, ratio, kernel, stride, out, layers in case.stages:
        blocks.append(
            BlockArgs(
                num_repeat=layers,
                kernel_size=kernel,
                stride=[stride],
                expand_ratio=ratio,
                input_filters=channels,
                output_filters=out,
                se_ratio=0.25,
                id_skip=True,
            )
        )
        channels = out
    params = GlobalParams(
        width_coefficient=case.stem_channels / 32,
        depth_coefficient=1.0,
        image_size=None,
        dropout_rate=0.0,
        num_classes=case.num_classes,
        batch_norm_momentum=1 - case.batch_norm_momentum,
        batch_norm_epsilon=case.batch_norm_eps,
        drop_connect_rate=0.0,
        depth_divisor=8,
        min_depth=None,
        include_top=True,
    )
    # Its stem and head are 32 and 1280 channels times the width; so are the blocks.
    width = params.width_coefficient
    scaled = [
        b._replace(input_filters=int(b.input_filters / width), output_filters=int(b.output_filters / width))
        for b in blocks
    ]
    return efficientnet_pytorch.EfficientNet(scaled, params)


def modules(upstream, model):
    """The modules whose outputs are recorded, by the stage's name here."""
    if upstream == "torchvision":
        last = len(model.features) - 1
        stages = {"features.0": model.features[0], f"features.{last}": model.features[last]}
        for i in range(1, last):
            stages |= {f"features.{i}.{j}": block for j, block in model.features[i].named_children()}
        return stages | {"pool": model.avgpool}
    if upstream == "timm":
        stages = {"features.0": model.bn1, f"features.{len(model.blocks) + 1}": model.bn2}
        for i, stage in model.blocks.named_children():
            stages |= {f"features.{int(i) + 1}.{j}": block for j, block in stage.named_children()}
        return stages | {"pool": model.global_pool}
    places, flat = [], iter(model._blocks)
    for i, args in enumerate(model._blocks_args):
        places += [(f"features.{i + 1}.{j}", next(flat)) for j in range(args.num_repeat)]
    ends = {"features.0": Before(model._blocks[0]), f"features.{i + 2}": Before(model._avg_pooling)}
    return dict(places) | ends | {"pool": model._avg_pooling}


def files():
    makers = {
        "torchvision": torchvision_model,
        "timm": timm_model,
        "efficientnet_pytorch": port_model,
    }
    for case in CASES:
        model = makers[case.upstream](case)
        config = case.config()
        if case.upstream == "efficientnet_pytorch":
            config["last_channel"] = model._conv_head.out_channels
        stages = partial(modules, case.upstream)
        yield from case_files("efficientnet", case, config, model, stages, case.upstream)
    presets = {name: preset(name, side=64) for name in TORCHVISION}
    presets |= {name: preset(name, timm.create_model, side=64) for name in TIMM}
    yield "efficientnet/presets.json.gz", presets
