#!/usr/bin/env bash
# What one model crate costs another project: crates in the tree and seconds of a cold `cargo build --release`,
# beside Burn alone with the same backend. Leave the machine idle: about ten minutes on two cores.
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# NAME DEPENDENCY: a project of one dependency and the versions of this workspace's lock file.
project() {
    mkdir -p "$work/$1/src"
    printf '[workspace]\n[package]\nname = "%s"\nversion = "0.0.0"\nedition = "2024"\n[dependencies]\n%s\n' \
        "$1" "$2" > "$work/$1/Cargo.toml"
    echo 'fn main() {}' > "$work/$1/src/main.rs"
    cp "$root/Cargo.lock" "$work/$1/"
    (cd "$work/$1" && cargo fetch -q)
}
measure() {
    crates="$(cd "$work/$1" && cargo tree -e normal --prefix none | sed 's/ (\*)$//' | sort -u | wc -l)"
    rm -rf "$work/target"
    start="$(date +%s.%N)"
    (cd "$work/$1" && cargo build -q --release --target-dir "$work/target")
    awk -v n="$1" -v c="$crates" -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "%-8s %4d crates %6.1f s\n", n, c, b - a }'
}
project burn 'burn = { version = "0.21", default-features = false, features = ["std", "flex"] }
burn-flex = { version = "0.21", default-features = false, features = ["std", "simd", "rayon"] }'
project flex "burn-zoo-resnet = { path = \"$root/models/resnet\", features = [\"flex\"] }"
project image "burn-zoo-resnet = { path = \"$root/models/resnet\", features = [\"flex\", \"image\"] }"
for name in burn flex image burn; do
    measure "$name"
done
