#!/usr/bin/env bash
# Command lines of all programs and subcommands. First their common part: --help, and the refusal of
# unknown options, of options without their value and of invalid words. Then invalid values: every
# numeric option refuses them. A refusal has exit status 2, before anything starts, and is one line
# that begins with the program's name and names the value or the option.
#   options.sh [BUILD]     BUILD: folder with bin/ (default build/release). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh options "${1:-build/release}"
"$banyan" topo star --hosts 4 >"$dir/star.json"
"$banyan" plan "$dir/star.json" -c allreduce -o "$dir/star.plan" >/dev/null
"$banyan" plan "$dir/star.json" -c allgather -o "$dir/gather.plan" >/dev/null
"$banyan" tables "$dir/star.json" "$dir/star.plan" -o "$dir/tables" >/dev/null
cd "$dir" || exit 1
bin=$build/bin
# Values that are not numbers of any kind; callers add values that are not a count, a probability or
# a port.
export BANYAN_LOG=0
any=("" abc -1 " 4" "4 " 4x 99999999999999999999999 nan)
# refuses OPTION VALUE PROGRAM ARGUMENTS...: expects status 2 within 10 s, and a first line with the
# reason.
refuses() {
    local option=$1 value=$2 got line
    shift 2
    timeout 10 "$@" >"$dir/refuse.out" 2>"$dir/refuse.err" </dev/null
    got=$?
    line=$(head -n 1 "$dir/refuse.err")
    case "$line" in "$name: "* | "$name ${call[1]}: "*) ;; *) got="$got, the line does not begin with '$name: '" ;; esac
    [ "$(wc -l <"$dir/refuse.err")" -eq 1 ] || got="$got, $(wc -l <"$dir/refuse.err") lines"
    [ ! -s "$dir/refuse.out" ] || got="$got, and prints to standard output"
    case "$line" in *"$option"* | *"'$value'"*) ;; *) got="$got, without the option or the value" ;; esac
    [ "$got" = 2 ] && return
    bad+=("'$value': status $got: $line")
}
# option OPTION "MORE VALUES" PROGRAM ARGUMENTS...: tries all invalid values. % stands for the
# option with its value.
option() {
    local option=$1 more=$2 value part
    shift 2
    name=$(basename "$1")
    local -a bad=() call values
    # shellcheck disable=SC2206
    values=("${any[@]}" $more)
    for value in "${values[@]}"; do
        call=()
        for part in "$@"; do if [ "$part" = % ]; then case $option in --*) call+=("$option=$value") ;; *) call+=("$option" "$value") ;; esac; else call+=("$part"); fi; done
        refuses "$option" "$value" "${call[@]}"
    done
    if [ ${#bad[@]} -eq 0 ]; then pass "$name ${2##-*} $option"; else printf '%s\n' "${bad[@]}" >"$dir/bad.out"; fail "$name ${2##-*} $option" "$dir/bad.out"; fi
}
# one_line TEXT COMMAND...: expects status 2, nothing on standard output, and one line on standard
# error that begins with $prefix and contains TEXT.
one_line() {
    local text=$1 got
    shift
    timeout 10 "$@" >"$dir/line.out" 2>"$dir/line.err" </dev/null
    got=$?
    [ "$(wc -l <"$dir/line.err")" -eq 1 ] && [ ! -s "$dir/line.out" ] && [ $got -eq 2 ] && grep -qF -- "$text" "$dir/line.err" &&
        grep -q "^$prefix: " "$dir/line.err" && return
    bad+=("${*##*/}: status $got, no '$text' in: $(cat "$dir/line.err")")
}
# common PREFIX COMMAND...: checks the common part of all command lines; the options are those that
# --help lists.
common() {
    prefix=$1
    shift
    local -a bad=()
    local short long argument count=0
    if ! "$@" --help >"$dir/help" 2>"$dir/help.err" || [ -s "$dir/help.err" ] || ! "$@" -h | cmp -s - "$dir/help"; then bad+=("--help or -h fails"); fi
    grep -q "^usage: ${prefix%% *}" "$dir/help" || bad+=("--help has no usage")
    [ "$(wc -L <"$dir/help")" -le 100 ] || bad+=("--help has lines of more than 100 columns")
    one_line "unknown option --zzz; \`$prefix --help\` lists the options" "$@" --zzz
    one_line "unknown option -Z; \`$prefix --help\` lists the options" "$@" -Z
    one_line "unknown option --hlep; did you mean --help? \`$prefix --help\` lists the options" "$@" --hlep
    while read -r short long argument; do
        count=$((count + 1))
        case $argument in
        "") one_line "--$long accepts no value" "$@" "--$long=1" ;;
        "["*) ;;
        *)
            one_line "--$long requires a value, $argument; " "$@" "--$long"
            [ "$short" = - ] || one_line "$short requires a value, $argument; " "$@" "$short"
            ;;
        esac
    done < <(sed -nE 's/^  (-[A-Za-z]|  )[, ] --([a-z_-]+)(\[?)[= ]?((\[[A-Z]|[^ ])[^ ]*)?.*/\1 \2 \3\4/p' "$dir/help" | sed 's/^   */- /')
    [ $count -eq "$(grep -cE '^  (-[A-Za-z], |    )--' "$dir/help")" ] || bad+=("$count options of --help were tried, not all")
    if [ ${#bad[@]} -eq 0 ]; then pass "$prefix: what is common"; else printf '%s\n' "${bad[@]}" >"$dir/bad.out"; fail "$prefix: what is common" "$dir/bad.out"; fi
}
# words PREFIX "OPTION..." COMMAND...: options with words as values refuse other words and list
# their own.
words() {
    local option options=$2
    prefix=$1
    shift 2
    local -a bad=()
    for option in $options; do
        case $option in
        *=*=*) one_line "; did you mean ${option##*=}?" "$@" "${option%%=*}" "$(cut -d= -f2 <<<"$option")" ;;
        *=) one_line "is 'zzz'; it must be " "$@" "${option}zzz" ;;
        *,) one_line "is 'zzz'; 'zzz' is unknown; it must be all, " "$@" "${option%,}" zzz ;;
        *) one_line "is 'zzz'; it must be " "$@" "$option" zzz ;;
        esac
    done
    if [ ${#bad[@]} -eq 0 ]; then pass "$prefix: words of $options"; else printf '%s\n' "${bad[@]}" >"$dir/bad.out"; fail "$prefix: words" "$dir/bad.out"; fi
}
common banyan "$banyan"
for command in $("$banyan" --help | sed -n '/^Commands:/,$s/^  \([a-z][a-z]*\)  *[a-z].*/\1/p'); do
    common "banyan $command" "$banyan" "$command"
done
common "banyan topo star" "$banyan" topo star
common "banyan topo import" "$banyan" topo import
for program in "$bin"/banyan?*; do common "${program##*/}" "$program"; done
prefix=banyan
bad=()
one_line "no command 'plna'; did you mean plan?" "$banyan" plna
one_line "no preset 'stra'; did you mean star?" "$banyan" topo stra
if [ ${#bad[@]} -eq 0 ]; then pass "banyan: commands and presets"; else printf '%s\n' "${bad[@]}" >"$dir/bad.out"; fail "banyan: commands and presets" "$dir/bad.out"; fi
words "banyan plan" "-c -c=alreduce=allreduce --collective --in-network --algorithm --algorithm=blnik=blink" "$banyan" plan star.json
words "banyan compare" "-c --algorithms," "$banyan" compare star.json
words "banyan steady" "--op --ports --balance=" "$banyan" steady star.json
words "banyan export" "--format" "$banyan" export star.json gather.plan
words "banyan sim" "-c" "$banyan" sim star.json star.plan
words "banyan lab" "-c, -c=brodcast=broadcast -d -o -m --data --transport --driver --segments" "$banyan" lab run star.json
words "banyan explain" "-c, -o, -d, -m" "$banyan" explain star.json gather.plan
words banyan-perf "-c, -o, -d, -m --data --check -o=bnad=band" "$bin/banyan-perf"
words banyan-switchd "--driver --driver=rign=ring" "$bin/banyan-switchd"
words banyan-run "--mpi --mpi=opnmpi=openmpi" "$bin/banyan-run"
chance="1.5 inf"
option --root "" "$banyan" plan star.json -c broadcast %
option --fixed-k "0 auto:x auto:-1%" "$banyan" plan star.json -c allgather %
option --latency-aware "" "$banyan" plan star.json -c allgather %
option --time-limit "" "$banyan" plan star.json -c allgather %
option --time-limit "" "$banyan" bound star.json %
option --period 0 "$banyan" steady star.json --op gossip %
option --run 0 "$banyan" steady star.json --op gossip %
option --size "0" "$banyan" steady star.json --op gossip %
option --time-limit "" "$banyan" steady star.json --op gossip %
option --time-limit "" "$banyan" compare star.json %
option --slots "" "$banyan" export star.json gather.plan --format msccl %
option --min-bytes "" "$banyan" export star.json gather.plan --format msccl %
option --max-bytes "" "$banyan" export star.json gather.plan --format msccl %
option --job "0 1024" "$banyan" tables star.json % star.plan -o out
option --share "0 2 1/0 0/1 3/2" "$banyan" tables star.json --job 2 star.plan % -o out
option --window "0 3 8192" "$banyan" tables star.json star.plan -o out %
option --slots "" "$banyan" tables star.json star.plan -o out %
option --mtu "0 10 100000" "$banyan" tables star.json star.plan -o out %
option --gen "0 65536" "$banyan" tables star.json star.plan -o out %
option --key-seed "12" "$banyan" tables star.json star.plan -o out --keyed %
option --bytes "" "$banyan" sim star.json star.plan %
option --root 4 "$banyan" sim star.json star.plan -c broadcast %
for o in "--chunk 1" "--window 3" "--inflight " "--batch " "--latency 1h" "--latency-ns " "--loss $chance" "--dup $chance" "--reorder $chance" "--seed " "--buffer " "--mark " "--warmup "; do
    option "${o%% *}" "${o#* }" "$banyan" sim star.json star.plan %
done
option --trees 9 "$banyan" plot star.json gather.plan -o a.svg %
for o in "--bytes " "--iters 0" "--warmup " "--root 4" "--mtu 10 100000" "--loss $chance" "--dup $chance" "--reorder $chance" "--seed " "--jobs 0 9" "--timeout 0" "--limit 0" "--window 0 3" "--slots "; do
    option "${o%% *}" "${o#* }" "$banyan" lab run star.json --in-process -c broadcast %
done
option --kill "switch0@x switch0@-1 switch0@ @1 @/x" "$banyan" lab run star.json --in-process %
option --counts "1,1,1,x 1,1 0,0,0,0" "$banyan" lab run star.json --in-process -c allgather %
# address WHAT PROGRAM ARGUMENTS...: tries an invalid address, which is the last part of the last
# argument.
address() {
    local what=$1
    shift
    name=$(basename "$1")
    bad=()
    call=("$@")
    refuses "${!##*=}" "${!##*=}" "$@"
    if [ ${#bad[@]} -eq 0 ]; then pass "$what"; else printf '%s\n' "${bad[@]}" >"$dir/bad.out"; fail "$what" "$dir/bad.out"; fi
}
for to in tcp:127.0.0.1:99999 tcp:127.0.0.1:0 tcp:127.0.0.1 tcp::1 tls:a: psk+tls:a:1 unix: nothing; do
    address "push to $to" "$banyan" push tables --to "s=$to"
    address "top of $to" "$banyan" top --once --to "s=$to"
    address "doctor of $to" "$banyan" doctor --to "s=$to"
    address "banyand with $to" "$bin/banyand" star.json --to "s=$to"
done
option --timeout 0 "$banyan" push tables --sockets none %
option --job "0 1024" "$banyan" job create -c allreduce --controller unix:none %
option --window "0 3" "$banyan" job create -c allreduce --controller unix:none %
option --share "0 2" "$banyan" job create -c allreduce --controller unix:none %
for o in "--size " "--root " "--job 0 1024" "--optimum allreduce=x allreduce=1/0 nothing=1" "--alpha 0 0x10" "--beta 0 0x10" "--counts 1,1,1,x 1,1"; do
    option "${o%% *}" "${o#* }" "$banyan" explain star.json gather.plan -c allgather %
done
option --hosts "0" "$banyan" topo star %
option -p 0 "$banyan" circulant %
option -r 4 "$banyan" circulant -p 4 %
option -n "" "$banyan" circulant -p 4 %
option --timeout 0 "$banyan" doctor --to s=unix:none %
option --interval "0 3601" "$banyan" top --once --to s=unix:none %
option --days 0 "$banyan" keys keys --host a %
for o in "-b " "-e " "-f 0 1" "-i " "-n 0" "-w " "-r 4" "-z 2" "-T 0 0x10" "--check 2" "--job 0 1024" "--loss $chance" "--dup $chance" "--reorder $chance" "--seed " "--optimum allreduce=x" "--counts 1,1,1,x 1,1"; do
    option "${o%% *}" "${o#* }" "$bin/banyan-perf" --in-process tables %
done
for o in "--slots 0" "--payload-max 0 1" "--loss $chance" "--dup $chance" "--reorder $chance" "--seed " "--watchdog "; do
    option "${o%% *}" "${o#* }" "$bin/banyan-switchd" --name s --vdev net_null0 --control unix:c.sock %
done
for o in "--quiet 99 3600001" "--trust 99 3600001" "--plan-limit 0 86401" "--lose 1001" "--heartbeat 9 1001" "--timeout 0 61" "--mtu 10 100000" "--http 65536" "--renew-after 0 4294967296"; do
    option "${o%% *}" "${o#* }" "$bin/banyand" star.json --sockets none %
done
finish
