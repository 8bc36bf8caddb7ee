#!/usr/bin/env bash
# The whole story; everything that it makes goes into the folder made/.
set -euo pipefail
cd "$(dirname "$0")"
rm -rf made && mkdir made

python3 generate.py made
privfit fit job.toml
privfit evaluate --model made/model.json --data made/test-images.idx --labels made/test-labels.idx
privfit predict --model made/model.json --data made/test-images.idx --out made/predictions.csv
head -1 made/predictions.csv
