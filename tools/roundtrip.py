"""Upstream → zoo → upstream: that Python loads what the zoo writes, number for number.

    cargo build --release -p burn-zoo-cli
    pip install -r tools/golden/requirements.txt
    python tools/roundtrip.py --zoo target/release/zoo

For every family and upstream a network with random weights and statistics is saved as upstream saves
it, written by `zoo export`, loaded by upstream's own loader, and compared: keys, every number, and the
logits of a random image. The last step goes back in through `zoo forward`. Language models are also trained
on for a step, so that their `config.json` is the zoo's own, and must give Python what the run gives. Prints a
table; exit code 1 if anything differs.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import safetensors.torch
import timm
import torch
import torchvision
import transformers
from efficientnet_pytorch import EfficientNet as PortedEfficientNet


def randomise(model):
    for key, value in model.state_dict().items():
        if value.is_floating_point():
            if key.endswith("running_var"):
                value.copy_(torch.rand_like(value) + 0.5)
            else:
                value.copy_(torch.randn_like(value) * 0.05 + (1 if value.ndim == 1 else 0) * 0.5)
    return model.eval()


def numbers(model):
    """What counts: batch counters are not part of any model."""
    return {k: v for k, v in model.state_dict().items() if not k.endswith("num_batches_tracked")}


def torchvision_model(name, **options):
    return torchvision.models.get_model(name, weights=None, **options)


def load_torchvision(name, folder, **options):
    model = torchvision_model(name, **options)
    result = model.load_state_dict(safetensors.torch.load_file(folder / "model.safetensors"), strict=True)
    return model, result.missing_keys, result.unexpected_keys


def load_timm(folder, **_):
    # A missing or unexpected key raises.
    return timm.create_model(f"local-dir:{folder}", pretrained=True), [], []


def load_transformers(folder, cls, **_):
    model, info = cls.from_pretrained(folder, output_loading_info=True)
    return model, info["missing_keys"], info["unexpected_keys"]


def load_port(folder, name, **_):
    model = PortedEfficientNet.from_name(name)
    result = model.load_state_dict(safetensors.torch.load_file(folder / "model.safetensors"), strict=True)
    return model, result.missing_keys, result.unexpected_keys


def logits(model, image):
    with torch.no_grad():
        out = model(image)
    return out.logits if hasattr(out, "logits") else out


# Preset (None: a folder says what it is), source, upstream's maker, target, loader, side of the image.
def cases():
    resnet = transformers.ResNetConfig(depths=[1, 2, 1, 1], hidden_sizes=[64, 128, 256, 512], num_labels=7)
    hf = transformers.ResNetForImageClassification
    tv, tm = torchvision_model, timm.create_model
    for name in ["resnet18", "resnet50", "resnext50_32x4d", "wide_resnet50_2"]:
        yield name, "torchvision", lambda n=name: tv(n), "torchvision", lambda f, n=name: load_torchvision(n, f), 96
    yield "resnet18", "torchvision", lambda: tv("resnet18", num_classes=5), "timm", load_timm, 96
    yield "resnet50", "torchvision", lambda: tv("resnet50"), "transformers", lambda f: load_transformers(f, hf), 96
    yield "resnext50_32x4d", "timm", lambda: tm("resnext50_32x4d"), "timm", load_timm, 96
    yield None, "transformers", lambda: hf(resnet), "transformers", lambda f: load_transformers(f, hf), 96
    for name in ["mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small"]:
        yield name, "torchvision", lambda n=name: tv(n), "torchvision", lambda f, n=name: load_torchvision(n, f), 96
    yield "mobilenet_v2", "torchvision", lambda: tv("mobilenet_v2"), "timm", load_timm, 96
    for name in ["mobilenetv2_100", "mobilenetv3_large_100", "mobilenetv3_small_100"]:
        yield name, "timm", lambda n=name: tm(n), "timm", load_timm, 96
    for name in ["efficientnet_b0", "efficientnet_b5", "efficientnet_v2_s"]:
        yield name, "torchvision", lambda n=name: tv(n), "torchvision", lambda f, n=name: load_torchvision(n, f), 96
    for name in ["tf_efficientnet_b1", "tf_efficientnet_lite0", "tf_efficientnetv2_s"]:
        yield name, "timm", lambda n=name: tm(n), "timm", load_timm, 96
    port = lambda: PortedEfficientNet.from_name("efficientnet-b0")
    # The port pads for images of 224 pixels.
    yield "tf_efficientnet_b0", "efficientnet_pytorch", port, "timm", load_timm, 224
    back = lambda f: load_port(f, "efficientnet-b0")
    yield "tf_efficientnet_b0", "efficientnet_pytorch", port, "efficientnet_pytorch", back, 224


def run(zoo, *args):
    done = subprocess.run([zoo, *map(str, args)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())


def zoo_logits(zoo, folder, image, work):
    """The exported folder in at the other end."""
    safetensors.torch.save_file({"pixel_values": image}, work / "in.safetensors")
    run(zoo, "forward", "--checkpoint", folder, "--input", work / "in.safetensors", "--output", work / "out.safetensors")
    return safetensors.torch.load_file(work / "out.safetensors")["logits"]


def check(zoo, case, work):
    preset, source, make, target, load, side = case
    torch.manual_seed(0)
    model = randomise(make())
    out = work / "out"
    if preset is None:
        model.save_pretrained(work / "in")
        run(zoo, "export", work / "in", "--out", out, "--to", target)
    else:
        torch.save(model.state_dict(), work / "in.pth")
        run(zoo, "export", preset, "--weights", work / "in.pth", "--out", out, "--to", target)
    loaded, missing, unexpected = load(out)
    loaded = loaded.eval()
    equal = None
    if source == target:
        before, after = numbers(model), numbers(loaded)
        equal = before.keys() == after.keys() and all(torch.equal(before[k], after[k]) for k in before)
    image = torch.randn(2, 3, side, side)
    want, got = logits(model, image), logits(loaded, image)
    scale = want.abs().max()
    off = float((want - got).abs().max() / scale)
    zoo_off = float((want - zoo_logits(zoo, out, image, work)).abs().max() / scale)
    fine = not missing and not unexpected and equal is not False and off < 1e-5 and zoo_off < 1e-5
    name = preset or "a small ResNet"
    same = {None: "–", True: "yes", False: "NO"}[equal]
    row = f"| {name} | {source} | {target} | {len(missing)} | {len(unexpected)} | {same} | {off:.0e} | {zoo_off:.0e} |"
    return fine, row


VOCABULARY = Path(__file__).parent.parent / "tests/golden/tokenizers/fast"


def decoders():
    small = dict(vocab_size=340, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4)
    t = transformers
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 500.0}
    yield "a small GPT-2", t.GPT2Config(vocab_size=340, n_positions=64, n_embd=32, n_layer=2, n_head=4, n_inner=80)
    grouped = dict(small, num_key_value_heads=2, tie_word_embeddings=True, mlp_bias=True, attention_bias=True)
    yield "a small Llama", t.LlamaConfig(**grouped, max_position_embeddings=64, rope_parameters=yarn)
    yield "a small Mistral", t.MistralConfig(**small, num_key_value_heads=2, sliding_window=6)
    windows = dict(use_sliding_window=True, sliding_window=6, max_window_layers=1)
    yield "a small Qwen2", t.Qwen2Config(**small, num_key_value_heads=1, **windows)
    yield "a small Qwen3", t.Qwen3Config(**small, num_key_value_heads=4, head_dim=16)


def encoders():
    t = transformers
    small = dict(vocab_size=340, num_labels=2, pad_token_id=0, classifier_dropout=0.3)
    sizes = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4)
    yield "a small BERT", t.BertConfig(**small, **sizes, hidden_act="relu", max_position_embeddings=64)
    yield "a small RoBERTa", t.RobertaConfig(**dict(small, pad_token_id=1), **sizes, max_position_embeddings=64)
    yield "a small DistilBERT", t.DistilBertConfig(**small, dim=32, hidden_dim=48, n_layers=2, n_heads=4)


def check_trained(zoo, name, config, auto, work):
    """From Python through a step of training and back."""
    torch.manual_seed(0)
    auto.from_config(config).save_pretrained(work / "in")
    for file in VOCABULARY.iterdir():
        (work / "in" / file.name).write_bytes(file.read_bytes())
    decoder = auto is transformers.AutoModelForCausalLM
    data = work / ("data.txt" if decoder else "data.csv")
    rows = [f"In the beginning {i}" + ("." if decoder else f",{'good' if i % 2 else 'bad'}") for i in range(200)]
    data.write_text("\n".join(([] if decoder else ["text,label"]) + rows) + "\n")
    kind = "text-file" if decoder else "labelled-file"
    short = ["--steps", 1, "--batch-size", 2, "--sequence-length", 16, "--progress", "lines"]
    run(zoo, "train", "--model", work / "in", "--dataset", kind, "--data-dir", data, "--out", work / "run", *short)
    run(zoo, "export", work / "run", "--out", work / "out", "--to", "transformers")
    loaded, missing, unexpected = load_transformers(work / "out", auto)
    ids = torch.randint(5, 340, (2, 12))
    with torch.no_grad():
        want = loaded.eval()(input_ids=ids).logits
    safetensors.torch.save_file({"input_ids": ids}, work / "in.safetensors")
    job = ["--input", work / "in.safetensors", "--output", work / "out.safetensors"]
    run(zoo, "forward", "--checkpoint", work / "run", *job)
    got = safetensors.torch.load_file(work / "out.safetensors")["logits"]
    off = float((want - got).abs().max() / want.abs().max())
    config = transformers.AutoConfig.from_pretrained(work / "out")
    named = decoder or config.id2label == {0: "bad", 1: "good"}
    fine = not missing and not unexpected and off < 1e-5 and named
    return fine, f"| {name}, trained on | transformers | transformers | {len(missing)} | {len(unexpected)} | – | {off:.0e} | – |"


def jobs(zoo):
    for case in cases():
        yield (case[0], case[1], case[3]), lambda work, case=case: check(zoo, case, work)
    t = transformers
    kinds = [(decoders, t.AutoModelForCausalLM), (encoders, t.AutoModelForSequenceClassification)]
    for configs, auto in kinds:
        for name, config in configs():
            job = lambda work, n=name, c=config, a=auto: check_trained(zoo, n, c, a, work)
            yield (name, "transformers", "transformers"), job


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--zoo", type=Path, required=True, help="the zoo binary")
    args = parser.parse_args()
    zoo = args.zoo.resolve()
    transformers.utils.logging.disable_progress_bar()
    print("| network | from | to | missing keys | unexpected keys | bit-equal | logits off, upstream | logits off, zoo |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    failed = 0
    for names, job in jobs(zoo):
        with tempfile.TemporaryDirectory() as work:
            try:
                fine, row = job(Path(work))
            except Exception as error:  # the table goes on
                fine, row = False, f"| {' | '.join(map(str, names))} | {type(error).__name__}: {error} |"
        failed += not fine
        print(row, flush=True)
    if failed:
        print(f"{failed} failed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
