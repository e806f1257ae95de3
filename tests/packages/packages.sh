#!/usr/bin/env bash
# Tests the Debian packages in FOLDER: lintian; a clean Debian root gets them by apt, with nothing of
# this machine; systemd runs there and starts the units; hosts in network namespaces run a job; the
# packages are upgraded meanwhile; then they are removed and purged. Requires root and the mirror of
# apt. The bare root is kept in FOLDER for the next run.
#   packages.sh FOLDER
set -u
cd "$(dirname "$0")/../.."
[ "$(id -u)" -eq 0 ] || { echo "packages.sh: skipped: a root for the test needs root" >&2; exit 77; }
folder=$(realpath "$1")
version=$(dpkg-parsechangelog -S Version)
scratch=$(mktemp -d)
root=$scratch/root
group=banyan-packages-$$
passed=0
failed=0
container=
keeper=
pass() { passed=$((passed + 1)); echo "  PASS   $1"; }
fail() { # fail WHAT [FILE]: the end of the file is shown
    failed=$((failed + 1))
    echo "  FAIL   $1"
    [ $# -lt 2 ] || tail -n 40 "$2" | cut -c -300 | sed 's/^/         | /'
}
check() { # check WHAT COMMAND...
    local what=$1
    shift
    if "$@" >"$scratch/out" 2>&1; then pass "$what"; else fail "$what" "$scratch/out"; fi
}
cleanup() {
    local path
    [ -z "$container" ] || kill -KILL "$container" 2>/dev/null
    [ -z "$keeper" ] || { kill -KILL "$keeper" 2>/dev/null; wait "$keeper" 2>/dev/null; }
    for path in /sys/fs/cgroup/{,unified/,systemd/}"$group"; do
        [ ! -d "$path" ] || for _ in 1 2 3 4 5; do
            find "$path" -depth -type d -exec rmdir {} + 2>/dev/null
            [ -d "$path" ] || break
            sleep 0.5
        done
    done
    rm -rf --one-file-system "$scratch"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM
clean_environment=(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive)
there() { chroot "$root" "${clean_environment[@]}" "$@"; }
inside() { nsenter -t "$container" -m -u -i -n -p -C -r -w "${clean_environment[@]}" "$@"; }

# ---- what needs no root ----
check "lintian finds nothing" lintian --allow-root --fail-on error,warning --suppress-tags-from-file tests/packages/lintian.txt "$folder"/banyan_"$version"_*.changes
for unit in control/service/daemon/banyand.service firmware/linux/banyan-switchd.service; do
    check "$(basename $unit): systemd rates its exposure below 3.0" systemd-analyze security --offline=true --threshold=29 "$unit"
done

# ---- a clean root ----
if [ ! -s "$folder/root.tar" ]; then
    echo "  ROOT   a bare Debian with systemd, from the mirror of apt"
    mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null | grep -m 1 '/debian/\?$')
    mmdebstrap --variant=apt --mode=root --include=systemd,systemd-sysv,iproute2 "$(. /etc/os-release; echo "$VERSION_CODENAME")" \
        "$folder/root.part" ${mirror:+"$mirror"} --format=tar >"$scratch/out" 2>&1 &&
        mv "$folder/root.part" "$folder/root.tar" || { fail "a bare root" "$scratch/out"; echo "$passed passed, $failed failed"; exit 1; }
fi
mkdir "$root"
tar -C "$root" -xpf "$folder/root.tar"
cp /etc/resolv.conf "$root/etc/resolv.conf"
rm -f "$root/usr/sbin/policy-rc.d"
mkdir -p "$root/srv/debs" "$root/srv/next"
cp "$folder"/*_"$version"_*.deb "$root/srv/debs/"
[ -z "$(find "$root" -path "$root/srv" -prune -o -name '*banyan*' -print | head -1)" ] && pass "the root has nothing of banyan" || fail "the root has nothing of banyan"
check "apt finds its mirror" there apt-get -q update
check "apt installs the packages and what they depend on" there sh -c 'cd /srv && exec apt-get install -q -y --no-install-recommends ./debs/*.deb'
for program in banyan banyand banyan-switchd banyan-perf banyan-sim; do
    check "$program runs" there "$program" --version
done
check "each program and format has a manual page" there sh -c 'for p in banyan banyand banyan-switchd banyan-perf banyan-run banyan-plan; do test -s /usr/share/man/man1/$p.1.gz || exit 1; done; test -s /usr/share/man/man5/banyan-topology.5.gz && test -e /usr/share/man/man3/banyan_wait.3.gz'
check "the plugin for Slurm is there, and its prolog does nothing for other jobs" there sh -c 'test -s /usr/lib/banyan/slurm/banyan.so && /usr/lib/banyan/slurm/banyan-slurm prolog'
check "Python finds the library" there /usr/bin/python3 -c 'import banyan; assert banyan.version() == banyan.__version__'
there sh -c 'getent passwd banyand banyan-switchd' >"$scratch/out" && [ "$(wc -l <"$scratch/out")" = 2 ] && pass "the services have users" || fail "the services have users" "$scratch/out"
# Installed after the packages, which do not need it. The kernel here may lack AppArmor: no profile is loaded.
if there apt-get install -q -y --no-install-recommends apparmor >"$scratch/out" 2>&1; then
    for profile in banyand banyan-switchd; do
        check "AppArmor compiles the profile $profile" there apparmor_parser -QK "/etc/apparmor.d/$profile"
        check "and a profile with a fault is refused" there sh -c "! sed 's/^  capability\\|^  network/  netwrok/' /etc/apparmor.d/$profile | apparmor_parser -QK"
    done
else
    echo "  SKIP   AppArmor compiles the profiles: apt has no apparmor"
fi

# ---- systemd runs there ----
tests/packages/container.sh "$root" "$group" >"$scratch/console" 2>&1 &
keeper=$!
for ((i = 0; i < 100; i++)); do
    unshared=$(cat "/proc/$keeper/task/$keeper/children" 2>/dev/null)
    for process in $unshared; do [ "$(cat "/proc/$process/comm")" != systemd ] || container=$process; done
    [ -z "$container" ] || break
    sleep 0.1
done
up() { local i; for ((i = 0; i < 200; i++)); do inside systemctl is-active -q multi-user.target && return; sleep 0.1; done; cat "$scratch/console"; return 1; }
[ -n "$container" ] || { fail "systemd runs as process 1 of the root" "$scratch/console"; echo "$passed passed, $failed failed"; exit 1; }
check "systemd starts" up
check "without configuration neither service starts, and neither has failed" inside sh -c '! systemctl is-active banyand banyan-switchd && ! systemctl is-failed banyand banyan-switchd && systemctl is-enabled banyand banyan-switchd'

complete() { # complete EXPECTED WORD...: completes the last word
    # shellcheck disable=SC2016
    inside bash -c 'expected=$1; shift; . /usr/share/bash-completion/completions/banyan; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _banyan; echo "${COMPREPLY[*]}"; [[ " ${COMPREPLY[*]} " == *" $expected "* ]]' complete "$@"
}
check "bash completes commands" complete plan banyan pl
check "bash completes commands of commands" complete create banyan job cr
check "bash completes options" complete --collective banyan plan fabric.json --col
check "bash completes options of daemons" complete --iface banyan-switchd --if
check "bash completes words of an option" complete af_packet banyan-switchd --driver af

# The commands of the page, as they are there.
mapfile -t steps < <(sed -n '/^## From packages to a verified allreduce/,/^## /p' docs/operate.md | sed -n 's/^ \{4\}[#$] //p')
[ ${#steps[@]} -ge 3 ] && [ ${#steps[@]} -le 5 ] && pass "docs/operate.md needs ${#steps[@]} commands" || fail "docs/operate.md needs at most five commands: ${#steps[@]}"
for step in "${steps[@]}"; do
    case $step in
    apt*) ;; # done above, where the network is
    *) check "newcomer: $step" inside sh -c "cd /srv && $step" ;;
    esac
done
grep -q '^# 0 wrong elements' "$scratch/out" && pass "its allreduce is verified" || fail "its allreduce is verified" "$scratch/out"

# A switch with two ports, a host in a network namespace at each, keys, and a controller.
inside bash -s >"$scratch/out" 2>&1 <<'SETUP'
set -e
for i in 0 1; do
    ip netns add host$i
    ip link add p$i type veth peer name eth0 netns host$i
    ip link set p$i up
    ip -n host$i addr add 10.20.0.$((2 * i + 1))/31 dev eth0
    ip -n host$i link set eth0 up
    ip -n host$i link set lo up
done
ip link set lo up
cd /etc/banyan
banyan topo star --hosts 2 >fabric.json
cat >site.names <<'SITE'
{"format": "banyan-site-1",
 "nodes": [{"name": "switch0", "control": "tls:127.0.0.1:46248"}],
 "links": [
  {"between": ["host0", "switch0"], "ends": [{"interface": "eth0", "address": "10.20.0.1"}, {"interface": "p0", "address": "10.20.0.0"}]},
  {"between": ["host1", "switch0"], "ends": [{"interface": "eth0", "address": "10.20.0.3"}, {"interface": "p1", "address": "10.20.0.2"}]}]}
SITE
banyan keys keys --switch switch0 --controller controller
chmod 755 keys
chown -R banyand keys/controller
chown -R banyan-switchd keys/switch0
echo 'BANYAN_SWITCHD_OPTIONS="--name switch0 --iface p0 --iface p1 --driver ring --control tls:127.0.0.1:46248 --keys /etc/banyan/keys/switch0"' >switchd.conf
echo 'BANYAND_OPTIONS="--site /etc/banyan/site.names --keys /etc/banyan/keys/controller --job 1=allreduce"' >banyand.conf
mkdir -p /etc/systemd/system/banyand.service.d
printf '[Service]\nWatchdogSec=2\n' >/etc/systemd/system/banyand.service.d/test.conf
systemctl daemon-reload
SETUP
[ $? -eq 0 ] && pass "a switch and a controller are configured" || fail "a switch and a controller are configured" "$scratch/out"
service() { # service COMMAND UNIT, with the journal of the console after a failure
    inside systemctl "$1" "$2" || { inside systemctl status --no-pager -l "$2"; tail -n 20 "$scratch/console"; return 1; }
}
check "banyan-switchd starts, and notifies" service start banyan-switchd
check "banyand starts, and notifies" service start banyand
pid_of() { inside systemctl show -P MainPID "$1"; }
state_of() { inside cat "/proc/$(pid_of "$1")/status"; }
user_of() { inside stat -c %U "/proc/$(pid_of "$1")"; }
for unit in banyand banyan-switchd; do
    state_of $unit >"$scratch/out"
    [ "$(user_of $unit)" = $unit ] && grep -q '^NoNewPrivs:	1' "$scratch/out" && grep -q '^Seccomp:	2' "$scratch/out" && pass "$unit runs as its user, with a filter of system calls" || fail "$unit runs as its user, with a filter of system calls" "$scratch/out"
done
capabilities() { state_of "$1" | sed -n 's/^CapEff:	//p'; }
[ "$(capabilities banyand)" = 0000000000000000 ] && pass "banyand has no capability" || fail "banyand has no capability: $(capabilities banyand)"
[ "$(capabilities banyan-switchd)" = 0000008000007000 ] && pass "banyan-switchd has four" || fail "banyan-switchd has four: $(capabilities banyan-switchd)"
check "their state and sockets are closed to others" inside sh -c 'cd / && [ "$(stat -c "%a %U" /var/lib/banyan)" = "700 banyand" ] && [ "$(stat -c "%a %U" /var/lib/banyan-switchd)" = "700 banyan-switchd" ] && [ "$(stat -c %a /run/banyan/banyand.socket)" = 600 ] && [ "$(stat -c %a /run/banyan-switchd/switchd.sock)" = 600 ]'
settled() { local i; for ((i = 0; i < 100; i++)); do inside banyan job list --json | grep -q '"running"' && return; sleep 0.1; done; inside banyan job list; return 1; }
check "root lists the job" settled

# run COUNT: an allreduce at both hosts, with output in $scratch/rank*.
ranks=()
run() {
    local i
    ranks=()
    for i in 0 1; do
        inside ip netns exec "host$i" env BANYAN_CONTROLLER=unix:/run/banyan/members.sock BANYAN_NODE="host$i" banyan-perf --job 1 -c allreduce -b 1M -e 1M -n "$1" -w 0 >"$scratch/rank$i" 2>&1 &
        ranks+=($!)
    done
}
right() { # right WHAT
    local rank status=0
    for rank in "${ranks[@]}"; do wait "$rank" || status=1; done
    if [ $status -eq 0 ] && grep -q '^# Out of bounds values : 0 OK' "$scratch/rank0"; then pass "$1"; else fail "$1" "$scratch/rank0"; fi
}
run 4
right "a job runs between the hosts"

# ---- the next version arrives while a job runs ----
next=$version+1
for package in "$root"/srv/debs/*.deb; do
    dpkg-deb -R "$package" "$scratch/package"
    sed -i "s/^Version: .*/Version: $next/; s/(= $version)/(= $next)/g" "$scratch/package/DEBIAN/control"
    dpkg-deb -Znone --root-owner-group -b "$scratch/package" "$root/srv/next/" >/dev/null
    rm -rf "$scratch/package"
done
run 400
sleep 1
before=$(pid_of banyand) switch_before=$(pid_of banyan-switchd)
check "the packages are upgraded" inside sh -c 'dpkg -i /srv/next/*.deb'
kill -0 "${ranks[0]}" 2>/dev/null && pass "the job still runs then" || fail "the job still runs then" "$scratch/rank0"
[ "$(pid_of banyand)" != "$before" ] && inside systemctl is-active -q banyand && pass "the upgrade restarted banyand" || fail "the upgrade restarted banyand"
[ "$(pid_of banyan-switchd)" = "$switch_before" ] && pass "and left the switch running" || fail "and left the switch running"
right "no element of the job is wrong"
inside dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\n' 'banyan*' 'libbanyan*' 'python3-banyan' >"$scratch/out"
! grep -v "$next ii" "$scratch/out" | grep -q . && pass "all packages have the next version" || fail "all packages have the next version" "$scratch/out"
check "the switch restarts when told to" service restart banyan-switchd
sleep 3
check "the job runs again" settled
run 4
right "and so do its hosts"

# A hung controller is ended by systemd, and starts again.
before=$(pid_of banyand)
inside sh -c "kill -STOP $before"
restarted() { local i; for ((i = 0; i < 200; i++)); do [ "$(pid_of banyand)" != "$before" ] && inside systemctl is-active -q banyand && return; sleep 0.1; done; inside systemctl status --no-pager banyand; return 1; }
check "a controller that hangs is restarted by the watchdog" restarted

# ---- the end ----
inside sh -c 'rm -rf /etc/banyan/* /etc/systemd/system/banyand.service.d; rm -f /srv/fabric.json'
packages=$(there dpkg-query -W -f '${Package}\n' 'banyan*' 'libbanyan*' 'python3-banyan' | tr '\n' ' ')
# shellcheck disable=SC2086
check "the packages are removed" inside dpkg --remove $packages
check "no process of banyan is left" inside sh -c '! grep -l "^banyan" /proc/[0-9]*/comm'
check "the state is still there" inside test -s /var/lib/banyan/banyand.db
# shellcheck disable=SC2086
check "the packages are purged" inside dpkg --purge $packages
left=$(inside find / -xdev -path /srv -prune -o \( -path /proc -o -path /sys \) -prune -o -name '*banyan*' -print; inside sh -c 'find /run /dev/shm /tmp -name "*banyan*"; ls -d /etc/banyan /var/run/dpdk/* 2>/dev/null')
[ -z "$left" ] && pass "nothing is left" || fail "nothing is left: $left"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
