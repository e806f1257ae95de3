#!/usr/bin/env bash
# Installs the Debian packages that banyan needs and that are missing, and prints their names;
# prints nothing if none is missing.
#   deps.sh [-v] [base|bench|mpi|applications|neon|metal|vm|avx512|torch|newer|picture|page|slurm|etcd|debian]...      sets of packages; default: base
set -euo pipefail

base=(build-essential pkg-config git clang llvm libclang-rt-14-dev clang-format clang-tidy cppcheck
      dpdk libdpdk-dev libbpf-dev libxdp-dev libelf-dev zlib1g-dev
      libjansson-dev libexpat1-dev libgmp-dev libssl-dev coinor-libclp-dev libmicrohttpd-dev libcurl4-openssl-dev libsqlite3-dev libcmocka-dev nanopb libnanopb-dev protobuf-compiler
      iproute2 ethtool openssl python3-minimal mandoc liblemon-dev glpk-utils)
bench=(dpdk-dev openmpi-bin libopenmpi-dev mpich libmpich-dev)
mpi=(openmpi-bin libopenmpi-dev mpich libmpich-dev gfortran python3-mpi4py python3-numpy hpcc scalapack-mpi-test)
applications=(lammps lammps-examples quantum-espresso quantum-espresso-data)
neon=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)
metal=(gcc-aarch64-linux-gnu qemu-system-arm)
vm=(qemu-system-x86)
avx512=(bochs bochs-term vgabios)
torch=(python3-torch libtorch-dev pybind11-dev python3-dev python3-numpy)
newer=(mmdebstrap)
picture=(graphviz)
page=(chromium chromium-driver fonts-dejavu-core)
etcd=(etcd-server etcd-client curl)
slurm=(slurmctld slurmd slurm-client libslurm-dev munge)
debian=(debhelper dh-apparmor dh-python dpkg-dev fakeroot libmpich-dev libopenmpi-dev libslurm-dev lintian mmdebstrap systemd abigail-tools prometheus)

verbose=0
sets=()
for argument in "$@"; do
    case "$argument" in
    -v) verbose=1 ;;
    base | bench | mpi | applications | neon | metal | vm | avx512 | torch | newer | picture | page | slurm | etcd | debian) sets+=("$argument") ;;
    *) echo "deps.sh: unknown set '$argument'; known: base, bench, mpi, applications, neon, metal, vm, avx512, torch, newer, picture, page, slurm, etcd, debian" >&2; exit 2 ;;
    esac
done
[ ${#sets[@]} -gt 0 ] || sets=(base)

missing=()
for set in "${sets[@]}"; do
    declare -n packages=$set
    for package in "${packages[@]}"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
done
if [ ${#missing[@]} -eq 0 ]; then
    [ $verbose -eq 0 ] || echo "  DEPS   nothing is missing"
    exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "deps: missing packages: ${missing[*]}" >&2
    echo "deps: run as root, or: sudo apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 3
fi
echo "  DEPS   installing ${#missing[@]} Debian packages: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
exec 9>/run/lock/banyan-deps && flock 9 # apt-get refuses to run twice at once
install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1
}
if ! install; then
    apt-get update >"$log" 2>&1 && install || { tail -20 "$log" >&2; echo "deps: apt-get failed; the log ends above" >&2; exit 3; }
fi
