#!/usr/bin/env bash
# Output that cannot be written: every program and every command of banyan exits with status 3, and
# one line names the lost output and the reason.
#   output.sh [BUILD]     BUILD: folder with bin/ (default build/release). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh output "${1:-build/release}"
# lost WHAT TEXT COMMAND...: with a full standard output the command exits with status 3 and one
# line of its own that contains TEXT (with -o - the report is on stderr as well).
lost() {
    local what=$1 text=$2 got
    shift 2
    attended "$@" >/dev/full 2>"$dir/lost.err"
    got=$?
    if [ $got -eq 3 ] && [ "$(grep -c "^${1##*/}: " "$dir/lost.err")" -eq 1 ] && grep -qF -- "$text" "$dir/lost.err"; then
        pass "$what"
    else
        echo "(exit status $got instead of 3, or not one line of the program, with '$text')" >>"$dir/lost.err"
        fail "$what" "$dir/lost.err"
    fi
}
full() { # full COMMAND...
    local words=$*
    words=${words//"$dir/"/}
    lost "${words//"$build/bin/"/} >/dev/full" "cannot write standard output: No space left on device" "$@"
}
make_inputs() {
    "$banyan" topo star --hosts 4 >"$dir/star.json"
    "$banyan" plan "$dir/star.json" -c allreduce -o "$dir/star.plan" >"$dir/plan.out" &&
        "$banyan" tables "$dir/star.json" "$dir/star.plan" -o "$dir/tables" >"$dir/tables.out" &&
        "$banyan" plan "$dir/star.json" -c allgather --in-network none -o "$dir/gather.plan" >"$dir/gather.out"
}
# calls COMMAND: calls of a command other than --help, one on each line; status 1 for a command
# without a call here.
calls() {
    case $1 in
    topo) echo "star --hosts 4" ;;
    plan) printf '%s\n' "$dir/star.json -c allreduce" "$dir/star.json -c allreduce --json" "$dir/star.json -c allreduce -o -" ;;
    verify) printf '%s\n' "$dir/star.json $dir/star.plan" "$dir/star.json $dir/star.plan --json" ;;
    bound) printf '%s\n' "$dir/star.json" "$dir/star.json --json" ;;
    steady) echo "$dir/star.json --op gossip" ;;
    compare) printf '%s\n' "$dir/star.json -c allgather" "$dir/star.json -c allgather --json" ;;
    export) echo "$dir/star.json $dir/gather.plan --format forestcoll -o -" ;;
    tables) echo "$dir/star.json $dir/star.plan -o $dir/more" ;;
    show) printf '%s\n' "$dir/tables/switch0.table" "$dir/tables/switch0.table --json" ;;
    diff) echo "$dir/tables/switch0.table $dir/tables/switch0.table --json" ;;
    circulant) printf '%s\n' "-p 8" "-p 8 --json" ;;
    sim) echo "$dir/star.json $dir/star.plan --bytes 64K" ;;
    plot) echo "$dir/star.json -o -" ;;
    doctor) echo "--json" ;;
    discover) echo "--local --seconds 0" ;;
    info) printf '%s\n' "" "--json" ;;
    keys | push | explain | job | lab | top) ;; # --help alone: the others need a fabric that runs, or print nothing
    *) return 1 ;;
    esac
}
check "a plan and tables to work with" make_inputs
full "$banyan" --help
full "$banyan" --version
commands=$("$banyan" --help | sed -n 's/^  \([a-z][a-z]*\)  *[a-z].*/\1/p')
[ "$(wc -w <<<"$commands")" -ge 20 ] || fail "banyan --help lists the commands"
for command in $commands; do
    full "$banyan" "$command" --help
    calls "$command" >"$dir/calls" || fail "banyan $command: add a call of it to this test"
    while read -r line; do
        # shellcheck disable=SC2086
        full "$banyan" "$command" $line
    done <"$dir/calls"
done
for program in "$build"/bin/*; do
    full "$program" --help
    full "$program" --version
done
full "$build/bin/banyan-perf" --settings
# A file system with space for one page: the output of -o does not fit, and no part of it remains.
if [ "$(id -u)" -eq 0 ]; then
    cleanup_more() { umount "$dir/small"; }
    mkdir "$dir/small"
    check "a file system of 64 KiB" mount -t tmpfs -o size=64k tmpfs "$dir/small"
    head -c 60K /dev/zero >"$dir/small/fill"
    "$banyan" topo a100 --boxes 4 >"$dir/a100.json"
    "$banyan" plan "$dir/a100.json" -c allgather --in-network none -o "$dir/a100.plan" >"$dir/plan.out"
    # no_file FILE COMMAND...: passes if no new file is left, and an old one is unchanged.
    no_file() {
        local file=$1 old
        shift
        for old in "" old; do
            rm -f "$dir/small/$file"
            [ -z "$old" ] || echo old >"$dir/small/$file"
            refused "$1 $2: no space for $file${old:+, which exists}" 3 "No space left on device" "$banyan" "$@"
            check "nothing but what was there is there" test "$(ls -A "$dir/small")" = "$(printf '%s\n' ${old:+"$file"} fill | sort)"
            [ -z "$old" ] || check "the old file is whole" grep -qx old "$dir/small/$file"
        done
        rm -f "$dir/small/$file"
    }
    no_file a.plan plan "$dir/a100.json" -c allgather --in-network none -o "$dir/small/a.plan"
    no_file a.xml export "$dir/a100.json" "$dir/a100.plan" --format forestcoll -o "$dir/small/a.xml"
    no_file a.svg plot --whole "$dir/a100.json" -o "$dir/small/a.svg"
    no_file a.json steady "$dir/a100.json" --op gossip -o "$dir/small/a.json"
fi
refused "a usage error stays one" 2 "no command" sh -c "exec '$banyan' nothing >/dev/full"
finish
