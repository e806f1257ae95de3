#!/usr/bin/env bash
# The control lines of the image of boards/qemu-virt-arm64, in QEMU without a fabric: several
# clients, the pre-shared key, a table kept in flash, the watchdog that resets a hung loop, and
# faults that reset the machine.
#   metal-control.sh [BUILD]     Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh metal-control "${1:-build/release}"
# shellcheck source=tests/lab/metal-common.sh
. tests/lab/metal-common.sh
control=unix:$dir/c.sock
keyed=psk+$control
key=$dir/key
# counted NAME AT_LEAST: succeeds if a counter of the image is at least AT_LEAST.
counted() {
    "$banyan" show "$keyed" --psk "$key" --counters >"$dir/counters" 2>&1
    awk -v n="control_$1:" -v least="$2" '$1 == "counter" && $2 == n { v = $3 } END { exit !(v >= least) }' "$dir/counters"
}
# exchange HEX...: sends each argument after the answer to the one before (or 2 s), and prints the
# answers as hex digits.
exchange() {
    timeout 10 perl -MIO::Socket::UNIX -e '
        my $s = IO::Socket::UNIX->new(Peer => shift) or die "connect: $!";
        for (@ARGV) {
            print $s pack "H*", $_; $s->flush;
            my $in = ""; vec($in, fileno($s), 1) = 1;
            next unless select($in, undef, undef, 2);
            sysread($s, my $answer, 65536); print unpack("H*", $answer), "\n";
        }' "$dir/c.sock" "$@"
}

# ---- the pre-shared key -------------------------------------------------------------------------------------------------------
check "banyan keys makes a key" "$banyan" keys --psk "$key"
check "that its owner alone can read" test "$(stat -c %a "$key")" = 600
refused "and does not replace one" 2 "it exists already" "$banyan" keys --psk "$key"
"$banyan" keys --psk "$dir/other" >/dev/null
echo 'no key' >"$dir/wrong"
"$probe" image "$dir/four" 4 3 64 1408 1500
boot 2 -fw_cfg "name=opt/banyan/psk,file=$key"
check "under a key it starts only where no nonce is repeated" until_says "a pre-shared key requires another nonce at each start"
halt
boot 2 $(setting nonce 1) -fw_cfg "name=opt/banyan/psk,file=$dir/wrong"
check "and with a key that is one" until_says "setting opt/banyan/psk: a key has 32 hexadecimal digits"
halt
image_name=star
boot 4 $(setting slots 1024) -fw_cfg "name=opt/banyan/psk,file=$key" -device virtio-rng-device,bus=virtio-mmio-bus.30
check "with a source of randomness it is ready" until_says "ready, 4 ports"
check "and reports that its lines require the key" grep -q 'control lines require the pre-shared key' "$dir/log"
check "banyan push with the key" "$banyan" push "$dir/four" --to "star=$keyed" --psk "$key"
check "banyan show with it, from the environment" env BANYAN_PSK="$key" "$banyan" show "$keyed"
refused "another key" 3 "does not have our key" "$banyan" show "$keyed" --psk "$dir/other"
refused "no key" 3 "this switch requires its pre-shared key" "$banyan" show "$control"
check "which is counted" counted plain 1
chmod 644 "$dir/other"
refused "a key that others may read" 2 "chmod 600" "$banyan" show "$keyed" --psk "$dir/other"
refused "no file of a key" 2 "--psk" "$banyan" show "$keyed"
# The image answers a recorded opening, but rejects in this session what was sealed in the recorded
# one.
open=0000001442594b31$(printf '%032d' 7)
sealed=0000001a42594b330000000000000000080110055200$(printf '%016d' 1)
check "an opening is answered with a nonce and a tag" bash -c '[[ "$1" =~ ^0000001c42594b32[0-9a-f]{48}$ ]]' - "$(exchange "$open")"
exchange "$open" "$sealed" >/dev/null
check "a tag that the key does not make is refused, and counted" counted forged 1
exchange "$sealed" >/dev/null
check "so is a sealed request without a session" counted closed 1
exchange 0000000642594b390000 >/dev/null
exchange "$open" 0000000542594b3300 >/dev/null
check "and a frame that cannot be" counted cut 1
check "the table is as it was pushed" bash -c "'$banyan' show '$keyed' --psk '$key' | grep -q 'port 3 p3: 198.18.0.7'"

