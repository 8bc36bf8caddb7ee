#!/usr/bin/env bash
# The whole story; everything that it makes goes into the folder made/.
set -euo pipefail
cd "$(dirname "$0")"
rm -rf made && mkdir made

privfit fit job.toml --dry-run --rows 48842
privfit fit job.toml --out made/model.json
privfit evaluate --model made/model.json --data adult.csv.gz

echo "--- a tenth of epsilon"
privfit fit job.toml --epsilon 0.1 --out made/strict.json
privfit evaluate --model made/strict.json --data adult.csv.gz

echo "--- what is claimed, worked out again"
privfit certificate verify made/model.json
