#!/usr/bin/env bash
# All tests of the workspace, in the one optimised profile that the binary uses too.
set -euo pipefail
cd "$(dirname "$0")"
cargo test --release --workspace
