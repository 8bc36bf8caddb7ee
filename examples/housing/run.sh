#!/usr/bin/env bash
# The whole story; everything that it makes goes into the folder made/.
set -euo pipefail
cd "$(dirname "$0")"
rm -rf made && mkdir made

python3 generate.py made

echo "--- Huber loss"
privfit fit job.toml
privfit evaluate --model made/huber.json --data made/test.csv

echo "--- squared loss"
privfit fit --data made/train.csv --schema schema.toml --loss squared --epsilon 1 --delta 1e-9 --out made/squared.json
privfit evaluate --model made/squared.json --data made/test.csv
