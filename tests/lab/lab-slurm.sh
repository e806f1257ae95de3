#!/usr/bin/env bash
# srun --banyan: a job of Slurm gets a job of banyand for its hosts, its tasks sum through real
# switches, and the slots are given back at its end, whatever ends it. Hosts of the lab are nodes of
# Debian's Slurm, each with its own slurmd.
#   lab-slurm.sh BUILD
# TIMELIMIT=1 adds what takes long: a time limit, and mpirun in the shell of salloc.
. "$(dirname "$0")/lab-common.sh" lab-slurm "$@"
need_root
for program in slurmctld slurmd srun munged mpirun.openmpi; do
    command -v $program >/dev/null || { echo "lab-slurm: skipped: $program is missing: make lab-slurm installs it" >&2; exit 77; }
done
[ -e "$build/lib/banyan/slurm/banyan.so" ] || { echo "lab-slurm: skipped: the plugin is not built: make slurm" >&2; exit 77; }
# shellcheck source=tests/lab/slurm-common.sh
. "$(dirname "$0")/slurm-common.sh"

hosts=4
lab=
cleanup_more() {
    [ -z "$lab" ] || cluster_down
    down_of "$dir/up.out"
    outside_down
}

"$banyan" topo leafspine >"$dir/fabric.json"
if ! "$banyan" lab up "$dir/fabric.json" --controller --collective allreduce >"$dir/up.out" 2>&1; then
    fail "a lab with a controller" "$dir/up.out"
    finish
fi
lab=$(id_of "$dir/up.out")
folder=/run/banyan/lab-$lab
at=unix:$folder/banyand.socket
# As docs/slurm.md says: slurmctld's user may use the socket.
reachable() { chmod 711 "$folder" && chgrp slurm "$folder/banyand.socket" && chmod 660 "$folder/banyand.socket"; }
reachable
"$banyan" job end 1 --controller "$at" >"$dir/check.out" 2>&1 || fail "the lab's own job ends" "$dir/check.out"
outside_up "$lab" $hosts || { fail "a network beside the lab"; finish; }
cluster_up $hosts >"$dir/check.out" 2>&1 || { fail "a cluster of Slurm" "$dir/check.out"; finish; }
pass "a cluster of Slurm: $(slurmd -V), $hosts nodes and one outside the fabric"

jobs() { "$banyan" job list --controller "$at"; }
# free WHAT: passes when no job of banyand is left, within 30 s.
free() {
    local i begin
    begin=$(date +%s%N)
    for ((i = 0; i < 300; i++)); do
        if jobs >"$dir/jobs.out" 2>&1 && grep -q "no job is running" "$dir/jobs.out"; then
            pass "$1: no slots are held after $((($(date +%s%N) - begin) / 1000000)) ms"
            return
        fi
        sleep 0.1
    done
    fail "$1" "$dir/jobs.out" "$slurm/slurmctld.out" "$slurm/state/script.out"
}
# until WHAT REGEX FILE: waits at most 20 s for a line.
until_line() {
    local i
    for ((i = 0; i < 200; i++)); do grep -Eqs "$1" "$2" && return; sleep 0.1; done
    return 1
}
# summed WHAT REGEX SRUN-WORD...: passes if a step of srun succeeds, with every element right and a
# line that matches.
summed() {
    local what=$1 regex=$2
    shift 2
    if on_head srun "$@" >"$dir/run.out" 2>&1 && grep -q '# Out of bounds values : 0 OK' "$dir/run.out" && grep -Eq "$regex" "$dir/run.out"; then
        pass "$what"
    else
        fail "$what" "$dir/run.out" "$slurm/state/script.out"
    fi
}
perf="$build/bin/banyan-perf -c allreduce -b 64K -e 256K -n 2"
ours='rank 0 of 4 \(host0\): offloaded: '

