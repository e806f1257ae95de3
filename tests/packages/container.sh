#!/usr/bin/env bash
# Runs systemd as process 1 of a root, in namespaces of its own (mounts, processes, network, cgroups),
# until it ends. A clean root has no other way to start units as a machine does. As root.
#   container.sh ROOT NAME       NAME: of its cgroup, which the caller removes
set -euo pipefail
root=$(realpath "$1")
if [ "${3:-}" != inside ]; then
    for group in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd; do
        [ -e "$group/cgroup.procs" ] || continue
        mkdir -p "$group/$2"
        echo $$ >"$group/$2/cgroup.procs"
    done
    exec unshare --mount --pid --uts --ipc --net --cgroup --fork --kill-child "$0" "$root" "$2" inside
fi
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
for folder in run tmp dev; do mount -t tmpfs tmpfs "$root/$folder"; done
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir -p "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs tmpfs "$root/dev/shm"
if [ -e /sys/fs/cgroup/cgroup.procs ]; then
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
else # the older hierarchies: systemd requires the one with its name
    mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
    mkdir "$root/sys/fs/cgroup/systemd" "$root/sys/fs/cgroup/unified"
    mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup/unified"
fi
hostname banyan-test
mkdir -p "$root/oldroot"
cd "$root"
pivot_root . oldroot
umount -l /oldroot
rmdir /oldroot
mount --make-rshared /
exec env -i container=banyan PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=console --unit=multi-user.target </dev/null
