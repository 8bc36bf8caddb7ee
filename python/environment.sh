#!/usr/bin/env bash
# The Python environment that the wheel is built and tested in: target/python, made once; a change of these lines installs again.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=target/python
packages="maturin>=1.9,<2 numpy scipy scikit-learn pandas polars pyarrow pytest onnx onnxruntime"
if [ "$(cat "$venv/.packages" 2>/dev/null)" != "$packages" ]; then
  "${PYTHON:-python3}" -m venv "$venv"
  # Names have no spaces.
  "$venv/bin/pip" install --quiet --disable-pip-version-check $packages
  echo "$packages" > "$venv/.packages"
fi
