#!/usr/bin/env python3
"""Checks what operators load: the rules and the dashboard of docs/operate. promtool tests the rules and
parses the dashboard's expressions; every metric they name is one that banyand writes, and every alert
is tested and explained in docs/operate.md.
  alerts.py"""
import json, re, shutil, subprocess, sys, tempfile
from pathlib import Path

RULES, DASHBOARD = Path("docs/operate/banyan.rules.yml"), Path("docs/operate/dashboard.json")
TEST, PAGE, SOURCE = Path("tests/alerts/test.yml"), Path("docs/operate.md"), Path("control/service/daemon/metrics.c")
bad = 0


def say(text):
    global bad
    bad = 1
    print(text)


def promtool(what, *arguments):
    run = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    if run.returncode:
        say(f"{what}: promtool {' '.join(arguments[:2])}:\n{run.stdout}{run.stderr}")


rules = RULES.read_text()
written = set(re.findall(r'"((?:switch|port|share|engine|job|build|links?|swallows|pushe?s?|plan)_[a-z_]+)"', SOURCE.read_text()))
written |= {"swallows_total", "pushes_total", "leads", "store_up", "follows"} & set(re.findall(r'"([a-z_]+)"', SOURCE.read_text()))
recorded = set(re.findall(r"- record: (\S+)", rules))
dashboard = {}
try:
    dashboard = json.loads(DASHBOARD.read_text())
except ValueError as error:
    say(f"{DASHBOARD}: {error}")
panels = dashboard.get("panels", [])
if len({panel.get("id") for panel in panels}) != len(panels) or not panels:
    say(f"{DASHBOARD}: panels need different ids")
expressions = []
for panel in panels:
    missing = [key for key in ("title", "type", "gridPos", "description", "targets") if not panel.get(key)]
    if missing:
        say(f"{DASHBOARD}: panel {panel.get('id')}: without {', '.join(missing)}")
    expressions += [target["expr"] for target in panel.get("targets", [])]
for place, text in [(RULES, rules)] + [(DASHBOARD, expression) for expression in expressions]:
    text = re.sub(r"#.*|summary: .*", "", text)
    for name in set(re.findall(r"\bbanyan_([a-z_]+)", text)):
        if name not in written and re.sub(r"_(bucket|sum|count)$", "", name) not in written:
            say(f"{place}: banyan_{name} is not a metric of {SOURCE}")
    for name in set(re.findall(r"\bbanyan:[a-z_:0-9]+", text)) - recorded:
        say(f"{place}: {name} is not recorded by {RULES}")
page, test = PAGE.read_text(), TEST.read_text()
alerts = re.findall(r"- alert: (\S+)", rules)
for alert in alerts:
    if f"### {alert}\n" not in page:
        say(f"{PAGE}: no section '### {alert}'")
    if alert not in test:
        say(f"{TEST}: {alert} is never expected")
for alert in re.findall(r"^### (Banyan\S+)$", page, re.M):
    if alert not in alerts:
        say(f"{PAGE}: {RULES} has no alert {alert}")
if shutil.which("promtool"):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(RULES, folder)
        shutil.copy(TEST, folder)
        promtool(RULES, "check", "rules", f"{folder}/{RULES.name}")
        promtool(TEST, "test", "rules", f"{folder}/{TEST.name}")
        Path(folder, "panels.yml").write_text(json.dumps({"groups": [{"name": "panels", "rules": [
            {"record": f"panel:{i}", "expr": expression} for i, expression in enumerate(expressions)]}]}))
        promtool(DASHBOARD, "check", "rules", f"{folder}/panels.yml")
else:
    print("note: promtool is not installed (Debian: prometheus), so the rules are not evaluated")
print(f"{len(alerts)} alerts, {len(recorded)} recorded series and {len(panels)} panels checked")
sys.exit(bad)
