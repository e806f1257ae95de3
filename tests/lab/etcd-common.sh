# shellcheck shell=bash disable=SC2034,SC2154
# A cluster of etcd with three members, and machines for banyands, each in a network namespace of
# its own on a bridge, so that each can be cut off: `. etcd-common.sh` after lab-common.sh.
#   cluster_up MACHINES, cluster_down; member_start N, member_end N SIGNAL; cut WHO, join WHO, where
#   WHO is m0 to m2 or c0 to cMACHINES-1; at WHO COMMAND...: runs a command there.
cluster=bye$$
network=198.18.178
port=2379
members=()
machines=()
at() { ip netns exec "$cluster-$1" "${@:2}"; }
# machine WHO HOSTNUMBER: makes a namespace on the bridge.
machine() {
    ip netns add "$cluster-$1" &&
        ip -n "$cluster" link add "$1" type veth peer name net0 netns "$cluster-$1" &&
        ip -n "$cluster" link set "$1" master br0 up &&
        ip -n "$cluster-$1" addr add "$network.$2/24" dev net0 &&
        ip -n "$cluster-$1" link set net0 up && ip -n "$cluster-$1" link set lo up && machines+=("$1")
}
cut() { ip -n "$cluster" link set "$1" down; }
join() { ip -n "$cluster" link set "$1" up; }
member_start() {
    local list=m0=http://$network.10:2380,m1=http://$network.11:2380,m2=http://$network.12:2380 url=http://$network.1$1
    at "m$1" etcd --name "m$1" --data-dir "$dir/m$1" --listen-client-urls "$url:$port" --advertise-client-urls "$url:$port" \
        --listen-peer-urls "$url:2380" --initial-advertise-peer-urls "$url:2380" --initial-cluster "$list" \
        --initial-cluster-state new --unsafe-no-fsync >>"$dir/m$1.log" 2>&1 &
    members[$1]=$!
    children+=("$!")
    disown
}
member_end() { end_tree "$2" "${members[$1]}"; }
answers() { at "$1" curl -sf -m 1 "http://$network.1$2:$port/v3/kv/range" -d '{"key": "YQ=="}'; }
cluster_up() {
    local i
    ip netns add "$cluster" && ip -n "$cluster" link add br0 type bridge && ip -n "$cluster" link set br0 up || return 1
    for i in 0 1 2; do machine "m$i" $((10 + i)) && member_start $i || return 1; done
    for ((i = 0; i < $1; i++)); do machine "c$i" $((20 + i)) || return 1; done
    for ((i = 0; i < 200; i++)); do
        ! answers c0 0 >/dev/null || ! answers c0 1 >/dev/null || ! answers c0 2 >/dev/null || return 0
        sleep 0.05
    done
    cat "$dir"/m?.log
    return 1
}
cluster_down() {
    local who
    for who in "${machines[@]}"; do ip netns delete "$cluster-$who"; done 2>/dev/null
    ip netns delete "$cluster" 2>/dev/null
}
store=etcd:http://$network.10:$port,http://$network.11:$port,http://$network.12:$port
