#!/usr/bin/env python3
"""Draws docs/pictures/architecture.svg, the picture of the README: architecture.py FILE

Boxes are programs or libraries, with the folder of their source; arrows are what passes between
them. `make picture` runs it.
"""
import html
import sys

WIDTH, HEIGHT = 980, 560
INK, MUTED, LINE = "#1d2733", "#5b6770", "#8a949c"
CONTROL, SWITCH, HOST = ("#fdf3e3", "#d9a441"), ("#e8f1fa", "#3d7ebf"), ("#e9f6ee", "#3a9a64")
out = []


def text(x, y, words, size=13, color=INK, weight="normal", anchor="middle"):
    out.append(f'<text x="{x}" y="{y}" font-size="{size}" fill="{color}" font-weight="{weight}" '
               f'text-anchor="{anchor}">{html.escape(words)}</text>')


def band(y, height, name, colors):
    out.append(f'<rect x="10" y="{y}" width="{WIDTH - 20}" height="{height}" rx="14" fill="{colors[0]}"/>')
    text(28, y + 22, name, 13, colors[1], "bold", "start")


def box(x, y, width, height, title, lines, colors):
    """Returns the box as (left, top, right, bottom)."""
    out.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="white" stroke="{colors[1]}" '
               'stroke-width="1.6"/>')
    text(x + width / 2, y + 22, title, 14, INK, "bold")
    for i, line in enumerate(lines):
        last = i == len(lines) - 1
        text(x + width / 2, y + 41 + 16 * i, line, 11 if last else 12, MUTED if last else INK)
    return x, y, x + width, y + height


def arrow(x1, y1, x2, y2, words="", dx=0, dy=-6, both=False, color=LINE, anchor="middle"):
    start = ' marker-start="url(#tip)"' if both else ""
    out.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{color}" stroke-width="1.8" '
               f'marker-end="url(#tip)"{start}/>')
    if words:
        text((x1 + x2) / 2 + dx, (y1 + y2) / 2 + dy, words, 12, MUTED, anchor=anchor)


band(10, 150, "Control plane, one machine", CONTROL)
band(210, 140, "Switches and SmartNICs", SWITCH)
band(410, 140, "Hosts", HOST)

top, high = 48, 92
fabric = box(28, top, 150, high, "fabric", ["topology.json, a preset", "or an importer", "control/fabric"], CONTROL)
plan = box(222, top, 160, high, "planner", ["trees and the cut", "that proves them", "control/planner"], CONTROL)
check = box(436, top, 150, high, "verifier", ["shares no code", "with the planner", "control/verify"], CONTROL)
table = box(640, top, 130, high, "tables", ["one image", "for each node", "control/tables"], CONTROL)
daemon = box(824, top, 128, high, "banyand", ["jobs, failures,", "two-phase push", "control/service"], CONTROL)
middle = top + high / 2
for one, other in ((fabric, plan), (plan, check), (check, table), (table, daemon)):
    arrow(one[2] + 3, middle, other[0] - 5, middle)

top = 246
switches = [box(x, top, 262, high, name, ["agent: loads and checks tables", "engine: sums and copies packets", rooms], SWITCH)
            for x, name, rooms in ((60, "banyan-switchd", "firmware, offload, dataplane"),
                                   (360, "banyan-switchd", "firmware, offload, dataplane"),
                                   (660, "bare-metal image", "firmware, offload, boards"))]
for one, other in zip(switches, switches[1:]):
    arrow(one[2] + 5, top + 46, other[0] - 5, top + 46, both=True)

top = 446
hosts = [box(x, top, 200, high, name, lines + ["host-driver"], HOST)
         for x, name, lines in ((28, "MPI program", ["unmodified: a preloaded", "plugin calls libbanyan"]),
                                (260, "your program", ["libbanyan,", "buffers of host or GPU"]),
                                (492, "banyan-perf", ["columns of nccl-tests,", "checks each element"]),
                                (724, "hosts alone", ["collectives over TCP", "where no table serves"]))]

arrow(888, daemon[3] + 4, 888, 240, "tables over TLS,", -8, -2, True, anchor="end")
text(880, 205, "heartbeats, counters", 12, MUTED, anchor="end")
for x, host in ((128, 0), (290, 1), (450, 1), (592, 2), (690, 2)):
    arrow(x, switches[0][3] + 6, x, 440, both=True, color="#3d7ebf")
text(300, 392, "pipelined chunks up,", 12, MUTED, anchor="start")
text(300, 406, "sums and copies down", 12, MUTED, anchor="start")
out.append(f'<path d="M{daemon[2] + 2} {middle} H966 V406" fill="none" stroke="{LINE}" '
           'stroke-width="1.8" marker-end="url(#tip)" marker-start="url(#tip)"/>')
text(958, 392, "join, recover", 12, MUTED, anchor="end")

with open(sys.argv[1], "w") as svg:
    svg.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
              'font-family="Helvetica, Arial, sans-serif">\n'
              '<title>The parts of banyan and what passes between them</title>\n'
              f'<defs><marker id="tip" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="7" markerHeight="7" '
              f'orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="{LINE}"/></marker></defs>\n'
              f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n' + "\n".join(out) + "\n</svg>\n")
