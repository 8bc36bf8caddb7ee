#!/usr/bin/env bash
# Six questions at once; nothing is trained and no data are needed.
set -euo pipefail
cd "$(dirname "$0")"
privfit account --request questions.json
