#!/usr/bin/env bash
# The whole story; everything that it makes goes into the folder made/.
set -euo pipefail
cd "$(dirname "$0")"
rm -rf made && mkdir made

python3 generate.py made

echo "--- 1. somebody forgot the noise: two neighbouring data sets are enough to prove it"
privfit audit sensitivity --method hard-thresholding-without-noise --schema schema.toml || echo "exit code $?"

echo "--- 2. the repaired method passes the same test"
privfit audit sensitivity --method hard-thresholding --set sparsity=2 --schema schema.toml

echo "--- 3. too little noise: an audit alone does not see it, the accountant does"
claim=(--schema schema.toml --method published-p-sgd --epsilon 1 --delta 1e-5 --rows 200 --set steps=20 --set batch=1)
privfit audit distribution "${claim[@]}" --runs 600
privfit fit "${claim[@]}" --compare --dry-run

echo "--- 4. no guarantee at all: the certificate does not hold"
privfit fit job.toml --method published-knowledge-transfer --set sparsity=2
privfit certificate verify made/model.json || echo "exit code $?"

echo "--- 5. the same job by the default method"
privfit fit --data made/loans.csv --schema schema.toml --epsilon 1 --delta 1e-9 --adjacency replace-one --out made/private.json
privfit certificate verify made/private.json
