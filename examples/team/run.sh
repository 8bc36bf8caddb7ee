#!/usr/bin/env bash
# The whole story; everything that it makes goes into the folder made/.
set -euo pipefail
cd "$(dirname "$0")"
rm -rf made && mkdir made

python3 generate.py made
privfit ledger create made/customers.ledger --schema schema.toml --epsilon 1.5 --delta 1e-8

echo "--- Monday: Ana asks who leaves"
privfit fit job.toml
privfit evaluate --model made/leavers.json --data made/public.csv

echo "--- Tuesday: Ben asks how much is spent, and looks at the cost first"
ben=(--data made/customers.csv --schema spending.toml --ledger made/customers.ledger --request ben-spending --delta 1e-9)
privfit fit "${ben[@]}" --epsilon 0.5 --dry-run --rows 20000
privfit fit "${ben[@]}" --epsilon 0.5 --out made/spending.json
privfit evaluate --model made/spending.json --data made/public.csv

echo "--- Wednesday: Chloe wants more than is left"
chloe=(--data made/customers.csv --schema schema.toml --ledger made/customers.ledger --request chloe-leavers --delta 1e-9)
privfit fit "${chloe[@]}" --epsilon 1.4 --out made/chloe.json || echo "exit code $?"

echo "--- Thursday: Ana lost her file and asks again"
cp made/leavers.json made/before.json
privfit fit job.toml
cmp made/before.json made/leavers.json && echo "the same bytes"

echo "--- Friday: the auditor"
privfit ledger show made/customers.ledger
privfit ledger verify made/customers.ledger --model made/leavers.json made/spending.json
privfit ledger export made/customers.ledger --request ben-spending --out made/copy.json
cmp made/copy.json made/spending.json && echo "the same bytes"
