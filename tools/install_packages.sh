#!/usr/bin/env bash
# Installs the Debian 12 packages that building and testing need, if one is missing.
# Does nothing, and needs no network and no rights, when all are there. Arguments: more packages.
set -euo pipefail

packages=(
  # compilers and tools
  g++ cmake ninja-build make pkg-config ccache mold clang-format clang-tidy python3 python3-pip
  # libraries
  libhwy-dev libicu-dev libspdlog-dev libfmt-dev nlohmann-json3-dev libcli11-dev libexpected-dev
  libpcre2-dev libxxhash-dev libssl-dev librocksdb-dev libboost1.81-dev prometheus-cpp-dev
  # tests and benchmarks
  libgtest-dev libgmock-dev libbenchmark-dev python3-jsonschema
)
packages+=("$@")

if ! command -v apt-get >/dev/null; then
  echo "install_packages: no apt-get here; this list is for Debian 12: ${packages[*]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  exit 0
fi

echo "install_packages: installing ${missing[*]}"
as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "install_packages: not root and no sudo; install them as root, then run this again" >&2
    exit 1
  fi
  as_root=(sudo)
fi
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -q -y --no-install-recommends "${missing[@]}"
