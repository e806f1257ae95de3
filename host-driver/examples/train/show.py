"""Shows training over banyan beside Gloo, on four hosts and real switches of a lab on this machine.

    show.py BUILD [-o FILE.svg] [--steps N]      as root; `make train` runs it

Both models of train.py are trained over Gloo, and over banyan in the modes fast, det and exact, with the
optimizer's state in shards (ZeRO-1), and with a spine switch killed in the middle. Links carry single
frames. The program checks that

- the loss curves over banyan are those over Gloo, up to rounding;
- runs in mode det repeat to the bit, and so do those in mode exact, ZeRO-1 and the killed spine included:
  no step is lost;
- the spine was killed during the training.

It prints a table and draws curves and times. Exit status: 0; 1 a check failed; 2 wrong usage; 77 the
machine lacks something.
"""
import argparse
import html
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = {"transformer": 2, "convolutions": 4}  # rows of a batch on each rank
# name -> (mode, the program's options); "killed" has its spine killed
RUNS = {
    "Gloo": ("fast", ["--backend", "gloo"]),
    "fast": ("fast", []),
    "det": ("det", []),
    "det again": ("det", []),
    "exact": ("exact", []),
    "exact again": ("exact", []),
    "ZeRO-1": ("exact", ["--zero"]),
    "killed": ("exact", []),
}
#: Losses over banyan may differ from those over Gloo by this: sums in another order, amplified by the steps.
TOLERANCE = 2e-3
LIMIT_S = 300
KILLED = "spine0"


class Shown:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.fabric = os.path.join(folder, "fabric.json")
        self.failed = 0
        self.banyan = os.path.join(options.build, "bin", "banyan")
        with open(self.fabric, "wb") as file:
            subprocess.run([self.banyan, "topo", "leafspine", "--spines", "2", "--uplink", "5"], stdout=file, check=True)

    def check(self, good, what):
        print(f"  {'PASS' if good else 'FAIL'}   {what}", flush=True)
        self.failed += not good

    def run(self, model, name):
        """Train once; return the record, with "killed": when the spine was killed, or None."""
        mode, words = RUNS[name]
        record, mark = os.path.join(self.folder, "record.json"), os.path.join(self.folder, f"{model}.middle")
        program = [sys.executable, "-W", "ignore", os.path.join(HERE, "train.py"), "--model", model, "--record", record]
        program += ["--rows", str(MODELS[model]), "--steps", str(self.options.steps), *words]
        # Gloo's frames are single ones, too.
        single = 'ethtool -K out0 tso off gso off gro off >/dev/null && exec "$@"'
        command = ["stdbuf", "-oL", self.banyan, "lab", "run", self.fabric, "-c", "allreduce,broadcast", "-m", mode]
        command += ["--transport", "udp", "--segments", "cut", "--controller", "--limit", str(LIMIT_S)]
        if name == "killed":  # when the training is in its middle
            command += ["--kill", f"{KILLED}@{mark}"]
            program += ["--mark", mark]
        environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
        environment["PYTHONPATH"] = os.path.join(self.options.build, "lib/banyan/torch")
        if os.path.exists(record):
            os.unlink(record)
        killed, lines = None, []
        called = time.time()
        with subprocess.Popen(
            [*command, "--", "sh", "-c", single, "sh", *program],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, text=True,
        ) as lab:  # fmt: skip
            for line in lab.stdout:
                lines.append(line)
                if line.startswith(f"# {KILLED} is killed"):
                    killed = time.time()
        if lab.returncode != 0 or not os.path.exists(record):
            print("".join(lines[-30:]))
            raise SystemExit(f"show.py: {model}, {name}: the lab ended with status {lab.returncode}; its output is above")
        with open(record, encoding="ascii") as file:
            found = json.load(file)
        found["killed"] = killed
        print(f"  RUN    {model:12} {name:11} {time.time() - called:.0f} s", flush=True)
        return found

    def model(self, model):
        records = {name: self.run(model, name) for name in RUNS}
        self.judge(model, records)
        return records

    def judge(self, model, records):
        curves = {name: record["losses"] for name, record in records.items()}
        worst = max(abs(a - b) for name in ("fast", "det", "exact") for a, b in zip(curves[name], curves["Gloo"]))
        self.check(worst <= TOLERANCE, f"{model}: the loss curves are those over Gloo, within {worst:.1e}")
        self.check(curves["Gloo"][-1] < 0.9 * curves["Gloo"][0], f"{model}: the loss falls")
        for name, other in (("det", "det again"), ("exact", "exact again"), ("exact", "ZeRO-1"), ("exact", "killed")):
            same = all(records[name][key] == records[other][key] for key in ("curve", "weights", "losses"))
            self.check(same, f"{model}: '{other}' has the losses and weights of '{name}', to the bit")
        begins, killed = records["killed"]["begins"], records["killed"]["killed"]
        done = sum(begin < killed for begin in begins) if killed else 0
        self.check(0 < done < len(begins), f"{model}: {KILLED} was killed in step {done} of {len(begins)}")
        records["killed"]["at"] = done


def percent(record):
    return 100 * max(0.0, 1 - record["alone"] / record["step"])


