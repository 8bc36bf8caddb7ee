#!/usr/bin/env bash
# Everything that must hold before a change lands, from a fresh machine on: what is missing is installed (as root; otherwise the one line to
# run is printed), the formatting is checked, all tests run in the one optimised profile that the binary uses too, then the main job.
# Needs Rust 1.95 and a C compiler. A part by itself: bash tests.sh setup | format | rust | documents | python | job
set -euo pipefail
cd "$(dirname "$0")"

# Debian's names. Tests of the ledger start a PostgreSQL of their own, those of pages open Chromium, manual pages are rendered, examples
# and the package run Python.
missing() {
  command -v cc >/dev/null || echo gcc libc6-dev
  ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || echo postgresql
  command -v chromium >/dev/null || echo chromium
  command -v groff >/dev/null || echo groff
  command -v gunzip >/dev/null || echo gzip
  command -v awk >/dev/null || echo mawk
  python3 -c "import venv, ensurepip" 2>/dev/null || echo python3 python3-venv
  ls /etc/ssl/certs/*.pem >/dev/null 2>&1 || echo ca-certificates
}

setup() {
  if ! command -v cargo >/dev/null; then
    echo "no Rust toolchain: install Rust 1.95, then run this again" >&2
    exit 1
  fi
  if ! cargo fmt --version >/dev/null 2>&1; then
    echo "no formatter: run  rustup component add rustfmt  and then this again" >&2
    exit 1
  fi
  local packages install
  packages=$(missing | tr '\n' ' ')
  if [ -z "$packages" ]; then return; fi
  install="apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ${packages% }"
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "these packages are missing: run the line below as root, then this again" >&2
    echo "  $install" >&2
    exit 1
  fi
  echo "installing ${packages% }"
  bash -c "$install"
  if [ -n "$(missing)" ]; then
    echo "still missing after the installation: $(missing | tr '\n' ' ')" >&2
    exit 1
  fi
}

format() { cargo fmt --all --check; }
# All failures at once: a second run costs more than what is left of the first.
rust() {
  cargo test --release --workspace --no-run
  if [ "$everything" = yes ]; then begin documents rustdoc; fi
  cargo test --release --workspace --no-fail-fast
}
# In a directory of their own, so that tests and documents do not wait for each other's lock.
rustdoc() { RUSTDOCFLAGS="-D warnings" cargo doc --release --no-deps --workspace --quiet --target-dir target/documents; }
documents() { if [ "$everything" = yes ]; then wait_for documents; else rustdoc; fi; }
python() {
  wait_for environment
  bash python/test.sh
}
job() {
  cargo run --release --quiet --bin privfit -- fit examples/adult/job.toml
  cargo run --release --quiet --bin privfit -- account --request examples/account/questions.json >/dev/null
}

# With no argument packages of Python are downloaded while Rust compiles, and documents are built while tests wait for each other.
everything=$([ $# = 0 ] && echo yes || echo no)

# Runs in the background; `wait_for` ends with its failure, after what it printed.
declare -A started=()
begin() {
  local name=$1
  shift
  mkdir -p target
  "$@" > "target/$name.log" 2>&1 &
  started[$name]=$!
}
wait_for() {
  local number=${started[$1]:-}
  if [ -z "$number" ]; then return; fi
  unset "started[$1]"
  if ! wait "$number"; then
    cat "target/$1.log" >&2
    return 1
  fi
}

parts=(setup format rust documents python job)
for part in "${@:-${parts[@]}}"; do
  case " ${parts[*]} " in
    *" $part "*)
      "$part"
      if [ "$part" = setup ] && [ "$everything" = yes ]; then begin environment bash python/environment.sh; fi
      ;;
    *) echo "unknown part $part: give one of ${parts[*]}, or nothing for all" >&2; exit 2 ;;
  esac
done
