#!/usr/bin/python3
"""Tests the live page in Debian's Chromium, and takes pictures of it in both themes. Each check prints
a line; the last line is `N passed, N failed`.
  test_page.py lab URL PICTURES BREAK...   a lab with traffic; the command BREAK breaks one of its links
  test_page.py large URL PICTURES          the fabric of the banyand at URL, with made-up loads"""
import subprocess, sys, tempfile, time
import many
from browser import Browser

FAULT_S = 1.0  # until a fault is on the page
FRAMES_MIN = 20  # in a second, drawn by the processor alone
TAB, ENTER, ARROW_RIGHT, ARROW_UP = "\ue004", "\ue007", "\ue014", "\ue013"
counts = {True: 0, False: 0}

# The texts of the page whose contrast to their background is below 4.5 (WCAG 2.1, 1.4.3).
CONTRAST = """(() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (c) => c.slice(0, 3).map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
      .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const back = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  const bad = [];
  for (const e of document.body.querySelectorAll('*')) {
    if (!e.checkVisibility() || ![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    const a = light(rgb(getComputedStyle(e).color)), b = light(back(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(e.textContent.slice(0, 40) + ' ' + ratio.toFixed(2));
  }
  return bad;
})()"""
# The colours of lines and marks whose contrast to the panel is below 3 (WCAG 2.1, 1.4.11).
MARKS = """(() => {
  const style = getComputedStyle(document.documentElement), value = (name) => style.getPropertyValue('--' + name).trim();
  const light = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
      .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const panel = light(value('panel'));
  return ['load-0', 'load-1', 'load-2', 'load-3', 'load-4', 'load-5', 'bad', 'doubt', 'node-line', 'focus'].map((name) => {
    const mark = light(value(name)), ratio = (Math.max(mark, panel) + 0.05) / (Math.min(mark, panel) + 0.05);
    return ratio < 3 ? name + ' ' + ratio.toFixed(2) : '';
  }).filter((text) => text);
})()"""
# Zooms in and out with the wheel for some seconds, once in every frame.
FRAMES = """const done = arguments[arguments.length - 1], canvas = document.getElementById('fabric'), box = canvas.getBoundingClientRect();
const start = performance.now(), times = [];
let last = start;
const tick = (now) => {
  times.push(now - last);
  last = now;
  canvas.dispatchEvent(new WheelEvent('wheel', { deltaY: times.length % 120 < 60 ? -12 : 12, clientX: box.left + box.width / 2, clientY: box.top + 100, cancelable: true }));
  if (now - start < arguments[0]) return requestAnimationFrame(tick);
  const sorted = times.slice(1).sort((a, b) => a - b), at = (part) => sorted[Math.floor(part * (sorted.length - 1))];
  return done({ rate: (times.length - 1) * 1000 / (now - start), median: at(0.5), most: at(1), late: sorted.filter((t) => t > 34).length });
};
requestAnimationFrame(tick);"""
# Time, on the page's clock, from now until the table of links has a line that is down.
WATCH = """window.seen = null; window.watched = performance.now();
new MutationObserver(() => { if (window.seen === null && /down/.test(document.querySelector('#links table tbody').textContent)) window.seen = performance.now() - window.watched; })
    .observe(document.getElementById('links'), { childList: true, subtree: true });"""


def check(what, good, more=""):
    counts[bool(good)] += 1
    print(f"  {'PASS' if good else 'FAIL'}   {what}{'' if good else f': {more}'}", flush=True)


def no_errors(browser, what):
    messages = [message["message"] for message in browser.messages() if message["level"] != "INFO"]
    check(f"no error on the console: {what}", not messages, messages)


def pictures(browser, folder, name):
    for theme in ("light", "dark"):
        browser.theme(theme)
        browser.value("scrollTo(0, 0)")
        time.sleep(0.8)
        browser.picture(f"{folder}/{name}-{theme}.png")
        bad = browser.value(CONTRAST) + browser.value(MARKS)
        check(f"contrast of texts and marks, {name}, {theme}", not bad, bad)


