#!/usr/bin/env bash
# The whole story; everything that it makes goes into the folder made/.
set -euo pipefail
cd "$(dirname "$0")"
rm -rf made && mkdir made

python3 generate.py made
privfit fit job.toml
privfit evaluate --model made/model.json --data made/pictures.zip/test
privfit certificate verify made/model.json | grep verdict
privfit model show made/model.json
privfit predict --model made/model.json --data made/pictures.zip/test --out made/predictions.csv
python3 picture.py made/pictures.zip made/predictions.csv made/result.svg
privfit report made/model.json --out made/report.html
