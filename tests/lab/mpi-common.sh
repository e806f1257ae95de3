# shellcheck shell=bash disable=SC2034,SC2154
# What the labs with MPI programs share: `. mpi-common.sh`, after lab-common.sh. Skips without the
# MPIs.
for mpi in openmpi mpich; do
    command -v mpirun.$mpi >/dev/null || { echo "$name: skipped: mpirun.$mpi is missing: make mpi" >&2; exit 77; }
done

hosts=4
lab=
controller=
cleanup_more() {
    [ -z "$lab" ] || "$banyan" lab down "$lab" >/dev/null 2>&1
    outside_down
}

# The lab, and a bridge that joins its hosts apart from its links. With options for `lab up`; with
# --controller programs get their tables from banyand, at $controller.
fabric_up() {
    "$banyan" topo star --hosts $hosts >"$dir/star.json"
    "$banyan" lab up "$dir/star.json" "$@" >"$dir/up.out" 2>&1 || return 1
    controller=$(sed -n 's/.* env BANYAN_CONTROLLER=\([^ ]*\) .*/\1/p' "$dir/up.out" | head -n 1)
    lab=$(sed -n 's/^# lab \([0-9]*\) is up.*/\1/p' "$dir/up.out")
    [ -n "$lab" ] || return 1
    outside_up "$lab" $hosts || return 1
    launch_agent "$lab" $hosts
}

# Ends what a run has left on the hosts after a launcher was killed or lost a rank: it would occupy
# the addresses of the next run.
clear_hosts() {
    local i pid
    for ((i = 0; i < hosts; i++)); do
        for pid in $(ip netns pids "lab-$lab-host$i"); do
            kill -KILL "$pid" 2>/dev/null
            while runs "$pid"; do sleep 0.05; done
        done
    done
}

# The variables that Open MPI's mpirun passes on: banyan-run sets the table, the caller sets the
# others (environment="A=B C=D").
env_options() {
    local setting
    if [ -n "$controller" ]; then printf -- '-x BANYAN_CONTROLLER'; else printf -- '-x BANYAN_TABLE'; fi
    printf -- ' -x BANYAN_LOG'
    for setting in ${environment:-}; do printf -- ' -x %s' "${setting%%=*}"; done
}

