# shellcheck shell=bash disable=SC2154
# Keys over the life of a controller: what the hosts of a job keep after its end is useless against
# a later job with the same number. Sourced by lab-attacks.sh, whose lab of five hosts is up and
# whose functions it uses.

mode=tenants
controller=unix:$dir/banyand.sock
banyand_start() {
    rm -f "$dir/banyand.out" # the line of the one before is not this one's
    "$build/bin/banyand" "$dir/star5.json" --sockets "/run/banyan/lab-$id" --state "$dir/banyand" --keyed --socket "${controller#unix:}" \
        --members "unix:$dir/members.sock" --http off >"$dir/banyand.out" 2>"$dir/banyand.err" &
    banyand=$!
    children+=("$banyand")
    for ((i = 0; i < 1200; i++)); do grep -q ready "$dir/banyand.out" && return; sleep 0.05; done
    fail "$mode: the controller starts" "$dir/banyand.err"
}
banyand_stop() { if ! { kill -TERM "$banyand" && wait "$banyand"; }; then fail "$mode: the controller ends" "$dir/banyand.err"; fi; }
# tenants_come TABLE: starts job 1 on hosts 0 and 1, then writes the switch's table to TABLE.
tenants_come() {
    local host i
    "$banyan" job create -c allreduce --job 1 --ranks host0,host1 --controller "$controller" >"$dir/check.out" 2>&1 || fail "$mode: a job comes" "$dir/check.out"
    rm -f "$dir"/rank* "$dir/stop"
    ranks=()
    for host in 0 1; do
        at host$host env BANYAN_CONTROLLER="unix:$dir/members.sock" BANYAN_NODE=host$host BANYAN_JOB=1 BANYAN_TRANSPORT=udp BANYAN_LOG=0 BANYAN_TIMEOUT=$((8 + slow)) \
            timeout 900 "$tenant" "$dir/rank$host" "$dir/stop" >"$dir/rank$host.out" 2>&1 &
        ranks+=($!)
    done
    children+=("${ranks[@]}")
    for ((i = 0; i < 200; i++)); do
        [ "$(done_by 1)" -le 2 ] || break
        sleep 0.05
    done
    if ! "$banyan" show "$socket" -o "$1" >/dev/null || [ "$(done_by 1)" -le 2 ]; then fail "$mode: the job runs" "$dir"/rank*.out "$dir/banyand.err"; fi
}
tenants_go() { # tenants_go STATUS WHAT: the job ends; its ranks were right (0), or one was not (1)
    local status=0
    jobs_stop || status=1
    if [ $status -eq "$1" ]; then pass "$mode: $2: $(grep -h . "$dir/rank0.out" | head -n 1 | cut -c1-90)"; else fail "$mode: $2" "$dir"/rank*.out; fi
    "$banyan" job end 1 --controller "$controller" >"$dir/check.out" 2>&1 || fail "$mode: a job goes" "$dir/check.out"
}

# A controller continues from the generations of the tables that it finds. From here on there are no
# tables of another controller.
banyand_start
tenants_come "$dir/first.table"
tenants_go 0 "a job is right on a switch that had other tables"
banyand_stop
banyand_start
tenants_come "$dir/first.table"
tenants_go 0 "the first job is right"
banyand_stop
banyand_start
table=$dir/second.table
tenants_come "$table"
tried "forged under the key of a job that has ended, since when the controller has started again" drop_key \
    host0 next --iface eth0 --job 1 --child 0 --former "$dir/first.table"
tenants_go 0 "the second job is right after that"
table=$dir/third.table
tenants_come "$table"
tried "forged under the key of the job before" drop_key host0 next --iface eth0 --job 1 --child 0 --former "$dir/second.table"
tenants_go 0 "the third job is right after that"
# Control experiment: packets under the job's own key are accepted.
table=$dir/fourth.table
tenants_come "$table"
before=$(counter drop_key)
at host0 "$attack" next --iface eth0 --job 1 --child 0 --count 3000 --table "$table" --former "$table" >"$dir/attack.out" 2>&1
moved=$(($(counter drop_key) - before))
if [ $moved -eq 0 ]; then pass "$mode: forged under the job's own key: all accepted"; else fail "$mode: forged under the job's own key: drop_key +$moved" "$dir/attack.out"; fi
tenants_go 1 "which spoils the job, as any holder of its key can"
banyand_stop
