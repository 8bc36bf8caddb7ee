#!/usr/bin/env bash
# The whole story; everything that it makes goes into the folder made/.
set -euo pipefail
cd "$(dirname "$0")"
rm -rf made && mkdir made

bash generate.sh
privfit fit job.toml
privfit evaluate --model made/model.json --data made/test.csv
privfit predict --model made/model.json --data made/test.csv --out made/predictions.csv
head -3 made/predictions.csv
