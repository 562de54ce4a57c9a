"""Regenerate the reference fixtures under tests/golden/.

    pip install -r tools/golden/requirements.txt
    python tools/golden/make.py                # write what changed
    python tools/golden/make.py --check        # write nothing, exit 1 if anything would change
    python tools/golden/make.py --out DIR      # somewhere else than tests/golden

Prints one line per file: `same`, `changed` or `new`, its size in bytes and its path.

Each family is a module beside this one whose `files()` yields (path, content) pairs, the path being
relative to the output folder. The suffix says what the content is:

    .safetensors      (tensors, metadata): dict of name -> torch tensor, dict of str -> str
    .json, .json.gz   anything json.dumps takes
    anything else     bytes

The bytes are the same on every run. On another CPU or BLAS the last bits of computed tensors may
differ, although the settings below ask for code paths that do not depend on the CPU.
"""

import os

# Before torch is imported: no run-time choice of instruction set in MKL and in torch's own kernels.
os.environ.setdefault("MKL_CBWR", "COMPATIBLE")
os.environ.setdefault("ATEN_CPU_CAPABILITY", "default")

import argparse
import gzip
import io
import json
import pickle
import sys
from pathlib import Path

import safetensors.torch
import torch

import checkpoints
import efficientnet
import forward
import gguf_files
import mobilenet
import ops
import resnet
import text
import tokens

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = [ops, checkpoints, gguf_files, resnet, mobilenet, efficientnet, text, tokens, forward]


def encode_safetensors(tensors, metadata):
    """safetensors bytes with the header keys sorted: the library's metadata order is not fixed."""
    data = safetensors.torch.save({k: t.detach().contiguous().clone() for k, t in tensors.items()}, metadata)
    body = 8 + int.from_bytes(data[:8], "little")
    header = json.dumps(json.loads(data[8:body]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + data[body:]


def encode(path, content):
    if isinstance(content, bytes):
        return content
    if path.endswith(".safetensors"):
        return encode_safetensors(*content)
    if path.endswith(".json"):
        return (json.dumps(content, indent=2) + "\n").encode()
    if path.endswith(".json.gz"):
        return gzip.compress(json.dumps(content, separators=(",", ":")).encode(), mtime=0)
    raise ValueError(f"no encoding for {path}")


def same(path, old, new):
    """Whether a file needs no rewrite. torch's legacy format names storages by their addresses, so
    such a file is compared by what it holds."""
    if old == new or not path.endswith("legacy.pth") or old is None:
        return old == new
    try:
        old, new = (torch.load(io.BytesIO(data), weights_only=True) for data in (old, new))
    except pickle.UnpicklingError:  # the hostile one
        return False
    return equal(old, new)


def equal(a, b):
    if torch.is_tensor(a):
        return torch.is_tensor(b) and a.shape == b.shape and a.stride() == b.stride() and torch.equal(a, b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(equal, a, b))
    return a == b


def main():
    parser = argparse.ArgumentParser(description="Regenerate the reference fixtures.")
    parser.add_argument("--out", type=Path, default=ROOT / "tests" / "golden", help="output folder")
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 on any difference")
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)

    differs = False
    for family in FAMILIES:
        for name, content in family.files():
            data = encode(name, content)
            path = args.out / name
            old = path.read_bytes() if path.exists() else None
            state = "new" if old is None else "same" if same(name, old, data) else "changed"
            print(f"{state:<8}{len(data):>8}  {path}", flush=True)
            if state != "same":
                differs = True
                if not args.check:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(data)
    return 1 if args.check and differs else 0


if __name__ == "__main__":
    sys.exit(main())
