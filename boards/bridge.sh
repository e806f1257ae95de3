# shellcheck shell=bash
# Connects interfaces to ports of QEMU; sourced by the scripts that run a switch in QEMU. The caller
# runs bridge_remove at its end, also after a failure.
bridge_made=()
bridge_address=()
# bridge_add INTERFACE NUMBER [multi_queue]: bridges the interface to a new tap device of the same
# MTU; sets $tap and $mtu.
bridge_add() {
    local bridge=${1:0:10}.br
    tap=${1:0:10}.tap
    mtu=$(ip -o link show "$1" | sed 's/.* mtu \([0-9]*\).*/\1/')
    # A bridge does not forward frames addressed to one of its ports, so the guest takes over the
    # address of the interface.
    bridge_address+=("$1 $(ip -o link show "$1" | sed 's/.* link\/ether \([0-9a-f:]*\).*/\1/')")
    bridge_made+=("$tap" "$bridge")
    ip -batch - <<END
link add $bridge mtu $mtu type bridge mcast_snooping 0
tuntap add $tap mode tap ${3:-}
link set $tap mtu $mtu txqueuelen 4096 master $bridge
link set $1 address 06:00:00:00:00:$(printf %02x "$2") master $bridge
link set $tap arp off up
link set $bridge arp off up
link set $1 up
END
}
bridge_remove() {
    local link
    for link in "${bridge_made[@]}"; do ip link delete "$link" 2>/dev/null; done
    for link in "${bridge_address[@]}"; do ip link set "${link%% *}" address "${link#* }" 2>/dev/null; done
}
