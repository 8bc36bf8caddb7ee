#!/usr/bin/env bash
# The whole story; everything that it makes goes into the folder made/.
set -euo pipefail
cd "$(dirname "$0")"
rm -rf made && mkdir made

python3 generate.py made
echo "--- the price of everything, before data are opened"
privfit tune job.toml --dry-run --rows 12000
echo "--- tuning on private records, paid for"
privfit tune job.toml
privfit evaluate --model made/tuned.json --data made/public.csv
privfit certificate verify made/tuned.json
echo "--- choosing on public rows, for free"
privfit tune job.toml --public made/public.csv --out made/chosen.json
privfit evaluate --model made/chosen.json --data made/public.csv
echo "--- how good is it on the private records? with noise, for another 0.2"
privfit evaluate --model made/tuned.json --data made/private.csv --epsilon 0.2 --delta 1e-9
