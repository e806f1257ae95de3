# shellcheck shell=bash disable=SC2154,SC2034
# A lab whose controller serves the live page, for scripts that have read lab-common.sh.
# page_lab TOPOLOGY: starts the lab, and in place of its controller one with a port of its own. Sets
# $lab, $port, and $daemon, the controller's process.
page_lab() {
    local i folder
    "$banyan" lab up "$1" --controller --collective allreduce,broadcast --keyed >"$dir/up.out" 2>&1 || { cat "$dir/up.out"; return 1; }
    lab=$(id_of "$dir/up.out")
    folder=/run/banyan/lab-$lab
    daemon=$(sed -n 's/^process \([0-9]*\) [0-9]* banyand$/\1/p' "$folder/state")
    kill -KILL "$daemon"
    while runs "$daemon"; do sleep 0.01; done
    "$build/bin/banyand" "$folder/topology.json" --sockets "$folder" --state "$folder" --members "unix:$folder/members.sock" \
        --socket "$folder/banyand.socket" --keyed --http 0 >"$dir/banyand.out" 2>"$dir/banyand.err" &
    daemon=$!
    children+=("$daemon")
    page_ready "$dir/banyand.out" || cat "$dir/banyand.err"
}
# page_ready FILE: waits for the controller with that output. Sets $port.
page_ready() {
    local i
    for ((i = 0; i < 100; i++)); do
        ! grep -q ready "$1" 2>/dev/null || break
        sleep 0.1
    done
    port=$(sed -n 's/.* http 127.0.0.1:\([0-9]*\)$/\1/p' "$1")
    [ -n "$port" ]
}
# page_get PATH [METHOD [HEADER]]: the answer of the controller, with its head.
page_get() {
    exec 3<>"/dev/tcp/127.0.0.1/$port" || return 1
    printf '%s %s HTTP/1.0\r\nHost: localhost\r\n%s\r\n' "${2:-GET}" "$1" "${3:+$3$'\r\n'}" >&3
    cat <&3
    exec 3<&-
}
# page_body PATH: the answer without its head.
page_body() { page_get "$1" | sed '1,/^\r$/d'; }
# page_port SWITCH PEER: the interface of a switch to a node.
page_port() {
    page_body /v1/status | switch=$1 peer=$2 perl -MJSON::PP -0777 -ne '
        for my $switch (@{decode_json($_)->{switches}}) {
            for (@{$switch->{ports}}) { print $_->{name} if $switch->{name} eq $ENV{switch} && $_->{peer} eq $ENV{peer} }
        }'
}
# page_run BYTES ITERATIONS: starts banyan-perf on the four hosts; their processes go to ${ranks[@]}.
page_run() {
    local i
    ranks=()
    for i in 0 1 2 3; do
        # shellcheck disable=SC2046
        $(host_line "host$i") "$build/bin/banyan-perf" --job 1 -c allreduce -b "$1" -e "$1" -n "$2" -w 0 >"$dir/rank$i.out" 2>&1 &
        ranks+=($!)
    done
    children+=("${ranks[@]}")
}
# page_stop: ends them.
page_stop() {
    local rank
    for rank in "${ranks[@]}"; do end_tree TERM "$rank"; done
    wait "${ranks[@]}" 2>/dev/null
    ranks=()
}
