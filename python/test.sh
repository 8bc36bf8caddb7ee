#!/usr/bin/env bash
# Builds the wheel, installs it beside what it is compared with, and runs its tests; then exported models in onnxruntime, and README and
# GUIDE with their Python. Arguments go to pytest, and then nothing else is run.
set -euo pipefail
cd "$(dirname "$0")/.."
bash python/environment.sh
bash python/build.sh
venv=$PWD/target/python
"$venv/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps target/wheels/privfit-*.whl
# Tests compare with the command.
if [ -z "${PRIVFIT_BIN:-}" ]; then
  cargo build --release --quiet --bin privfit
  export PRIVFIT_BIN="$PWD/target/release/privfit"
fi
(cd python/tests && "$venv/bin/python" -m pytest "$@")
if [ $# -gt 0 ]; then exit; fi
"$venv/bin/python" crates/privfit-cli/tests/onnx_check.py "$PRIVFIT_BIN"
# The workspace as a whole, so that what is built already is used.
PRIVFIT_PYTHON="$venv/bin/python" cargo test --release --quiet --workspace --test suite guide::