# The command that starts $each ranks (default 1) on each of $machines hosts (default: all), or as
# many as $uneven lists for each host, $ranks in all (default: as many as hosts). by=node deals them
# out over the hosts.
launcher_of() { # openmpi|mpich
    local each=${each:-1} list i slots counts
    list=$(address_list "${machines:-$hosts}")
    slots=${list//,/:$each,}:$each
    if [ -n "${uneven:-}" ]; then
        IFS=, read -ra counts <<<"$uneven"
        slots=$subnet.1:${counts[0]}
        for ((i = 1; i < hosts; i++)); do slots=$slots,$subnet.$((i + 1)):${counts[i]}; done
        list=$slots
    fi
    if [ "$1" = openmpi ]; then
        printf '%s' "mpirun.openmpi -n ${ranks:-$hosts} --host $slots --map-by ${by:-slot} --mca plm_rsh_agent '$dir/agent' --mca pml ob1 --mca btl tcp,self"
        printf '%s' " --mca btl_tcp_if_include out0 --mca oob_tcp_if_include out0 --mca mpi_yield_when_idle 1 --bind-to none $(env_options)"
    else
        printf '%s' "mpirun.mpich -n ${ranks:-$hosts} $([ -n "${uneven:-}" ] || { [ "${by:-slot}" = node ] && echo "-ppn 1" || echo "-ppn $each"; }) -launcher rsh -launcher-exec '$dir/agent' -iface out0 -hosts $list"
    fi
}
# What every program under an MPI has in its environment. MPICH's own messages use memory that the
# namespaces share. Over TCP, MPI_Finalize of MPICH 4.0 does not return in half of all runs, with or
# without banyan: a rank that has closed its connections waits for the launcher, and does not answer
# a rank that still closes its own. $idle is a library for LD_PRELOAD under MPICH (mpi/idle.c).
settings_of() { # openmpi|mpich
    printf '%s' "HOME='$dir' TMPDIR='$dir' OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 UCX_TLS=posix,self"
    [ "$1" != mpich ] || [ -z "${idle:-}" ] || printf '%s' " LD_PRELOAD='$idle'"
}

# launch openmpi|mpich WORD...: a program started by the launcher of an MPI, without banyan, tables
# or settings. Output: $dir/run.out
launch() {
    local mpi=$1
    shift
    timeout --kill-after=5 ${limit:-120} "$dir/agent" $subnet.1 "export $(settings_of "$mpi") ; \
exec $(environment='' launcher_of "$mpi" | sed 's/-x BANYAN_[A-Z]*//g') $*" >"$dir/run.out" 2>&1 </dev/null
    local status=$?
    clear_hosts
    return $status
}

# run openmpi|mpich WORD...: for at most $limit seconds (default 300), runs one rank on each host
# under banyan-run, always on the same tables.
# Output: $dir/run.out. The counts of the plugin are appended to $dir/counts, and why communicators
# got no trees to $dir/refusals.
run() {
    local mpi=$1 words status
    shift
    words="export $(settings_of "$mpi") ${environment:-} ; exec '$build/bin/banyan-run'"
    if [ -n "$controller" ]; then words="export BANYAN_CONTROLLER=$controller; $words"; else words+=" --table /run/banyan/lab-$lab"; fi
    words+=" $(launcher_of "$mpi")"
    timeout --kill-after=5 ${limit:-300} "$dir/agent" $subnet.1 "export BANYAN_LOG=1; $words $*" >"$dir/run.out" 2>&1 </dev/null
    status=$?
    sed -n 's/^banyan: MPI: \([0-9].*\)/\1/p' "$dir/run.out" >>"$dir/counts"
    sed -n 's/^banyan: MPI: \(a communicator of .* is not offloaded: .*\)/\1/p' "$dir/run.out" >>"$dir/refusals"
    clear_hosts
    return $status
}

# share_of FILE: what the plugin's counts in FILE add up to: the calls offloaded, their part of the
# eligible, and those left to MPI by reason. Not eligible are calls that trees cannot execute, those
# without another host, and those that the program has not made.
share_of() {
    awk -v own="MPI's own" '
        { line = $0; sub(/ .*/, "", line); offloaded += line
          rest = $0; sub(/.*calls offloaded, /, "", rest)
          if (rest !~ /\(/) next
          sub(/^[^(]*\(/, "", rest); sub(/\).*/, "", rest)
          for (i = split(rest, parts, ", "); i > 0; i--) {
              count = parts[i]; sub(/.* /, "", count); sub(/ [0-9]*$/, "", parts[i]); left[parts[i]] += count
          } }
        END {
            split("operator,type,no data,scan,persistent,ranks of one host," own, list, ",")
            for (i in list) out[list[i]]
            eligible = offloaded
            for (reason in left) if (!(reason in out)) eligible += left[reason]
            printf "%d offloaded, %s of %d eligible", offloaded, eligible ? sprintf("%.1f %%", 100 * offloaded / eligible) : "none", eligible
            while (1) {
                most = ""
                for (reason in left) if (most == "" || left[reason] > left[most]) most = reason
                if (most == "") break
                printf "%s%s %d", separator == "" ? "; left to MPI: " : ", ", most, left[most]
                separator = ","
                delete left[most]
            }
            printf "\n"
        }' "$1"
}

# The number of calls that the plugin reports as offloaded.
offloaded() { sed -n 's/^banyan: MPI: \([0-9]*\).* calls offloaded.*/\1/p' "$dir/run.out"; }
# The same for one collective.
offloaded_of() { sed -nE "s/^banyan: MPI: [0-9]* \(([^)]* )?$1 ([0-9]*)[^)]*\) calls offloaded.*/\2/p" "$dir/run.out"; }

# shown WHAT LEAST COMMAND...: passes if the command succeeds, reports nothing wrong, and at least
# LEAST of its calls were offloaded.
shown() {
    local what=$1 least=$2 count
    shift 2
    "$@"
    local status=$?
    count=$(offloaded)
    if [ $status -eq 0 ] && ! grep -q WRONG "$dir/run.out" && grep -q right "$dir/run.out" && [ "${count:-0}" -ge "$least" ]; then
        pass "$what: $(sed -n 's/^banyan: MPI: \([0-9].*\)/\1/p' "$dir/run.out")"
    else
        echo "(exit status $status; ${count:-no} calls offloaded, at least $least wanted)" >>"$dir/run.out"
        fail "$what" "$dir/run.out"
    fi
}

# left WHAT TEXT COMMAND...: passes if nothing is offloaded, all results are right, and one line
# gives the reason.
left() {
    local what=$1 text=$2
    shift 2
    if "$@" && grep -q right "$dir/run.out" && ! grep -q WRONG "$dir/run.out" && [ "$(offloaded)" = 0 ] &&
        grep -q "^banyan: MPI: not offloaded: .*$text" "$dir/run.out"; then
        pass "$what: $(grep -m1 -o 'not offloaded: .*' "$dir/run.out")"
    else
        echo "(exit status $?; no line with '$text')" >>"$dir/run.out"
        fail "$what" "$dir/run.out"
    fi
}

# beside openmpi|mpich WHAT WORD...: runs a program over banyan and without it. Passes if both
# succeed and the results are alike; the caller defines results_of FILE, which prints those of a run
# with this output, alike FILE FILE, and summary_of FILE FILE: what is printed of both outputs.
# Where it does not end without banyan, it may also not end over it, or end because its ranks called
# different collectives.
beside() {
    local mpi=$1 what=$2 over without counts
    shift 2
    run "$mpi" "$@"
    over=$?
    mv "$dir/run.out" "$dir/over.out"
    results_of "$dir/over.out" >"$dir/over.results"
    counts=$(sed -n 's/^banyan: MPI: \([0-9].*\)/\1/p' "$dir/over.out")
    # without banyan: the same launcher, hosts and network
    launch "$mpi" "$@"
    without=$?
    results_of "$dir/run.out" >"$dir/without.results"
    if [ $over -eq 0 ] && [ $without -eq 0 ] && [ -s "$dir/over.results" ] && alike "$dir/over.results" "$dir/without.results"; then
        pass "$what, $ranks ranks: $(grep -c . "$dir/over.results") lines of results, $(summary_of "$dir/over.out" "$dir/run.out"): $counts"
    elif [ $without -ne 0 ] && { [ $over -eq 0 ] || [ $over -eq 124 ] || [ $over -eq $without ] ||
        grep -q 'the ranks disagree' "$dir/over.out"; }; then
        echo "  note: $what, $ranks ranks: status $without without banyan, and $over over it: $counts"
    else
        { echo "(status $over over banyan, and $without without it)"; diff "$dir/over.results" "$dir/without.results"; } >>"$dir/over.out"
        fail "$what, $ranks ranks" "$dir/over.out"
    fi
}

# ScaLAPACK as Debian packages it for both MPIs: its test of orthogonal factorisations, on a grid of
# 2 x 2. mpi-suite.sh runs its other tests.
scalapack() { # openmpi|mpich
    local folder=/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)/scalapack/$1-tests
    # The test's input with one size of matrix and block, and one grid.
    sed -e '7s/^4/1/' -e '8s/.*/13/' -e '9s/.*/20/' -e '10s/^4/1/' -e '11s/.*/5/' -e '12s/.*/5/' -e '13s/^4/1/' -e '14s/.*/2/' -e '15s/.*/2/' \
        "$folder/QR.dat" >"$dir/QR.dat" || return 1
    run "$1" -wdir "$dir" "$folder/xdqr" && grep -q 'tests completed and passed residual checks' "$dir/run.out" &&
        grep -Eq '^ *0 tests completed and failed' "$dir/run.out" && echo right >>"$dir/run.out"
}

# compared MPI WHAT COMMAND...: passes if the program, which checks its own results, succeeds over
# banyan. If it fails there, it runs again without banyan; if it fails there too, this is noted and
# not counted. With $wanted its output must contain this.
compared() {
    local mpi=$1 what=$2
    shift 2
    if run "$mpi" "$@" && grep -q -- "${wanted:-}" "$dir/run.out"; then
        pass "$what: $(sed -n 's/^banyan: MPI: \([0-9].*\)/\1/p' "$dir/run.out")"
        return
    fi
    mv "$dir/run.out" "$dir/over.out"
    if launch "$mpi" "$@"; then
        fail "$what" "$dir/over.out"
    else
        echo "  note: $what fails without banyan, too: $(grep -v '^ *$' "$dir/run.out" | tail -n 1 | cut -c -100)"
    fi
}

# On a slow machine tables arrive later than half of the usual time limit (5 s).
patient=BANYAN_TIMEOUT=60
# made: how many jobs banyand has made so far.
made() { grep -c 'job [0-9]* runs, generation' "/run/banyan/lab-$lab/banyand.log"; }
# named WHAT COUNT LIMIT PATTERN: passes if COUNT lines of the last run match PATTERN, in which ranks
# print after how many seconds they have got an error, at most LIMIT.
named() {
    if [ "$(grep -cE "$4" "$dir/run.out")" -eq "$2" ] &&
        in_time "$(grep -E "$4" "$dir/run.out" | sed -nE 's/.* after ([0-9.]+) s.*/\1/p' | sort -n | tail -1)" "$3"; then
        pass "$1: $(grep -E "$4" "$dir/run.out" | head -n 1)"
    else
        fail "$1" "$dir/run.out"
    fi
}