"$banyan" topo star --hosts 4 | sed 's/"switch0"/"star"/' >"$dir/star.json"
"$banyan" plan "$dir/star.json" -c allreduce -o "$dir/star.plan" >/dev/null
perl -e 'print qq({"format": "banyan-site-1", "links": [), join(", ", map {
    qq({"between": ["host$_", "star"], "number": 0, "ends": [{"interface": "h$_", "address": "fd00:$_\::1"}, {"interface": "p$_", "address": "fd00:$_\::2"}]})
} 0 .. 3), "]}\n"' >"$dir/six.site"
"$banyan" tables "$dir/star.json" "$dir/star.plan" --site "$dir/six.site" -o "$dir/six" >/dev/null
refused "a table with IPv6 addresses" 3 "this switch does not support IPv6: give its links IPv4 addresses in the site file" \
    "$banyan" push "$dir/six/star.table" --to "star=$keyed" --psk "$key"
check "and the table stays" bash -c "'$banyan' show '$keyed' --psk '$key' | grep -q 'port 3 p3: 198.18.0.7'"

# ---- several clients ----------------------------------------------------------------------------------------------------------
# Three clients each hold a line and are silent. A fourth is served at once; a fifth waits until one
# of them has gone.
hold() { perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new(Peer => shift) or die; sleep shift' "$dir/c.sock" "$1" & }
for ((i = 0; i < 3; i++)); do
    hold 60
    children+=("$!")
done
sleep 0.3
check "beside three who hold a line, a fourth client is served" "$banyan" show "$keyed" --psk "$key" --timeout 5
hold 60
children+=("$!")
sleep 0.3
refused "a fifth one waits" 3 "no answer within 1000 ms" "$banyan" show "$keyed" --psk "$key" --timeout 1
"$banyan" show "$keyed" --psk "$key" --timeout 20 >"$dir/waited" 2>&1 &
waiting=$!
sleep 0.3
kill "${children[0]}" 2>/dev/null
if wait "$waiting"; then pass "and is served when one has gone"; else fail "a client that waits for a line" "$dir/waited"; fi
for child in "${children[@]}"; do kill "$child" 2>/dev/null; done
children=()
sleep 0.2

# ---- a table for the next boot ------------------------------------------------------------------------------------------------
check "the table goes to flash" until_says "the table is in flash"
monitor system_reset
ready_again() { [ "$(grep -c ': ready, ' "$dir/log")" -ge "$1" ]; }
for ((i = 0; i < 500; i++)); do ready_again 2 && break || sleep 0.02; done
check "a reset machine starts again" ready_again 2
check "without a table" bash -c "'$banyan' show '$keyed' --psk '$key' | grep -q 'no table is active'"
check "but offers that of its previous boot" bash -c "'$banyan' show '$keyed' --psk '$key' | grep -q 'was active before the switch restarted'"
check "which can be made active" "$banyan" push --saved --to "star=$keyed" --psk "$key"
check "and is the same" bash -c "'$banyan' show '$keyed' --psk '$key' | grep -q 'port 3 p3: 198.18.0.7'"
halt
truncate -s 64M "$dir/flash"
flash=(-drive "if=pflash,unit=1,format=raw,file=$dir/flash")
boot 4 $(setting slots 1024) "${flash[@]}"
until_says "ready, 4 ports" >/dev/null
for generation in 1 2 3; do
    "$probe" image "$dir/next" 4 "$generation" 64 1408 1500
    "$banyan" push "$dir/next" --to "star=$control" >/dev/null 2>&1
done
in_flash() { [ "$(grep -c 'the table is in flash' "$dir/log")" -ge 1 ] && sleep 0.5; }
for ((i = 0; i < 500; i++)); do in_flash && break || sleep 0.02; done
want=$("$banyan" show "$control" | awk '$1 == "hash" { sub(",", "", $2); print $2 }')
kill -KILL "$pid"
wait "$pid" 2>/dev/null
boot 4 $(setting slots 1024) "${flash[@]}"
until_says "ready, 4 ports" >/dev/null
check "QEMU that is killed and starts again offers the last of three tables" bash -c "'$banyan' show '$control' | grep -q '${want:-none} .*was active before'"
halt
# With the newest copy damaged, the one before it is offered. The areas of the copies are 1.25 MiB
# apart, with the sequence number at offset 8.
newest=$(for at in 0 1310720; do echo "$(od -An -tu8 --endian=big -j $((at + 8)) -N8 "$dir/flash" | tr -d ' ') $at"; done | sort -n | awk 'END { print $2 }')
printf 'x' | dd of="$dir/flash" bs=1 seek=$((newest + 100)) conv=notrunc status=none
boot 4 $(setting slots 1024) "${flash[@]}"
check "a damaged copy is ignored" until_says "its checksum does not match"
until_says "ready, 4 ports" >/dev/null
check "and the one before it offered" bash -c "'$banyan' show '$control' | grep 'was active before' | grep -qv '${want:-none}'"
halt

# Flash chips that refuse writes (QEMU's, with a read-only file): the switch continues, and reports
# this.
boot 4 $(setting slots 1024) -drive "if=pflash,unit=1,format=raw,readonly=on,file=$dir/flash"
until_says "ready, 4 ports" >/dev/null
for generation in 4 5; do
    "$probe" image "$dir/next" 4 "$generation" 64 1408 1500
    check "with a flash that stores nothing a table is active all the same" "$banyan" push "$dir/next" --to "star=$control"
done
check "which is reported" until_says "flash: storing the active table failed"
check "and recorded" bash -c "'$banyan' show '$control' --log | grep -q 'a restart would offer the one stored before'"
halt

# ---- watchdog -----------------------------------------------------------------------------------------------------------------
for machine in virt virt,virtualization=on; do
    boot 2 $(setting watchdog 600) $(setting fault hang) $(setting fault-at 3000)
    check "$machine: a loop that hangs is detected, with the place" until_says "watchdog: the loop made no progress for 600 ms at 0x"
    check "$machine: and the machine is reset" until_says "watchdog: in the previous boot the loop made no progress for 600 ms"
    where=$(sed -n 's/.*made no progress for 600 ms at \(0x[0-9a-f]*\), called.*/\1/p' "$dir/log" | head -n 1)
    check "$machine: the place is where the loop hangs" bash -c "${cross:-aarch64-linux-gnu-}addr2line -f -e '$board/banyan.elf' '${where:-0}' | grep -q '^stand_still$'"
    until_says "ready, 2 ports" >/dev/null
    check "$machine: the next boot reports it" bash -c "'$banyan' show '$control' --log | grep -q 'in the previous boot the loop made no progress'"
    halt
done
machine=virt
boot 2 $(setting watchdog 600)
until_says ready >/dev/null
sleep 2
kill -STOP "$pid"
sleep 1.5
kill -CONT "$pid"
sleep 0.5
check "an image that sleeps, or was stopped as a whole, is left alone" bash -c "! grep -q watchdog '$dir/log' && '$banyan' show '$control' >/dev/null"
halt

# ---- faults -------------------------------------------------------------------------------------------------------------------
for machine in virt virt,virtualization=on; do
    boot 2 $(setting fault null) $(setting fault-at 3000)
    check "$machine: a fault is reported" until_says "this memory access is not allowed"
    check "$machine: the machine is reset" until_says "resetting the machine in 1 s (consecutive failed boots: 1)"
    check "$machine: and starts again" until_says "fault: the previous boot ended at 0x"
    for ((i = 0; i < 500; i++)); do ready_again 2 && break || sleep 0.02; done
    check "$machine: the next boot reports it" bash -c "'$banyan' show '$control' --log |
        grep -Eq 'the previous boot ended at 0x[0-9a-f]{16}, address 0x0000000000000008, syndrome 0x[0-9a-f]{16}'"
    halt
done
machine=virt
boot 2 $(setting fault say) $(setting fault-at 3000)
check "an impossible state is reported by a switch that runs" until_says "this fault is injected"
check "and ends its boot as well" until_says "fault: the previous boot ended at 0x"
halt
boot 2 $(setting fault twice)
begin=$(date +%s%N)
check "a fault whose report ends in another resets the machine as well" bash -c 'for ((i = 0; i < 500; i++)); do
    [ "$(grep -c "banyan .* on qemu-virt-arm64" "$0")" -ge 3 ] && exit; sleep 0.02; done; cat "$0"; exit 1' "$dir/log"
check "after the same waits" test $(($(date +%s%N) - begin)) -ge 2900000000
halt
boot 2 $(setting fault assert)
until_says "resetting the machine in 1 s" >/dev/null
begin=$(date +%s%N)
check "a second boot that fails at its start waits 2 s" until_says "resetting the machine in 2 s (consecutive failed boots: 2)"
check "a third one 4 s" until_says "resetting the machine in 4 s (consecutive failed boots: 3)"
check "and they do wait" test $(($(date +%s%N) - begin)) -ge 2900000000
halt
boot 2 $(setting fault null) $(setting halt 1)
until_says ": halted" >/dev/null
sleep 2
check "with the setting halt there is one life, and its last words" test "$(grep -c ': fault: ' "$dir/log")" -eq 1
halt
finish
