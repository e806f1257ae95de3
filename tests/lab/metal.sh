#!/usr/bin/env bash
# The image of boards/qemu-virt-arm64 in QEMU: it boots at EL1 and EL2, reports faults with all
# registers, sleeps while no packets arrive, refuses invalid settings, accepts tables from clients
# that come and go, and (as root) is a switch of lab fabrics.
#   metal.sh [BUILD]     BUILD: folder with bin/ and tools/ (default build/release); the image is in
#                        BUILD/../boards. Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh metal "${1:-build/release}"
# shellcheck source=tests/lab/metal-common.sh
. tests/lab/metal-common.sh

# says WHAT TEXT [SETTING VALUE]: passes if the image, with that setting, prints TEXT.
says() {
    local what=$1 text=$2 more=()
    shift 2
    while [ $# -gt 0 ]; do
        mapfile -t -O ${#more[@]} more < <(setting "$1" "$2")
        shift 2
    done
    boot "${ports:-2}" "${more[@]}"
    check "$what" until_says "$text"
    ! grep -q ': fault: ' "$dir/log" || until_says ": halted" >/dev/null # after all registers
    halt
}
ticks() { awk '{print $14 + $15}' "/proc/$pid/stat"; }
control=unix:$dir/c.sock

# ---- start and end ------------------------------------------------------------------------------------------------------------
machine=virt,virtualization=on
says "it boots at EL2" "leaf0: ready, 2 ports, 8192 slots of 1408 bytes, neon, board qemu-virt-arm64"
machine=virt
ports=16
says "and at EL1 with sixteen ports" "leaf0: ready, 16 ports"
ports=2
says "a write to nowhere is reported" "fault: synchronous exception at 0x" fault null halt 1
check "with the address" grep -q 'address 0x0000000000000008: this memory access is not allowed' "$dir/log"
check "and 31 registers" test "$(grep -c '^  x[0-9]* 0x' "$dir/log")" -eq 31
says "code cannot be written" "this memory access is not allowed" fault code halt 1
says "a stack that is full faults, and is named" "stack overflow" fault stack halt 1
says "an assertion is reported" "an assertion failed" fault assert halt 1
says "a fault of no kind" "setting opt/banyan/fault: it must be null, twice, code, stack" fault heat
says "a setting that is no number" "setting opt/banyan/slots is 'many': it must be a number up to 8192" slots many
says "more slots than the board has" "setting opt/banyan/slots is '9000': it must be a number up to 8192" slots 9000
says "a payload that is no multiple of 8" "payload-max: it must be a multiple of 8 above 0" payload-max 1401
says "more than the memory holds, with the numbers" "are left: use fewer slots or a smaller payload" payload-max 8192
says "8 KiB payloads with fewer slots" "ready, 2 ports, 4096 slots of 8192 bytes" payload-max 8192 slots 4096
ports=0
says "no port" "no network port"
# The watchdog runs in an interrupt, so it sees a loop that hangs anywhere except where interrupts
# are masked. There the code must have no branch, so it cannot loop.
# shellcheck disable=SC2016
check "no branch lies where interrupts are masked" bash -c '"$0objdump" -d "$1" | awk '"'"'
    /msr\tdaifset, #0x2$/ { masked = 1; found++ }
    /msr\tdaifclr, #0x2$/ { masked = 0 }
    masked && $3 ~ /^(b|b\..*|bl|blr|br|cbz|cbnz|tbz|tbnz|ret)$/ { bad++; print }
    END { exit !(found && !bad && !masked) }'"'"'' "${cross:-aarch64-linux-gnu-}" "$board/banyan.elf"

# ---- control channel ----------------------------------------------------------------------------------------------------------
image_name=star
boot 4 $(setting slots 1024)
check "it is ready" until_says ready
sleep 0.5
before=$(ticks)
sleep 2
check "an idle image lets QEMU sleep: at most 4 ticks of CPU in 2 s" test $(($(ticks) - before)) -le 4
"$probe" image "$dir/four" 4 3 64 1408 1500
"$probe" image "$dir/five" 5 1 16 1408 1500
check "a table is pushed in pieces of 7 bytes and read back" "$probe" push "$control" "$dir/four" 7
check "banyan push does the same" "$banyan" push "$dir/four" --to "star=$control"
check "banyan show reads it" bash -c "'$banyan' show '$control' --counters | grep -q 'port 3 p3: 198.18.0.7'"
refused "an image with more ports is refused" 3 "ports: the table requires 5, this switch (board qemu-virt-arm64) has 4" "$banyan" push "$dir/five" --to "star=$control"
head -c 300 "$dir/four" >"$dir/cut"
check "a truncated image is refused" bash -c '! "$0" push "$1" "$2"' "$probe" "$control" "$dir/cut"
# A client that ends within a message (whose length field is 100 bytes) leaves nothing behind for
# the next one.
for ((i = 0; i < 20; i++)); do
    printf '\0\0\0\144abc' | timeout 5 perl -MIO::Socket::UNIX -e 'my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die; print $s <STDIN>; $s->flush' "$dir/c.sock"
    "$banyan" show "$control" >"$dir/check.out" 2>&1 || break
done
if [ $i -eq 20 ]; then pass "a client that ends within a message does not disturb the next one, 20 times"; else fail "a client that ends within a message" "$dir/check.out"; fi
halt

# ---- fabrics ------------------------------------------------------------------------------------------------------------------
if [ "$(id -u)" -ne 0 ]; then
    echo "note: not root: no lab with the image as a switch"
    finish
fi
make_topologies
run=$board/run
most=1.2
lab_right "star4 around the image: all collectives right" star4 --switch "switch0=$run" --bytes 256K --iters 1 --report "$dir/report.json"
check "no payload was copied on its way out" bash -c "grep -Eq '\"shell_tx_shared\": [1-9]' '$dir/report.json' && ! grep -Eq '\"shell_tx_copied\": [1-9]' '$dir/report.json'"
lab_right "hosts over UDP, in trains" star4 --switch "switch0=$run" --transport udp --bytes 256K --iters 1
lab_right "jumbo frames" star4 --switch "switch0=$run" --mtu 9000 --bytes 256K --iters 1
lab_right "leafspine with the image as a leaf, banyan-switchd elsewhere" leafspine --switch "leaf0=$run" --bytes 256K --iters 1
lab_right "the image as a relay" relay-spine --switch "spine0=$run" --bytes 256K --iters 1
most=3
lab_right "the leaf under loss, duplication and reordering" leafspine --switch "leaf0=$run" --bytes 256K --iters 1 \
    --loss 0.01 --dup 0.01 --reorder 0.01 --seed 7
lab_right "every switch an image, with faults" leafspine --switch "leaf0=$run" --switch "leaf1=$run" --switch "spine0=$run" --bytes 128K --iters 1 \
    --loss 0.01 --dup 0.01 --reorder 0.01 --seed 8
refused "a program that is not there" 2 "No such file" "$banyan" lab run "$dir/star4.json" --switch switch0=./none
refused "a switch that is not there" 2 "no switch with that name" "$banyan" lab run "$dir/star4.json" --switch "host0=$run"
# Killing a lab also ends its QEMU.
"$banyan" lab run "$dir/star4.json" --switch "switch0=$run" -c allreduce --bytes 1M --iters 1000 >"$dir/run.out" 2>&1 &
lab=$!
children+=("$lab")
for ((i = 0; i < 500; i++)); do
    pgrep -f "[g]uest=/run/banyan/lab-$lab/switch0.sock" >/dev/null && break
    sleep 0.02
done
check "QEMU runs while the lab does" pgrep -f "[g]uest=/run/banyan/lab-$lab/switch0.sock"
kill -KILL "$lab"
{ wait "$lab"; } 2>/dev/null
sleep 0.5
check "a lab that is killed takes QEMU with it" bash -c "! pgrep -f '[g]uest=/run/banyan/lab-$lab/switch0.sock'"
"$banyan" lab down "$lab" >/dev/null 2>&1
finish
