#!/usr/bin/env bash
# Builds the wheel into target/wheels. Needs Rust and Python 3.10 or newer; everything else comes from PyPI.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=target/python
if ! [ -x "$venv/bin/maturin" ]; then
  "${PYTHON:-python3}" -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check "maturin>=1.9,<2"
fi
rm -f target/wheels/privfit-*.whl
(cd python && ../"$venv/bin/maturin" build --release --interpreter ../"$venv/bin/python" --out ../target/wheels)
ls -l target/wheels
