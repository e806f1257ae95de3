#!/usr/bin/env python3
"""The golden packets, written by an encoder that shares nothing with offload/wire.

    golden.py          writes the .hex files beside this script
    golden.py --check  exit status 1 when a file differs

Each file: lines of comment, then the bytes of one UDP payload in hex, or of a whole frame. tests/unit/offload/wire/golden.c holds
the same packets as structures, and compares both ways.
"""
import ipaddress
import os
import struct
import sys

CONTRIB, RESULT, WAIT, ERR, PROBE, GAP = range(1, 7)
RETX, NODATA, CE, PARTIAL, POISON, START, ACKONLY, KEYED = (1 << i for i in range(8))
SUM, PROD, MIN, MAX, BAND, BOR, BXOR = range(1, 8)
I8, U8, I32, U32, I64, U64, F16, BF16, F32, F64 = range(1, 11)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def psum(payload):
    padded = payload + bytes(-len(payload) % 4)
    return sum(struct.unpack("<%dI" % (len(padded) // 4), padded)) & 0xffffffff


def packet(kind, flags=0, child=0, job=1, tree=0, gen=1, op=SUM, dtype=F32, mode=1, seq=0, witness=0, count=0, nleaf=1,
           optag=0, payload=b""):
    head = struct.pack(">BBBBHHHBBIIHHII", 0x15, kind, flags, child, job, tree, gen, op << 4 | dtype, mode, seq, witness,
                       count, nleaf, psum(payload), optag)
    assert len(head) == 32
    return head + struct.pack(">Q", crc32c(head)) + payload


def siphash(key, data):
    """SipHash-2-4 as section 2 of its paper has it."""
    mask = (1 << 64) - 1
    k0, k1 = struct.unpack("<QQ", key)
    v = [k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573]

    def turn(word, bits):
        return (word << bits | word >> 64 - bits) & mask

    def half(a, b, c, d, s, t):
        v[a] = v[a] + v[b] & mask
        v[c] = v[c] + v[d] & mask
        v[b] = turn(v[b], s) ^ v[a]
        v[d] = turn(v[d], t) ^ v[c]
        v[a] = turn(v[a], 32)

    def rounds(count):
        for _ in range(count):
            half(0, 1, 2, 3, 13, 16)
            half(2, 1, 0, 3, 17, 21)

    data += bytes(-(len(data) + 1) % 8) + bytes([len(data) & 255])
    for (word,) in struct.iter_unpack("<Q", data):
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xff
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


KEY = bytes(range(16))
assert siphash(KEY, bytes(range(15))) == 0xa129ca6149be45e5


def derive(label, down, sender, receiver):
    return b"".join(struct.pack("<Q", siphash(KEY, struct.pack(">BBBxHH", label, half, down, sender, receiver)))
                    for half in (0, 1))


def keyed(packet, sender, receiver, down, covered):
    """The packet with the tag of a keyed job whose key is 0, 1 .. 15."""
    head, payload = packet[:32], packet[40:]
    digest = siphash(derive(2, 0, 0, 0), payload) if covered and payload else 0
    tag = siphash(derive(1, down, sender, receiver), head + struct.pack("<Q", digest))
    return head + struct.pack(">Q", tag) + payload


PACKETS = {
    "contrib-f32": ("a contribution of four f32: 1, 2, 3, -0.5",
                    packet(CONTRIB, child=3, job=7, tree=2, gen=5, seq=0x01020304, witness=0xdeadbeef, count=4, nleaf=1,
                           optag=0xcafef00d, payload=struct.pack("<4f", 1, 2, 3, -0.5))),
    "contrib-nodata": ("a receive credit: no payload, and the value is not needed below",
                       packet(CONTRIB, flags=NODATA | ACKONLY, child=1, job=1023, tree=8191, gen=0xffff, op=BOR, dtype=U8,
                              seq=0xffffffff, witness=1, count=1408, nleaf=2, optag=1)),
    "contrib-odd": ("three bytes: the last word of psum is padded with zeros",
                    packet(CONTRIB, flags=RETX, child=0, op=BXOR, dtype=U8, seq=256, witness=0x80000000, count=3, nleaf=1,
                           optag=0x12345678, payload=b"\xff\x01\x80")),
    "result-all": ("a result for all children, congestion seen below",
                   packet(RESULT, flags=CE, child=255, job=2, tree=1, gen=9, op=MAX, dtype=I64, seq=77, witness=0x01010101,
                          count=1, nleaf=64, optag=5, payload=struct.pack("<q", -2))),
    "result-nodata": ("an acknowledgement", packet(RESULT, flags=NODATA, child=2, op=SUM, dtype=BF16, seq=3, witness=9,
                                                   count=4096, nleaf=3, optag=0xffffffff)),
    "wait": ("node 12 waits: node 513 below it for its children 1 and 40",
             packet(WAIT, child=0, seq=5, count=4, payload=struct.pack(">HBxH2xQ", 12, 1, 513, 1 << 40 | 2))),
    "err-mismatch": ("node 3: children 0 and 33 say sum of 4 f32, child 2 says max of 8 i32",
                     packet(ERR, flags=POISON, child=2, seq=6, count=4,
                            payload=struct.pack(">HBxII", 3, 1, 6, 6) +
                            struct.pack(">BBBBHxxI", SUM, F32, 1, 0, 4, 0xaaaa5555) +
                            struct.pack(">BBBBHxxI", MAX, I32, 1, 2, 8, 0x5555aaaa) + bytes(4) +
                            struct.pack(">Q", 1 << 33 | 1))),
    "keyed-contrib": ("a contribution of two f32 in a keyed job, from node 9 up to node 3; tags cover headers",
                      keyed(packet(CONTRIB, flags=KEYED, child=1, job=4, tree=1, gen=2, seq=8, witness=7, count=2, optag=6,
                                   payload=struct.pack("<2f", 1, 2)), 9, 3, 0, False)),
    "keyed-result": ("its result, down from node 3 to node 9; tags cover payloads",
                     keyed(packet(RESULT, flags=KEYED, child=1, job=4, tree=1, gen=2, seq=8, witness=7, count=2, nleaf=5,
                                  optag=6, payload=struct.pack("<2f", 3, 4)), 3, 9, 1, True)),
    "keyed-wait": ("node 3 waits, as it tells node 9; tags cover headers, and this payload",
                   keyed(packet(WAIT, flags=KEYED, child=1, job=4, tree=1, gen=2, seq=8, count=2,
                                payload=struct.pack(">HBxH2xQ", 3, 1, 3, 4)), 3, 9, 1, True)),
    "gap": ("child 3 has the results of chunk 20, but not those of 9, 11 and 16",
            packet(GAP, child=3, seq=9, count=0, nleaf=0, payload=struct.pack(">IB3x", 20, 0x85))),
    "keyed-gap": ("node 3 lacks chunk 8 of node 9, and has chunk 10; tags cover headers, and this payload",
                  keyed(packet(GAP, flags=KEYED, child=1, job=4, tree=1, gen=2, seq=8, count=2,
                               payload=struct.pack(">IB3x", 10, 1)), 3, 9, 1, True)),
    "probe": ("a child asks for the state of chunk 9", packet(PROBE, child=4, seq=9, count=0, nleaf=0)),
}


MACS = bytes([2, 0x62, 0xfd, 0, 0, 3]), bytes([2, 0x62, 0xfd, 0, 0, 2])  # receiver, sender
FOUR = bytes([198, 18, 0, 2]), bytes([198, 18, 0, 3])  # sender, receiver
SIX = ipaddress.ip_address("fd00:1::2").packed, ipaddress.ip_address("fd00:1::a1b2:c3d4").packed


def ones(data):
    """The Internet checksum (RFC 1071)."""
    data += bytes(len(data) % 2)
    total = sum(word for (word,) in struct.iter_unpack(">H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total ^ 0xffff


def udp(payload):
    return struct.pack(">HHHH", 50000, 46247, 8 + len(payload), 0) + payload


def frame4(payload, ecn):
    datagram = udp(payload)
    head = struct.pack(">BBHHHBBH4s4s", 0x45, ecn, 20 + len(datagram), 0, 0x4000, 64, 17, 0, *FOUR)
    head = head[:10] + struct.pack(">H", ones(head)) + head[12:]
    return MACS[0] + MACS[1] + b"\x08\x00" + head + datagram


def frame6(macs, sender, receiver, kind, hops, body, ecn=0):
    return macs[0] + macs[1] + b"\x86\xdd" + struct.pack(">IHBB16s16s", 6 << 28 | ecn << 20, len(body), kind, hops, sender,
                                                         receiver) + body


def discovery(macs, sender, receiver, kind, flags, target, option):
    body = struct.pack(">BBHI16sBB6s", kind, 0, 0, flags << 24, target, option, 1, macs[1])
    false = sender + receiver + struct.pack(">II", len(body), 58)
    body = body[:2] + struct.pack(">H", ones(false + body)) + body[4:]
    return frame6(macs, sender, receiver, 58, 255, body)


PACKETS["frame-ipv4"] = ("a frame over IPv4 with a credit", frame4(PACKETS["contrib-nodata"][1], 2))
PACKETS["frame-ipv6"] = ("the same over IPv6", frame6(MACS, *SIX, 17, 64, udp(PACKETS["contrib-nodata"][1]), 2))
PACKETS["neighbour-solicit"] = ("a solicitation of the second address, to its group",
                                discovery((bytes([0x33, 0x33, 0xff, 0xb2, 0xc3, 0xd4]), MACS[1]), SIX[0],
                                          ipaddress.ip_address("ff02::1:ffb2:c3d4").packed, 135, 0, SIX[1], 1))
PACKETS["neighbour-advertise"] = ("the advertisement that answers it: solicited, override",
                                  discovery((MACS[1], MACS[0]), SIX[1], SIX[0], 136, 0x60, SIX[1], 2))


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    status = 0
    for name, (comment, data) in PACKETS.items():
        lines = ["# " + comment] + [data[i:i + 8].hex(" ") for i in range(0, len(data), 8)]
        text = "\n".join(lines) + "\n"
        path = os.path.join(here, name + ".hex")
        if "--check" in sys.argv:
            if open(path).read() != text:
                print("%s.hex differs" % name)
                status = 1
        else:
            open(path, "w").write(text)
    return status


sys.exit(main())
