#!/usr/bin/env bash
# Hosts that join their controller over TLS, each from its own namespace. With their keys they run a
# keyed job, and continue when a switch dies. A client that is not a host of the fabric, or claims
# to be another host, gets no table and cannot keep hosts out.
#   lab-join.sh [BUILD]   Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-join "${1:-build/release}"
need_root
bridge=byj$$
net=10.97.$(($$ % 256))
address=tls:$net.1:46250
cleanup_more() {
    down_of "$dir/up.out"
    ip link del "$bridge" 2>/dev/null
}
"$banyan" topo leafspine --spines 2 --uplink 5 >"$dir/fabric.json"

check "keys of every node of a fabric, and of its controller" \
    "$banyan" keys "$dir/keys" --topology "$dir/fabric.json" --controller operator
check "and of others" "$banyan" keys "$dir/others" --host host0
# An expired certificate: host0's name, by the same authority.
late() {
    cp -r "$dir/keys/host0" "$dir/keys/late" &&
        printf 'subjectAltName=DNS:host0\nextendedKeyUsage=2.25.55857662582793274090038902012406458572\n' >"$dir/extensions" &&
        openssl req -new -key "$dir/keys/late/key.pem" -subj /O=banyan/CN=host0 -out "$dir/late.csr" &&
        openssl x509 -req -in "$dir/late.csr" -CA "$dir/keys/ca.pem" -CAkey "$dir/keys/ca.key" -set_serial 7 -days 0 \
            -extfile "$dir/extensions" -out "$dir/keys/late/cert.pem"
}
check "and a certificate that has expired" late
mkdir "$dir/keys/none"

if ! "$banyan" lab up "$dir/fabric.json" -c allreduce --transport udp >"$dir/up.out" 2>&1; then
    fail "a lab is up" "$dir/up.out"
    finish
fi
id=$(id_of "$dir/up.out")
# A network for control traffic, apart from the packets of jobs. The controller's side is this
# namespace.
ip link add "$bridge" type bridge
ip addr add "$net.1/24" dev "$bridge"
ip link set "$bridge" up
for i in 0 1 2 3; do
    ip link add "$bridge.$i" type veth peer name ctl0 netns "lab-$id-host$i"
    ip link set "$bridge.$i" master "$bridge" up
    ip -n "lab-$id-host$i" addr add "$net.$((i + 10))/24" dev ctl0
    ip -n "lab-$id-host$i" link set ctl0 up
done

banyand=("$build/bin/banyand" "$dir/fabric.json" --sockets "/run/banyan/lab-$id" --http off --keyed)
refused "plain TCP beyond this machine is refused for a keyed job" 2 "use tls:$net.1:46251" \
    timeout 20 "${banyand[@]}" --socket off --members "tcp:$net.1:46251"
refused "TLS without keys is refused" 2 "--keys" timeout 20 "${banyand[@]}" --socket off --members "$address"
"${banyand[@]}" --socket "$dir/banyand.socket" --members "$address" --keys "$dir/keys/operator" --job 1=allreduce --quiet 500 >"$dir/banyand.out" 2>&1 &
children+=("$!")
job_runs() { grep -q 'job 1 runs' "$dir/banyand.out"; }
check "a controller leads, and takes hosts over TLS" await 20 job_runs

# as HOST KEYS NODE COMMAND...: runs the command on the host of that number.
as() {
    ip netns exec "lab-$id-host$1" env BANYAN_CONTROLLER="$address" BANYAN_KEYS="$dir/$2" BANYAN_NODE="$3" BANYAN_TRANSPORT=udp BANYAN_TIMEOUT="${limit:-$((3 + slow))}" BANYAN_LOG=2 "${@:4}"
}
# stranger WHAT TEXT HOST KEYS NODE: passes if the client gets no table and its error contains TEXT.
stranger() {
    as "$3" "$4" "$5" timeout 30 "$build/bin/banyan-perf" -c allreduce -b 64K -e 64K -n 1 -w 0 >"$dir/stranger.out" 2>&1
    local status=$?
    if [ $status -ne 0 ] && [ $status -ne 124 ] && grep -qF -- "$2" "$dir/stranger.out"; then
        pass "$1"
    else
        echo "(status $status, no '$2')" >>"$dir/stranger.out"
        fail "$1" "$dir/stranger.out"
    fi
}
stranger "keys of another authority" "keys of the same authority" 0 others/host0 host0
stranger "a switch's keys" "refused our certificate" 0 keys/leaf0 host0
stranger "a controller's keys" "refused our certificate" 0 keys/operator host0
stranger "host3's keys, and host1's name" "it claims to be host1, but its certificate names host3" 3 keys/host3 host1
stranger "keys that have expired" "alert certificate expired" 0 keys/late host0
stranger "no keys" "keys/none/ca.pem" 0 keys/none host0
check "banyand says who was refused" bash -c "
    grep -q '$net.10: the host.s certificate is refused: unsuitable certificate purpose' '$dir/banyand.out' &&
    grep -q '$net.10: the host.s certificate is refused: certificate has expired' '$dir/banyand.out' &&
    grep -q 'host host1: it claims to be host1' '$dir/banyand.out'"
refused "doctor finds keys of another host" 1 "these are keys of host3, but this host is host1" as 3 keys/host3 host1 "$banyan" doctor
refused "and those that have expired" 1 "a certificate expired at" as 0 keys/late host0 "$banyan" doctor
chmod 640 "$dir/keys/host2/key.pem"
refused "and those that others may read" 1 "chmod 600" as 2 keys/host2 host2 "$banyan" doctor
chmod 600 "$dir/keys/host2/key.pem"

# Hosts join while a hundred strangers hold silent connections; a switch dies during the job.
ip netns exec "lab-$id-host3" bash -c "for i in \$(seq 100); do exec {fd}<>/dev/tcp/$net.1/46250 || exit 1; done; sleep 60" >/dev/null 2>&1 &
children+=("$!")
sleep 0.3
ranks=()
for i in 0 1 2 3; do
    limit=20 as "$i" "keys/host$i" "host$i" "$build/bin/banyan-perf" -c allreduce -b 1M -e 8M -i 64 -d i32 -n 1 -w 0 >"$dir/rank$i.out" 2>&1 &
    ranks+=("$!")
    disown
done
children+=("${ranks[@]}")
rows() { [ "$(grep -c '^ allreduce' "$dir/rank0.out")" -ge "$1" ]; }
await 40 rows 2 && pass "hosts with their keys run, past strangers who say nothing" ||
    fail "hosts with their keys run, past strangers who say nothing" "$dir/rank0.out" "$dir/banyand.out"
kill -KILL "$(switch_pid "$id" spine0)"
before=$(grep -c '^ allreduce' "$dir/rank0.out")
goes_on() { grep -q 'continues in generation' "$dir/rank0.out" && rows $((before + 2)); }
await 40 goes_on && pass "they go on over TLS when a switch dies" || fail "they go on over TLS when a switch dies" "$dir/rank0.out" "$dir/banyand.out"
wrong=$(awk '/^ allreduce/ && ($10 + $14 > 0) { n++ } END { print n + 0 }' "$dir/rank0.out")
[ "$wrong" -eq 0 ] && pass "and every element is right" || fail "and every element is right" "$dir/rank0.out"
for pid in "${ranks[@]}"; do end_tree KILL "$pid"; done
finish
