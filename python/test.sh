#!/usr/bin/env bash
# Builds the wheel, installs it beside what its tests compare it with, and runs them. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
bash python/build.sh
venv=target/python
# Installed once; a change of this line installs again.
packages="numpy scipy scikit-learn pandas polars pyarrow pytest"
if [ "$(cat "$venv/.packages" 2>/dev/null)" != "$packages" ]; then
  "$venv/bin/pip" install --quiet --disable-pip-version-check $packages
  echo "$packages" > "$venv/.packages"
fi
"$venv/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps target/wheels/privfit-*.whl
# Tests compare with the command.
if [ -z "${PRIVFIT_BIN:-}" ]; then
  cargo build --release --quiet --bin privfit
  export PRIVFIT_BIN="$PWD/target/release/privfit"
fi
cd python/tests
exec ../../target/python/bin/python -m pytest "$@"
