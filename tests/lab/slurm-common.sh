# shellcheck shell=bash disable=SC2034,SC2154
# A cluster of Slurm on the hosts of a lab, for lab-slurm.sh, after lab-common.sh and with $lab set:
# each host of the lab, a namespace, is a node with its own slurmd, and the namespace of the network
# beside it has slurmctld (as the user slurm) and one more node that is not in the fabric. All
# daemons have their configuration, keys and state in $dir.
slurm=$dir/slurm
plugin=$build/lib/banyan/slurm
daemons=()

# within NAMESPACE HOSTNAME COMMAND...: executes the command as on a machine of that name.
within() {
    local namespace=$1 hostname=$2
    shift 2
    exec ip netns exec "$namespace" unshare --uts sh -c \
        'hostname "$1"; mount --bind "$2" /etc/hosts; export SLURM_CONF="$3"; shift 3; exec "$@"' within "$hostname" "$slurm/hosts" "$slurm/slurm.conf" "$@"
}
# on_head COMMAND...: runs a command of Slurm's users where slurmctld is.
on_head() { (cd "$slurm" && within "$outside" head timeout --kill-after=5 "${limit:-60}" "$@"); }

# configure HOSTS
configure() {
    local i
    mkdir -p "$slurm"/{munge,state,spool,jobs}
    chmod 711 "$dir"
    chmod 755 "$slurm" "$slurm/munge"
    chmod 777 "$slurm/jobs"
    chown slurm "$slurm/state"
    for ((i = 0; i < $1; i++)); do
        mkdir -p "$slurm/spool/host$i" "$slurm/tmp/host$i"
        echo "$subnet.$((i + 1)) host$i"
    done >"$slurm/hosts"
    mkdir -p "$slurm/spool/stranger" "$slurm/tmp/stranger"
    printf '%s\n' "$subnet.100 head stranger" "127.0.0.1 localhost" >>"$slurm/hosts"
    # CPUs are more than this machine has, because the tests share nodes; tmp: PMIx.
    cat >"$slurm/slurm.conf" <<CONF
ClusterName=banyan
SlurmctldHost=head($subnet.100)
SlurmUser=slurm
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$slurm/munge/socket
CredType=cred/munge
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool/%n
TmpFS=$slurm/tmp/%n
SlurmctldPidFile=$slurm/state/slurmctld.pid
SlurmdPidFile=$slurm/spool/%n/slurmd.pid
SlurmctldPort=6817
SlurmdPort=6818
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0
ReturnToService=2
KillWait=2
MessageTimeout=10
PlugStackConfig=$slurm/plugstack.conf
PrologSlurmctld=$slurm/jobs/slurmctld-script
EpilogSlurmctld=$slurm/jobs/slurmctld-script
NodeName=host[0-$(($1 - 1))] NodeAddr=$subnet.[1-$1] CPUs=8 State=UNKNOWN
NodeName=stranger NodeAddr=$subnet.100 CPUs=8 State=UNKNOWN
PartitionName=fabric Nodes=host[0-$(($1 - 1))] Default=YES MaxTime=INFINITE State=UP
PartitionName=all Nodes=ALL MaxTime=INFINITE State=UP
CONF
    echo "CgroupPlugin=cgroup/v1" >"$slurm/cgroup.conf"
    cat >"$slurm/jobs/banyan.conf" <<CONF
# where banyand is
banyand = unix:$folder/banyand.socket
collectives = allreduce,broadcast
slurm_conf = $slurm/slurm.conf
wait = 20
CONF
    cat >"$slurm/jobs/slurmctld-script" <<SCRIPT
#!/bin/sh
export BANYAN_SLURM_CONF=$slurm/jobs/banyan.conf PATH=$build/bin:/usr/sbin:/usr/bin:/sbin:/bin
exec $plugin/banyan-slurm "\$@" >>$slurm/state/script.out 2>&1
SCRIPT
    chmod 755 "$slurm/jobs/slurmctld-script"
    stack ""
}
# stack SETTINGS: the plugin with these settings.
stack() { echo "required $plugin/banyan.so controller=unix:$folder/members.sock $1" >"$slurm/plugstack.conf"; }

# head_up: the address of slurmctld, and the service by which Slurm's programs know users.
head_up() {
    ip -n "$outside" addr add "$subnet.100/24" dev br0 && ip -n "$outside" link set lo up || return 1
    head -c 128 /dev/urandom >"$slurm/munge/key"
    chmod 600 "$slurm/munge/key"
    munged --foreground --force --key-file="$slurm/munge/key" --socket="$slurm/munge/socket" --pid-file="$slurm/munge/pid" \
        --log-file="$slurm/munge/log" --seed-file="$slurm/munge/seed" >"$slurm/munge/out" 2>&1 &
    children+=($!)
    for ((i = 0; i < 600; i++)); do [ ! -S "$slurm/munge/socket" ] || return 0; sleep 0.05; done
    return 1
}
# slurmctld_up: starts it; $slurmctld is its process.
slurmctld_up() {
    (within "$outside" head setpriv --reuid slurm --regid slurm --init-groups slurmctld -D -f "$slurm/slurm.conf") >>"$slurm/slurmctld.out" 2>&1 &
    slurmctld=$!
    children+=($!)
}
# slurmd_up NAMESPACE NODE
slurmd_up() {
    (within "$1" "$2" slurmd -D -N "$2" -f "$slurm/slurm.conf") >"$slurm/slurmd.$2.out" 2>&1 &
    children+=($!)
}
# nodes_idle COUNT: waits until that many nodes are idle.
nodes_idle() {
    local i
    for ((i = 0; i < 600; i++)); do
        [ "$(on_head sinfo -h -p all -t idle -o %D 2>/dev/null)" != "$1" ] || return 0
        sleep 0.1
    done
    on_head sinfo
    cat "$slurm"/*.out
    return 1
}
cluster_up() { # cluster_up HOSTS
    local i
    configure "$1" && head_up || return 1
    slurmctld_up
    for ((i = 0; i < $1; i++)); do slurmd_up "lab-$lab-host$i" "host$i"; done
    slurmd_up "$outside" stranger
    nodes_idle $(($1 + 1))
}
# cluster_down: ends what runs in the namespaces, which are this script's: steps and their tasks
# outlive slurmd.
cluster_down() {
    local namespace pid
    for namespace in $(ip netns list | sed -n "s/^\(lab-$lab-host[0-9]*\|$outside\)\b.*/\1/p"); do
        for pid in $(ip netns pids "$namespace"); do kill -KILL "$pid" 2>/dev/null; done
    done
}