# shellcheck disable=SC2086 # $perf and $long are words
collectives() {
    summed "srun --banyan with PMI-2" "$ours" --banyan -N 4 --mpi=pmi2 $perf
    free "at its end"
    summed "with PMIx, and a share" "$ours" --banyan=25% -N 4 --mpi=pmix $perf
    on_head scontrol show job >"$dir/check.out"
    grep -q 'AdminComment=banyan: job 1' "$dir/check.out" && pass "scontrol shows the job of banyand" || fail "scontrol shows the job of banyand" "$dir/check.out"
    summed "--banyan=no: between the hosts" "between hosts|transport tcp" --banyan=no -N 4 --mpi=pmix env BANYAN_OFFLOAD=off $perf

    mpicc.openmpi -O2 -I. -o "$dir/collectives" tests/lab/mpi/collectives.c >"$dir/run.out" 2>&1 || { fail "an MPI program" "$dir/run.out"; return; }
    # docs/slurm.md: without this fence a tenth of the runs of Open MPI ends in MPI_Init.
    on_head env SLURM_PMIX_FENCE=tree OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=out0 OMPI_MCA_mpi_yield_when_idle=1 \
        srun --banyan -N 4 --mpi=pmix "$build/bin/banyan-run" "$dir/collectives" >"$dir/run.out" 2>&1
    status=$?
    count=$(sed -n 's/^banyan: MPI: \([0-9]*\).* calls offloaded.*/\1/p' "$dir/run.out")
    if [ $status -eq 0 ] && grep -q right "$dir/run.out" && ! grep -q WRONG "$dir/run.out" && [ "${count:-0}" -ge 20 ]; then
        pass "an unmodified program of Open MPI under srun: $count calls offloaded"
    else
        fail "an unmodified program of Open MPI under srun" "$dir/run.out"
    fi
    free "after these"
}

# submit SBATCH-WORD...: a batch script; waits for its end, and returns its exit status. (sbatch
# --wait looks every few seconds.)
submit() {
    local id i state
    id=$(on_head sbatch --parsable "$@") || return
    for ((i = 0; i < 300; i++)); do
        state=$(on_head scontrol show job "$id" | sed -n 's/.*JobState=\([A-Z]*\).*/\1/p')
        case $state in PENDING | CONFIGURING | RUNNING | COMPLETING) sleep 0.1 ;; *) break ;; esac
    done
    echo "$state"
    [ "$state" = COMPLETED ]
}
# A batch script: its steps, a step on some of the nodes, one without banyan, and mpirun.
batch() {
    cat >"$slurm/jobs/batch" <<SCRIPT
#!/bin/sh
echo "script: \$BANYAN_JOB on \$BANYAN_NODE"
srun --mpi=pmi2 $perf
srun -N 2 -n 2 sh -c 'echo "part: job \${BANYAN_JOB:-none}, \$BANYAN_OFFLOAD"'
srun --banyan=no sh -c 'echo "without: job \${BANYAN_JOB:-none}"'
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
$build/bin/banyan-run mpirun.openmpi --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include out0 --mca oob_tcp_if_include out0 $dir/collectives
SCRIPT
    submit --banyan -N 4 --ntasks-per-node=1 -o "$slurm/jobs/batch.out" "$slurm/jobs/batch" >"$dir/run.out" 2>&1
    status=$?
    [ $status -eq 0 ] && pass "a batch script with --banyan ends" || fail "a batch script with --banyan ends: $status" "$dir/run.out" "$slurm/jobs/batch.out"
    refused "its script has the job" 0 "script: 1 on host0" cat "$slurm/jobs/batch.out"
    refused "a step in it is offloaded" 0 "rank 0 of 4 (host0): offloaded" cat "$slurm/jobs/batch.out"
    refused "a step on two of its nodes runs without it" 0 "part: job none, off" cat "$slurm/jobs/batch.out"
    refused "and the user reads why" 0 "only some of the nodes of its job 1" cat "$slurm/jobs/batch.out"
    refused "a step with --banyan=no has no job" 0 "without: job none" cat "$slurm/jobs/batch.out"
    grep -Eq '^banyan: MPI: [1-9][0-9]+ .*calls offloaded' "$slurm/jobs/batch.out" && pass "mpirun in it is offloaded" ||
        fail "mpirun in it is offloaded" "$slurm/jobs/batch.out"
    free "at the end of the batch script"
}

# mpirun where no node is: its daemons and ranks are all on nodes.
from_salloc() {
    [ -n "${TIMELIMIT:-}" ] || return 0
    on_head env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 salloc --banyan -N 4 --ntasks-per-node=1 "$build/bin/banyan-run" mpirun.openmpi \
        --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include out0 --mca oob_tcp_if_include "$subnet.0/24" "$dir/collectives" >"$dir/run.out" 2>&1
    free "at the end of salloc"
    grep -Eq '^banyan: MPI: [1-9][0-9]+ .*calls offloaded' "$dir/run.out" && pass "mpirun in the shell of salloc is offloaded" ||
        fail "mpirun in the shell of salloc is offloaded" "$dir/run.out"
}

# start NAME SRUN-WORD...: a long step in the background, with output in $dir/NAME.out; waits until
# it has begun.
declare -A step=()
start() {
    local name=$1
    shift
    : >"$dir/$name.out"
    # shellcheck disable=SC2086
    (on_head srun --job-name="$name" --mpi=pmix "$@" $long) >"$dir/$name.out" 2>&1 &
    step[$name]=$!
    children+=($!)
    until_line 'offloaded: ' "$dir/$name.out"
}
id_of_step() { on_head squeue -h -n "$1" -o %A; }
# ended NAME: the exit status of the step.
ended() { wait "${step[$1]}"; }

