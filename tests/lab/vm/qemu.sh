#!/usr/bin/env bash
# Unpacks QEMU of Debian's backports for the virtual machines of lab-pci, because Debian 12's emulates
# no igb. It installs nothing. FOLDER/qemu-system-x86_64 runs it with its own libraries and files.
#   qemu.sh FOLDER      Exit 3: the machine's mirror has no such package; the reason is printed.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: qemu.sh FOLDER" >&2; exit 2; }
mkdir -p "$1"
folder=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
"$here/../../../boards/sysroot.sh" --backports "$(dpkg --print-architecture)" "$folder" qemu-system-x86
libraries=$(echo "$folder"/usr/lib/*-linux-gnu)
cat >"$folder/qemu-system-x86_64" <<RUN
#!/bin/sh
export LD_LIBRARY_PATH=$libraries QEMU_MODULE_DIR=$libraries/qemu
exec $folder/usr/bin/qemu-system-x86_64 -L $folder/usr/share/qemu -L $folder/usr/share/seabios -L $folder/usr/lib/ipxe/qemu "\$@"
RUN
chmod 755 "$folder/qemu-system-x86_64"
