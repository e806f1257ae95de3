#!/usr/bin/env bash
# Compares the interface of the shared library with the stored one: functions, their types and the
# layout of structs. What is added is allowed; what is changed or removed needs a new soname. The
# stored description is updated with `make abi` when something has been added.
#   abi.sh LIBRARY
set -u
stored=host-driver/libbanyan.abi
if ! command -v abidiff >/dev/null; then
    echo "note: abidiff is not installed (Debian: abigail-tools), so the interface is not compared"
    echo "0 interfaces checked"
    exit 0
fi
abidiff --no-added-syms --headers-dir2 host-driver/include "$stored" "$1"
status=$?
# Bits of abidiff: 1 failed, 2 wrong usage, 4 changed, 8 changed incompatibly.
[ $status -eq 0 ] || echo "$stored: the interface of $1 differs: restore it, or make a new soname"
echo "$(grep -c '<elf-symbol ' "$stored") symbols checked"
exit $status
