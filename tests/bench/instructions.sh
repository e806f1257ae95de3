#!/usr/bin/env bash
# Counts the instructions of banyan-switchd's loop for each frame that it sends, on memory ports
# (bench-shell), sums and copies of 1408 bytes, also where results leave from the engine's memory
# ("lent"), as on vhost-user rings. Unlike times they are the same on a busy machine.
#   instructions.sh [BUILD]   BUILD: folder with tools/ (default build/release). Needs valgrind;
#                             takes a minute.
set -u
cd "$(dirname "$0")/../.." || exit 1
shell=$(realpath "${1:-build/release}")/tools/bench-shell
chunks=12800 # of a run of bench-shell
command -v valgrind >/dev/null || { echo "instructions.sh: skipped: no valgrind (apt-get install valgrind)" >&2; exit 77; }
[ -x "$shell" ] || { echo "instructions.sh: $shell is missing: make build-tools" >&2; exit 1; }

echo "# instructions of the switch's loop for each frame sent, on memory ports (1408 bytes of payload)"
printf '# %5s %8s %8s %8s %8s\n' ports sum copy 'lent sum' copy
for ports in 2 4 8; do
    printf '  %5d' "$ports"
    for what in 'sum 1' 'copy 1' 'sum 1 lent' 'copy 1 lent'; do
        # shellcheck disable=SC2086 # several arguments
        total=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=by_shell_round "$shell" "$ports" $what 2>&1 |
            sed -nE 's/.*Collected : ([0-9]+).*/\1/p')
        [ -n "$total" ] || { echo; echo "instructions.sh: no count from valgrind" >&2; exit 1; }
        printf ' %8d' $((total / (chunks * ports)))
    done
    echo
done
