"""The jobs of `zoo bench` in PyTorch: prints one line of JSON.

    python tools/bench/pytorch.py JOB [THREADS]

As a PyTorch user would write them: torchvision's networks, `scaled_dot_product_attention`, the fused optimizers of
torch.optim, channels last where that is faster, no compilation.
"""

import json
import math
import resource
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
import torchvision
from formula import numbers, weight, whole
from torch import nn

class Block(nn.Module):
    def __init__(self, heads, size):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.c_attn, self.attn_proj = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.c_fc, self.mlp_proj = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(self, x):
        batch, sequence, size = x.shape
        heads = lambda t: t.view(batch, sequence, self.heads, -1).transpose(1, 2)
        q, k, v = map(heads, self.c_attn(self.ln_1(x)).split(size, dim=2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn_proj(mixed.transpose(1, 2).reshape(batch, sequence, size))
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x))))


class Gpt(nn.Module):
    """The GPT of `zoo bench`, with transformers' names for its weights."""

    NAMES = [("attn_proj", "attn.c_proj"), ("mlp_proj", "mlp.c_proj"), ("c_attn", "attn.c_attn"), ("c_fc", "mlp.c_fc")]

    def __init__(self, layers, heads, size, vocabulary, sequence):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, size), nn.Embedding(sequence, size)
        self.h = nn.ModuleList(Block(heads, size) for _ in range(layers))
        self.ln_f = nn.LayerNorm(size)
        self.lm_head = nn.Linear(size, vocabulary, bias=False)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe.weight[: ids.shape[1]]
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))

    def fill(self):
        for name, parameter in self.named_parameters():
            key = name if name.startswith("lm_head") else f"transformer.{name}"
            for ours, theirs in self.NAMES:
                key = key.replace(f".{ours}.", f".{theirs}.")
            # Conv1D keeps its matrix the other way around.
            turned = parameter.dim() == 2 and ".h." in key
            shape = tuple(parameter.shape)[::-1] if turned else tuple(parameter.shape)
            data = torch.from_numpy(weight(key, shape))
            parameter.data = (data.T if turned else data).contiguous()
        return self


def image_model(name):
    if name == "resnet18_cifar":
        model = torchvision.models.resnet18(num_classes=10)
        model.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
        model.maxpool = nn.Identity()
    elif name == "efficientnet_lite0":
        import timm

        model = timm.create_model("tf_efficientnet_lite0")
    else:
        model = getattr(torchvision.models, name)()
    return fill(model)


def fill(model):
    for key, value in model.state_dict().items():
        if value.is_floating_point():
            value.copy_(torch.from_numpy(weight(key, tuple(value.shape))))
    return model


def tensor(name, shape):
    return torch.from_numpy(numbers(name, math.prod(shape)).reshape(shape))


def inference(f):
    """Times `f`; its result is compared."""

    def run():
        with torch.inference_mode():
            return f()

    values = run().double()
    result = [values.mean().item(), values.square().mean().sqrt().item()]
    return run, lambda: result


def training(model, optimizer, inputs, rows):
    losses = []
    labels = []

    def run():
        logits = model(inputs).reshape(rows, -1)
        if not labels:
            labels.append(torch.from_numpy(whole("labels", rows, logits.shape[1])))
        loss = F.cross_entropy(logits, labels[0])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if len(losses) < 3:
            losses.append(loss.item())

    return run, lambda: losses


def images(name, batch, side, train=False):
    model = image_model(name).to(memory_format=torch.channels_last)
    x = tensor("pixel_values", [batch, 3, side, side]).to(memory_format=torch.channels_last)
    if not train:
        model.eval()
        return inference(lambda: model(x))
    return training(model, torch.optim.SGD(model.parameters(), 1e-2, momentum=0.9, fused=True), x, batch)


def gpt(layers, heads, size, vocabulary, batch, sequence, train=True):
    model = Gpt(layers, heads, size, vocabulary, sequence).fill()
    ids = torch.from_numpy(whole("input_ids", batch * sequence, vocabulary)).reshape(batch, sequence)
    if not train:
        return inference(lambda: model(ids))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=1e-2, fused=True)
    return training(model, optimizer, ids, batch * sequence)


def bert(layers, heads, size, batch, sequence):
    from transformers import BertConfig, BertModel

    config = BertConfig(
        num_hidden_layers=layers, num_attention_heads=heads, hidden_size=size, intermediate_size=4 * size
    )
    model = fill(BertModel(config, add_pooling_layer=False)).eval()
    ids = torch.from_numpy(whole("input_ids", batch * sequence, config.vocab_size)).reshape(batch, sequence)
    return inference(lambda: model(ids).last_hidden_state)


def matmul(size):
    x, w = tensor("x", [size, size]), tensor("w", [size, size])
    return inference(lambda: F.linear(x, w))


def conv(batch, inputs, outputs, side):
    x = tensor("x", [batch, inputs, side, side]).to(memory_format=torch.channels_last)
    w = tensor("w", [outputs, inputs, 3, 3]).to(memory_format=torch.channels_last)
    return inference(lambda: F.conv2d(x, w, padding=1))


def attention(*shape):
    q, k, v = (tensor(name, shape) for name in "qkv")
    return inference(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True))


JOBS = {
    "matmul-1024": lambda: matmul(1024),
    "conv3x3-8x64x56": lambda: conv(8, 64, 64, 56),
    "attention-causal-4x6x256x64": lambda: attention(4, 6, 256, 64),
    "resnet18-infer-b1": lambda: images("resnet18", 1, 224),
    "resnet18-infer-b8": lambda: images("resnet18", 8, 224),
    "resnet18-cifar-train-b16": lambda: images("resnet18_cifar", 16, 32, train=True),
    "gpt-4x128-train-b12": lambda: gpt(4, 4, 128, 65, 12, 64),
    "gpt-6x384-train-b4": lambda: gpt(6, 6, 384, 65, 4, 256),
    "resnet50-infer-b1": lambda: images("resnet50", 1, 224),
    "resnet50-infer-b8": lambda: images("resnet50", 8, 224),
    "mobilenet_v2-infer-b1": lambda: images("mobilenet_v2", 1, 224),
    "mobilenet_v2-infer-b8": lambda: images("mobilenet_v2", 8, 224),
    "efficientnet_lite0-infer-b1": lambda: images("efficientnet_lite0", 1, 224),
    "gpt-6x384-infer-b4": lambda: gpt(6, 6, 384, 65, 4, 256, train=False),
    "gpt2-124m-train-b1x256": lambda: gpt(12, 12, 768, 50257, 1, 256),
    "minilm-l6-infer-b1": lambda: bert(6, 12, 384, 1, 128),
    "minilm-l6-infer-b32": lambda: bert(6, 12, 384, 32, 128),
}


def main():
    job = sys.argv[1]
    threads = int(sys.argv[2]) if len(sys.argv) > 2 else torch.get_num_threads()
    torch.set_num_threads(threads)
    run, result = JOBS[job]()
    for _ in range(3):
        run()
    seconds = []
    while len(seconds) < 5 or (sum(seconds) < 5 and len(seconds) < 1000):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    print(
        json.dumps(
            {
                "job": job,
                "program": f"PyTorch {torch.__version__}",
                "median_ms": float(np.median(seconds)) * 1e3,
                "runs": len(seconds),
                "threads": threads,
                "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                "result": result(),
            }
        )
    )


if __name__ == "__main__":
    main()
