#!/usr/bin/env bash
# The whole story; everything that it makes goes into the folder made/.
set -euo pipefail
cd "$(dirname "$0")"
rm -rf made && mkdir made

python3 generate.py made

echo "--- the patient is protected"
privfit fit job.toml
privfit evaluate --model made/model.json --data made/test.csv
privfit certificate show made/model.json | sed -n "/^WHOSE PRIVACY/,/^$/p"

echo "--- the mistake: each visit by itself"
privfit fit job.toml --schema rows.toml --out made/rows.json
privfit evaluate --model made/rows.json --data made/test.csv
privfit certificate show made/rows.json | sed -n "/^WHOSE PRIVACY/,/^$/p"