def keyboard(browser):
    focused = []
    for _ in range(12):
        browser.keys(":focus" if focused else "body", TAB)
        focused.append(browser.value("document.activeElement.id"))
    wanted = ["theme", "closer", "farther", "whole", "fabric", "jobs", "events", "series", "history", "links"]
    check("the keyboard reaches every part", [one for one in focused if one in wanted] == wanted, focused)
    browser.keys("#fabric", ARROW_RIGHT, ARROW_RIGHT)
    host = browser.value("document.getElementById('details').textContent")
    check("arrow keys select a node", "host" in host and "Sends" in host, host)
    browser.keys("#fabric", ARROW_UP)
    check("and the switch above it", "switch, up" in browser.value("document.getElementById('details').textContent"))
    browser.keys("#fabric", ENTER)
    browser.wait("document.querySelector('#details canvas') !== null", 5)
    check("Enter shows a link with its hour", "Capacity" in browser.value("document.getElementById('details').textContent"))


def theme_button(browser):
    browser.theme("light")
    texts = []
    for _ in range(3):
        browser.keys("#theme", ENTER)
        texts.append((browser.value("document.getElementById('theme').textContent"), browser.value("document.documentElement.hasAttribute('data-dark')")))
    check("the button changes the theme", texts == [("Theme: light", False), ("Theme: dark", True), ("Theme: automatic", False)], texts)


def lab(browser, url, folder, command):
    browser.open(url + "/")
    browser.wait("document.querySelector('#jobs table') !== null")
    browser.wait("/[MG]B\\/s/.test(document.getElementById('links').textContent)")
    check("measured load is shown", True)
    browser.wait("document.querySelector('#jobs meter') !== null")
    check("and what jobs reach of their optimum", True)
    time.sleep(5)
    keyboard(browser)
    pictures(browser, folder, "lab")
    theme_button(browser)
    browser.keys("#fabric", "\ue00c")
    browser.run(f"{WATCH} arguments[arguments.length - 1]();")
    start = time.monotonic()
    subprocess.run(command, check=True)
    spent = time.monotonic() - start
    browser.wait("window.seen !== null")
    seen = browser.value("window.seen") / 1000
    check(f"a broken link is on the page after {seen:.2f} s (the command took {spent:.2f} s)", seen <= FAULT_S, f"the limit is {FAULT_S} s")
    browser.wait("/is down: no carrier/.test(document.getElementById('events').textContent)", 3)
    check("with an event", True)
    browser.theme("light")
    time.sleep(0.5)
    browser.picture(f"{folder}/lab-fault.png")
    no_errors(browser, "lab")


def large(browser, url, folder):
    base = many.serve(url)
    browser.open(base + "/")
    browser.wait("document.querySelector('#jobs table') !== null")
    time.sleep(2)
    pictures(browser, folder, "large")
    browser.theme("light")
    result = browser.run(FRAMES, 5000)
    nodes = browser.value("fetch('v1/fabric').then((a) => a.json()).then((f) => f.nodes.length)")
    check(f"{nodes} nodes: {result['rate']:.0f} frames per second while zooming, median {result['median']:.1f} ms, longest {result['most']:.0f} ms, "
          f"{result['late']} above 34 ms", result["rate"] >= FRAMES_MIN, f"at least {FRAMES_MIN} are required")
    for _ in range(6):
        browser.keys("#closer", ENTER)
    browser.keys("#fabric", ARROW_RIGHT, ARROW_UP)
    time.sleep(0.6)
    browser.picture(f"{folder}/large-near.png")
    no_errors(browser, "large")


def main():
    what, url, folder, *command = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        browser = Browser(scratch)
        try:
            lab(browser, url, folder, command) if what == "lab" else large(browser, url, folder)
        except RuntimeError as error:
            browser.picture(f"{folder}/failed.png")
            check("the test", False, error)
        finally:
            browser.close()
    print(f"{counts[True]} passed, {counts[False]} failed")
    sys.exit(counts[False] > 0)


main()