def table(results):
    print(f"\n{'model':13}{'run':13}{'first loss':>11}{'last loss':>11}{'step ms':>9}{'longest ms':>12}{'communication':>15}")
    for model, records in results.items():
        for name, one in records.items():
            part = "" if name == "ZeRO-1" else f"{percent(one):.0f} %"
            print(
                f"{model:13}{name:13}{one['losses'][0]:11.4f}{one['losses'][-1]:11.4f}{1e3 * one['step']:9.1f}"
                f"{1e3 * max(one['times'][1:]):12.1f}{part:>15}"
            )


# ---- the picture

INK, MUTED, GRID = "#1d2733", "#5b6770", "#dfe3e6"
GLOO, BANYAN, WAIT, COMPUTE = "#d9a441", "#3d7ebf", "#c2553f", "#9fb4c6"
WIDTH, PANEL, LEFT = 980, 250, 70


def text(x, y, words, size=12, color=INK, anchor="start", weight="normal"):
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}" text-anchor="{anchor}" '
        f'font-weight="{weight}">{html.escape(words)}</text>'
    )


def line(x1, y1, x2, y2, color, width=1.0, dash=""):
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" stroke-width="{width}"{dashes}/>'


def curves(records, top):
    """Return the loss curves over Gloo and over banyan, of the run with the killed spine."""
    width, height = 420, PANEL - 80
    count = len(records["Gloo"]["losses"])
    most = 1.05 * max(max(one["losses"]) for one in records.values())
    out = []

    def at(step, loss):
        return LEFT + width * step / max(1, count - 1), top + height * (1 - loss / most)

    for i in range(5):
        y = top + height * i / 4
        out += [line(LEFT, y, LEFT + width, y, GRID), text(LEFT - 8, y + 4, f"{most * (1 - i / 4):.1f}", 11, MUTED, "end")]
    for name, color, wide, dash in (("Gloo", GLOO, 6, ""), ("killed", BANYAN, 2, "")):
        points = " ".join("{:.1f},{:.1f}".format(*at(*one)) for one in enumerate(records[name]["losses"]))
        out.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="{wide}"/>')
    x = at(records["killed"]["at"] - 0.5, 0)[0]
    out += [line(x, top, x, top + height, WAIT, 1.5, "5,4"), text(x + 5, top + 14, f"{KILLED} is killed", 11, WAIT)]
    out += [text(LEFT, top + height + 18, "step 1", 11, MUTED), text(LEFT + width, top + height + 18, f"step {count}", 11, MUTED, "end")]
    return out


def bars(records, top):
    """Return the time of a step of each run: work, and what communication adds."""
    left, width, names = 590, 300, ("Gloo", "fast", "det", "exact")
    most = max(records[name]["step"] for name in names)
    out = []
    for i, name in enumerate(names):
        one, y = records[name], top + 4 + 42 * i
        whole, alone = width * one["step"] / most, width * min(1.0, one["alone"] / one["step"]) * one["step"] / most
        out.append(f'<rect x="{left}" y="{y}" width="{alone:.1f}" height="26" fill="{COMPUTE}"/>')
        out.append(f'<rect x="{left + alone:.1f}" y="{y}" width="{whole - alone:.1f}" height="26" fill="{GLOO if i == 0 else BANYAN}"/>')
        out.append(text(left - 8, y + 18, name if i == 0 else f"banyan {name}", 12, INK, "end"))
        out.append(text(left + whole + 6, y + 18, f"{1e3 * one['step']:.0f} ms", 12, MUTED))
    return out


def draw(results, file):
    height = 50 + PANEL * len(results)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
        f"<title>Training over banyan and over Gloo</title><rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>",
    ]
    for i, (model, records) in enumerate(results.items()):
        top = 50 + PANEL * i
        out.append(text(LEFT, top - 14, f"{model}: loss over Gloo (wide) and over banyan with a killed spine (narrow)", 13, INK, weight="bold"))
        out.append(text(590, top - 14, "a step: work, and what communication adds", 13, INK, weight="bold"))
        out += curves(records, top) + bars(records, top)
    out.append("</svg>")
    with open(file, "w", encoding="utf-8") as stream:
        stream.write("\n".join(out) + "\n")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("build", help="folder of the build, such as build/release")
    options.add_argument("-o", "--output", help="file for the picture (SVG)")
    options.add_argument("--steps", type=int, default=30, help="steps of each training, at least 10 (default 30)")
    options.add_argument("--model", choices=tuple(MODELS), help="only this model")
    options = options.parse_args()
    options.build = os.path.abspath(options.build)
    if options.steps < 10:
        sys.exit("show.py: --steps requires at least 10: a spine is killed in the middle")
    if os.geteuid() != 0:
        print("show.py: skipped: network namespaces need root", file=sys.stderr)
        sys.exit(77)
    if not os.path.exists(os.path.join(options.build, "lib/banyan/torch/banyan_torch/_C.so")):
        print("show.py: skipped: the backend is not built: make torch", file=sys.stderr)
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="banyan-train-") as folder:
        shown = Shown(options, folder)
        results = {model: shown.model(model) for model in MODELS if options.model in (None, model)}
    table(results)
    if options.output:
        draw(results, options.output)
        print(f"# the picture is {options.output}")
    sys.exit(shown.failed > 0)


if __name__ == "__main__":
    main()
