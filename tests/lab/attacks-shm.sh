# shellcheck shell=bash disable=SC2154
# Attacks on the socket of a switch that shares memory, while a keyed job sums in it. Sourced by
# lab-attacks.sh.
mode=shm
shm_attack=$build/tools/lab-attack-shm
folder=$dir/shm
"$banyan" topo star --hosts 2 >"$dir/shm2.json"
"$banyan" plan "$dir/shm2.json" -c allreduce --ranks host0,host1 -o "$dir/shm.plan" >/dev/null
"$banyan" tables "$dir/shm2.json" --job 1 "$dir/shm.plan" --gen 3 --keyed -o "$folder" >/dev/null
down_of "$dir/up.out"
if ! "$banyan" lab up "$dir/shm2.json" --jobs 1 --transport shm >"$dir/up.out" 2>&1; then
    fail "shm: the lab is up" "$dir/up.out"
else
    id=$(id_of "$dir/up.out")
    shared=/run/banyan/lab-$id
    door=$(printf '%s\n' "$shared"/[0-9]* | sort | head -n 1)
    check "shm: keyed tables are loaded" "$banyan" push "$folder" --to "switch0=unix:$shared/switch0.sock"
    check "shm: only the switch's user may connect" bash -c "[ \"\$(stat -c %a '$door')\" = 600 ]"
    port=$("$banyan" show "$folder/host0.table" --json | grep -o '"udp_port": *[0-9]*' | head -n 1 | grep -o '[0-9]*$')
    refused "shm: the port of a keyed job claimed without its key" 1 "does not prove" "$shm_attack" squat "$door" "$port"
    rm -f "$dir"/rank* "$dir/stop"
    ranks=()
    for host in 0 1; do
        at host$host env BANYAN_TABLE="$folder/host$host.table" BANYAN_JOB=1 BANYAN_TRANSPORT=shm BANYAN_SHM="$shared" BANYAN_LOG=0 BANYAN_TIMEOUT=$((8 + slow)) \
            timeout 900 "$tenant" "$dir/rank$host" "$dir/stop" >"$dir/rank$host.out" 2>&1 &
        ranks+=($!)
    done
    children=("${ranks[@]}")
    for ((i = 0; i < 600; i++)); do [ "$(done_by 1)" -gt 2 ] && break; sleep 0.05; done
    refused "shm: memory of huge pages that may run out" 1 "huge pages" "$shm_attack" huge "$door" 9
    check "shm: keys are not in the memory that a host can map" "$shm_attack" keys "$door" 9 "$folder/switch0.table"
    check "shm: a host that rings without end and takes no bell" "$shm_attack" deaf "$door" 9
    one=$(done_by 1)
    for ((i = 0; i < 600; i++)); do [ "$(done_by 1)" -gt $((one + 2)) ] && break; sleep 0.05; done
    if [ "$(done_by 1)" -gt $((one + 2)) ]; then pass "shm: the job goes on"; else fail "shm: the job goes on" "$dir"/rank*.out; fi
    touch "$dir/stop"
    status=0
    for pid in "${ranks[@]}"; do wait "$pid" || status=1; done
    children=()
    if [ $status -eq 0 ]; then pass "shm: the job is right: $(cat "$dir/rank0.out")"; else fail "shm: the job is right" "$dir"/rank*.out; fi
fi
