#!/usr/bin/env bash
# All tests, in the one optimised profile that the binary uses too: Rust, documents, then the Python package.
set -euo pipefail
cd "$(dirname "$0")"
cargo test --release --workspace
RUSTDOCFLAGS="-D warnings" cargo doc --release --no-deps --workspace --quiet
bash python/test.sh
