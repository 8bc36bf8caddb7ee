#!/usr/bin/env bash
# The whole story; everything that it makes goes into the folder made/.
set -euo pipefail
cd "$(dirname "$0")"
rm -rf made && mkdir made

python3 generate.py made

echo "--- 300 words"
privfit fit job.toml
privfit evaluate --model made/model.json --data made/test.libsvm

echo "--- all words"
privfit fit --data made/train.libsvm --schema schema.toml --epsilon 1 --delta 1e-8 --out made/all.json
privfit evaluate --model made/all.json --data made/test.libsvm
