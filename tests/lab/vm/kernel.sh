#!/usr/bin/env bash
# Prepares what a virtual machine needs to run a switch: Debian's kernel, and an initial file system
# with the modules for it. It installs nothing.
#   kernel.sh ARCH FOLDER      ARCH: amd64 or arm64. Writes FOLDER/kernel and FOLDER/initrd
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: kernel.sh ARCH FOLDER" >&2; exit 2; }
arch=$1
mkdir -p "$2"
folder=$(realpath "$2")
cd "$(dirname "$0")"
stamp="$(cat kernel.sh init | sha256sum)"
[ "$(cat "$folder/.stamp" 2>/dev/null)" != "$stamp" ] || exit 0
# 9p mounts the files of the host, overlay makes them writable for the guest, vfio gives NICs to the
# switch, virtio_net carries the control channel.
modules=(virtio_pci virtio_net 9p 9pnet_virtio overlay vfio-pci vfio_iommu_type1)
../../../boards/sysroot.sh --depends "$arch" "$folder/packages" "linux-image-$arch" busybox-static
../../../boards/sysroot.sh "$(dpkg --print-architecture)" "$folder/tools" busybox-static
busybox=$folder/tools/bin/busybox
kernel=$(echo "$folder"/packages/boot/vmlinuz-*)
version=${kernel##*/vmlinuz-}
cp "$kernel" "$folder/kernel"
tree=$folder/packages/lib/modules/$version
[ -e "$tree/modules.dep" ] || "$busybox" depmod -b "$folder/packages" "$version"

root=$folder/root
rm -rf "$root"
mkdir -p "$root"/{bin,dev,proc,sys,host,upper,guest,vm,modules}
cp "$folder/packages/bin/busybox" "$root/bin/"
cp init "$root/init"
chmod 755 "$root/init"
# order MODULE: appends the module's file to $root/modules/order, after those that it depends on.
declare -A ordered=()
order() {
    local name=${1//_/-} line file needed
    name=${name//-/[-_]} # files have either
    line=$(grep -E "(^|/)$name\.ko:" "$tree/modules.dep") || return 0 # built in
    file=${line%%:*}
    [ -z "${ordered[$file]:-}" ] || return 0
    ordered[$file]=1
    for needed in $(tr ' ' '\n' <<<"${line#*:}" | tac); do
        needed=${needed##*/}
        order "${needed%.ko}"
    done
    cp "$tree/$file" "$root/modules/"
    echo "${file##*/}" >>"$root/modules/order"
}
for module in "${modules[@]}"; do order "$module"; done
(cd "$root" && find . | "$busybox" cpio -o -H newc 2>/dev/null | gzip -1) >"$folder/initrd"
rm -rf "$folder/packages" "$folder/tools" "$root"
echo "$stamp" >"$folder/.stamp"
