# shellcheck shell=bash disable=SC2154
# For scripts that boot the image without an operating system in QEMU; sourced after lab-common.sh.
# Sets $board, $probe and $trace; defines boot, until_says, halt and setting. The image's process is
# $pid, its log $dir/log, its control channel $dir/c.sock.
board=$(realpath "$build/../boards/qemu-virt-arm64")
probe=$build/tools/switch-probe
trace=$build/tools/switch-trace
qemu=qemu-system-aarch64
[ -r "$board/banyan.elf" ] || { echo "$name: $board/banyan.elf is missing: make firmware BOARD=qemu-virt-arm64" >&2; exit 1; }
command -v $qemu >/dev/null || { echo "$name: $qemu is missing: tests/deps.sh metal" >&2; exit 1; }
[ -x "$probe" ] && [ -x "$trace" ] || { echo "$name: $probe or $trace is missing: make build-tools" >&2; exit 1; }
pid=0
cleanup_more() { [ "$pid" -eq 0 ] || kill -KILL "$pid" 2>/dev/null; }

# boot PORTS [QEMU OPTIONS...]: starts the image in the background, with ports on datagram sockets
# and its log in $dir/log.
boot() {
    local ports=$1 i arguments=()
    shift
    for ((i = 0; i < ports; i++)); do
        arguments+=(-netdev "dgram,id=n$i,local.type=unix,local.path=$dir/s$i,remote.type=unix,remote.path=$dir/h$i"
            -device "virtio-net-device,netdev=n$i,bus=virtio-mmio-bus.$i")
    done
    rm -f "$dir"/s[0-9]* "$dir/log"
    "$board/lines" "$dir/c.sock" 4 $qemu -M "${machine:-virt}" -cpu cortex-a53 -m 256 -nodefaults -nographic -global virtio-mmio.force-legacy=false -serial stdio \
        -kernel "$board/banyan.elf" -fw_cfg "name=opt/banyan/name,string=${image_name:-leaf0}" "${arguments[@]}" \
        -chardev "socket,id=monitor,path=$dir/c.monitor,server=on,wait=off" -mon chardev=monitor "$@" </dev/null >"$dir/log" 2>&1 &
    pid=$!
}
# until_says TEXT: waits up to 10 s for TEXT in the log.
until_says() {
    local i
    for ((i = 0; i < 500; i++)); do
        grep -qF -- "$1" "$dir/log" 2>/dev/null && return 0
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.02
    done
    echo "it does not say '$1':"
    cat "$dir/log"
    return 1
}
halt() {
    kill "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    pid=0
}
setting() { printf -- '-fw_cfg\nname=opt/banyan/%s,string=%s\n' "$1" "$2"; }
