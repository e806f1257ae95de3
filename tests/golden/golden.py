#!/usr/bin/env python3
"""The golden packets, written by an encoder that shares nothing with offload/wire.

    golden.py          writes the .hex files beside this script
    golden.py --check  exit status 1 when a file differs

Each file: lines of comment, then the bytes of one UDP payload in hex. tests/unit/offload/wire/golden.c holds the same packets
as structures, and compares both ways.
"""
import os
import struct
import sys

CONTRIB, RESULT, WAIT, ERR, PROBE = range(1, 6)
RETX, NODATA, CE, PARTIAL, POISON, STAMP, ACKONLY = (1 << i for i in range(7))
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
    "probe": ("a child asks for the state of chunk 9", packet(PROBE, child=4, seq=9, count=0, nleaf=0)),
}


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
