"""A Llama-class model from a GGUF file in PyTorch: prompt and decoded tokens a second, and peak memory.

    python tools/bench/language.py MODEL.gguf [THREADS]

transformers makes f32 numbers of the file's blocks. Prints one line of JSON, as `tools/bench/candle` does.
"""

import json
import resource
import sys
import time
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

path = Path(sys.argv[1])
torch.set_num_threads(int(sys.argv[2]) if len(sys.argv) > 2 else 2)
text = "The capital of France is Paris, and " * 32
tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32).eval()
ids = tokenizer(text, return_tensors="pt").input_ids[:, :256]
new = 64


def run():
    with torch.inference_mode():
        start = time.perf_counter()
        out = model(ids, use_cache=True)
        token = out.logits[:, -1:].argmax(-1)
        first = time.perf_counter()
        for _ in range(new - 1):
            out = model(token, past_key_values=out.past_key_values, use_cache=True)
            token = out.logits[:, -1:].argmax(-1)
        return ids.shape[1] / (first - start), (new - 1) / (time.perf_counter() - first)


run()
runs = sorted(run() for _ in range(3))
print(
    json.dumps(
        {
            "program": f"PyTorch {torch.__version__}, f32",
            "prompt_tokens_per_second": sorted(r[0] for r in runs)[1],
            "tokens_per_second": sorted(r[1] for r in runs)[1],
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        }
    )
)