two_at_once() {
    # They hold their slots until the others have been refused.
    rm -f "$slurm/jobs/go"
    printf '#!/bin/sh\n%s || exit\nwhile [ ! -e %s/jobs/go ]; do sleep 0.05; done\n' "$build/bin/banyan-perf -c allreduce -b 256K -e 256K -n 100" "$slurm" >"$slurm/jobs/holds"
    chmod 755 "$slurm/jobs/holds"
    long=$slurm/jobs/holds
    start first --banyan=1/2 -N 4 || fail "a job of half the links" "$dir/first.out"
    start second --banyan=1/4 -N 2 -w host0,host1 || fail "a job of a quarter beside it" "$dir/second.out"
    jobs >"$dir/jobs.out"
    [ "$(grep -c '^job [12] slurm-[0-9]*: running' "$dir/jobs.out")" = 2 ] && pass "two jobs of Slurm have two jobs of banyand" || fail "two jobs of Slurm have two jobs of banyand" "$dir/jobs.out"
    # shellcheck disable=SC2086
    summed "a third one that does not fit runs without, and its user reads what would fit" "a share of 1/4 would fit; it runs without the switches" --banyan=1/2 -N 4 --mpi=pmix $perf
    on_head scontrol show job >"$dir/check.out"
    grep -q 'AdminComment=banyan: .*a share of 1/4 would fit' "$dir/check.out" && pass "scontrol shows the same reason" || fail "scontrol shows the same reason" "$dir/check.out"
    stack "refused=fail"
    refused "with refused=fail it does not run" 1 "a share of 1/4 would fit; refused, as plugstack.conf requires" on_head srun --banyan=1/2 -N 4 echo started
    grep -q started "$dir/check.out" && fail "nor does its program" "$dir/check.out"
    printf '#!/bin/sh\necho started\n' >"$slurm/jobs/batch"
    submit --banyan=1/2 -N 4 -o "$slurm/jobs/batch.out" "$slurm/jobs/batch" >"$dir/run.out" 2>&1
    status=$?
    if [ $status -ne 0 ] && grep -q "would fit; refused" "$slurm/jobs/batch.out" && ! grep -q started "$slurm/jobs/batch.out"; then
        pass "nor does a batch script, whose output has the reason"
    else
        fail "nor does a batch script: $status" "$dir/run.out" "$slurm/jobs/batch.out"
    fi
    refused "a job without --banyan runs" 0 "started" on_head srun -N 2 echo started
    stack ""
    touch "$slurm/jobs/go"
    for name in first second; do
        if ended $name && grep -q '# Out of bounds values : 0 OK' "$dir/$name.out"; then pass "the $name job's sums are right"; else fail "the $name job's sums are right" "$dir/$name.out"; fi
    done
    free "at the end of both"
}

wrong_use() {
    refused "a share that is none" 255 "--banyan=bananas: give a share of the links" on_head srun --banyan=bananas -N 1 true
    refused "a share that banyand refuses" 0 "banyan: --share is '7/2'" on_head srun --banyan=7/2 -N 2 true
    refused "a node that is not in the fabric" 0 "stranger" on_head srun -p all -N 2 -w host0,stranger --banyan true
    printf '#!/bin/sh\nsrun --banyan true\n' >"$slurm/jobs/batch"
    submit -N 2 -o "$slurm/jobs/batch.out" "$slurm/jobs/batch" >/dev/null 2>&1
    refused "a step that asks too late" 0 "give --banyan when it is submitted" cat "$slurm/jobs/batch.out"
    stack "refuse=fail"
    refused "a setting that is none" 1 "'refuse=fail' is not a setting" on_head srun -N 1 true
    echo "required $plugin/banyan.so" >"$slurm/plugstack.conf"
    refused "no address of banyand" 1 "controller=ADDRESS is missing" on_head srun -N 1 true
    stack "default=yes keys=/etc/banyan/keys"
    refused "default=yes, and keys" 0 "keys /etc/banyan/keys" on_head srun -N 2 -n 2 sh -c 'echo "job $BANYAN_JOB keys $BANYAN_KEYS"'
    stack ""
    on_head setpriv --reuid 65534 --regid 65534 --clear-groups srun --banyan -N 2 sh -c 'echo "user $(id -u) job $BANYAN_JOB node $BANYAN_NODE"' >"$dir/run.out" 2>&1
    grep -q 'user 65534 job 1 node host1' "$dir/run.out" && pass "an ordinary user's job" || fail "an ordinary user's job" "$dir/run.out"
    free "after all these"
    "$banyan" job create -c allreduce --name slurm-99998 --controller "$at" >"$dir/run.out" 2>&1
    sweep
    refused "a sweep says what it ends" 0 "job 1 of banyand is ended: job 99998 of Slurm is over" cat "$slurm/state/script.out"
    "$banyan" job create -c allreduce --share 1 --name slurm-99999 --controller "$at" >"$dir/run.out" 2>&1
    # shellcheck disable=SC2086
    summed "the slots of a job that Slurm has forgotten are used" "$ours" --banyan=1/2 -N 4 --mpi=pmi2 $perf
    free "and given back"
}

