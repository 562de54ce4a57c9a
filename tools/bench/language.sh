#!/usr/bin/env bash
# The zoo beside PyTorch and candle on one machine, in turn: a prompt of 256 tokens, then 64 tokens one by one.
# tools/bench/language.sh MODEL.gguf ZOO PYTHON   prints a line of JSON for each program; candle is built first, and
# PYTHON needs torch, transformers, gguf and accelerate.
set -euo pipefail
model="$1" zoo="$2" python="$3"
here="$(cd "$(dirname "$0")" && pwd)"
(cd "$here/candle" && cargo build -q --release)
candle="${CARGO_TARGET_DIR:-$here/candle/target}/release/candle-language"
prompt="$(printf 'The capital of France is Paris, and %.0s' $(seq 32))"
for _ in 1 2; do
    for blocks in unpacked exact fast; do
        for _ in 1 2 3; do
            # What ends a text would end the measurement: a sampled one goes on longer.
            peak="$( { /usr/bin/time -f %M "$zoo" generate "$model" "$prompt" -n 64 --temperature 1.5 --seed 7 \
                --blocks "$blocks" --json > /tmp/language.json; } 2>&1 | tail -n 1)"
            "$python" -c "
import json, sys
found = json.load(open('/tmp/language.json'))
text = found['texts'][0]
print(json.dumps({'program': 'zoo, $blocks', 'prompt_tokens': len(text['prompt_tokens']), 'new_tokens': len(text['tokens']),
    'prompt_tokens_per_second': found['prompt_tokens_per_second'], 'tokens_per_second': found['tokens_per_second'],
    'peak_mib': int('$peak') >> 10}))"
        done
    done
    "$python" "$here/language.py" "$model" 2>/dev/null
    "$candle" "$model"
done
