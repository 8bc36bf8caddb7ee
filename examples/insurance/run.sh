#!/usr/bin/env bash
# The whole story; everything that it makes goes into the folder made/.
set -euo pipefail
cd "$(dirname "$0")"
rm -rf made && mkdir made

python3 generate.py made

echo "--- how many claims in a year"
privfit fit job.toml
privfit evaluate --model made/claims.json --data made/test.csv

echo "--- the yearly cost that nine policies of ten stay below"
privfit fit job.toml --schema cost.toml --loss quantile --set quantile=0.9 --out made/cost.json
privfit evaluate --model made/cost.json --data made/test.csv