sweep() { (within "$outside" head "$slurm/jobs/slurmctld-script" sweep); }
# saved NAME: waits until slurmctld has saved this job, which it does a few seconds after a change.
saved() {
    local i
    touch "$slurm/jobs/now"
    on_head scontrol update "JobId=$(id_of_step "$1")" Comment=saved
    for ((i = 0; i < 150; i++)); do [ ! "$slurm/state/job_state" -nt "$slurm/jobs/now" ] || return 0; sleep 0.1; done
    return 1
}
# However a job ends, its slots are given back.
ends() {
    long="$build/bin/banyan-perf -c allreduce -b 256K -e 256K -n 100000"
    start cancelled --banyan=1/2 -N 4 || fail "a job to be cancelled" "$dir/cancelled.out"
    on_head scancel "$(id_of_step cancelled)"
    free "a cancelled job"
    ended cancelled 2>/dev/null
    start crashed --banyan=1/2 -N 4 || fail "a job whose slurmstepd is killed" "$dir/crashed.out"
    for pid in $(ip netns pids "lab-$lab-host2"); do [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != slurmstepd ] || kill -KILL "$pid"; done
    on_head scancel --name crashed
    ended crashed 2>/dev/null
    free "a job whose slurmstepd was killed on a host"
    for pid in $(ip netns pids "lab-$lab-host2"); do [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != banyan-perf ] || kill -KILL "$pid"; done
    start restarted --banyan=1/2 -N 4 || fail "a job during a restart of slurmctld" "$dir/restarted.out"
    saved restarted || fail "slurmctld saves its jobs" "$slurm/slurmctld.out"
    kill -KILL "$slurmctld"
    wait "$slurmctld" 2>/dev/null
    slurmctld_up
    check "slurmctld is killed, and starts again" nodes_idle 1
    check "a sweep succeeds" sweep
    jobs | grep -q '^job 1 slurm-[0-9]*: running' && pass "the job still has its slots after it" || fail "the job still has its slots after it"
    on_head scancel --name restarted
    free "a job that is cancelled after that"
}

# A job whose controller is killed ends; its slots are given back when the controller is there again.
controller_restarts() {
    long="$build/bin/banyan-perf -c allreduce -b 256K -e 256K -n 100000"
    start orphaned --banyan=1/2 -N 4 || fail "a job whose controller is killed" "$dir/orphaned.out"
    kill -KILL "$(sed -n 's/^process \([0-9]*\) [0-9]* banyand$/\1/p' "$folder/state")"
    on_head scancel --name orphaned
    ended orphaned 2>/dev/null
    refused "without a controller a job runs, and its user reads why" 0 "check that banyand runs" on_head srun --banyan -N 2 true
    "$build/bin/banyand" "$folder/topology.json" --sockets "$folder" --state "$folder" --members "unix:$folder/members.sock" \
        --socket "$folder/banyand.socket" --http 0 >"$dir/again.out" 2>&1 &
    children+=($!)
    until_line ready "$dir/again.out" && grep -q ' 1 jobs run' "$dir/again.out" && pass "the controller starts again with the job" ||
        fail "the controller starts again with the job" "$dir/again.out"
    reachable
    free "the epilog ends it there"
}

# Slurm checks time limits every half minute.
time_limit() {
    [ -n "${TIMELIMIT:-}" ] || return 0
    long="$build/bin/banyan-perf -c allreduce -b 256K -e 256K -n 1000000"
    limit=150 start limited --banyan=1/2 -N 4 --time=1 || fail "a job with a time limit" "$dir/limited.out"
    ended limited 2>/dev/null
    grep -q 'DUE TO TIME LIMIT' "$dir/limited.out" && pass "the time limit ends a job" || fail "the time limit ends a job" "$dir/limited.out"
    free "a job that its time limit has ended"
}

collectives
batch
from_salloc
two_at_once
wrong_use
ends
time_limit
controller_restarts
finish
