"""A banyand of a large fabric whose switches do not exist: forwards the page's files and the fabric
from a real banyand, and makes up loads, jobs, failures, events and an hour of history, which change
with time. For the test of the live page."""
import http.server, json, math, random, threading, time, urllib.request


class Large:
    def __init__(self, base):
        self.base = base
        with urllib.request.urlopen(base + "/v1/fabric") as answer:
            self.fabric = json.load(answer)
        self.links = self.fabric["links"]
        self.random = random.Random(1)
        self.phase = [self.random.random() * 6.28 for _ in range(2 * len(self.links))]
        self.switches = [n for n, node in enumerate(self.fabric["nodes"]) if not node[1]]
        self.down = {"links": sorted(self.random.sample(range(len(self.links)), 3)), "nodes": self.switches[70:71]}

    def load(self, now):
        wave = 0.5 + 0.45 * math.sin(now / 7)
        return [None if i // 2 in self.down["links"] else int((self.links[i // 2][2 + i % 2] or 0) * max(0, wave * (0.6 + 0.4 * math.sin(self.phase[i] + now / 3))))
                for i in range(len(self.phase))]

    def sample(self, now, load=None):
        carried = sum(rate or 0 for rate in load) if load else int(1e13 * (1 + 0.5 * math.sin(now / 300)))
        jobs = [[1, int(900 + 60 * math.sin(now / 200))], [7, int(700 + 200 * math.sin(now / 90))]]
        return [int(now * 1000), carried, int(700 + 250 * math.sin(now / 120)), 3 if now % 1200 < 40 else 0, 0, jobs]

    def events(self, now):
        texts = [("bad", "link leaf3 - spine2 is down: no carrier"), ("plain", "link leaf3 - spine2 is down: planning again"),
                 ("good", "job 1 is in generation 4, 212 ms after the planning began (4 ms to hosts, 9 ms to switches; 230 ms after the first report of a wait)"), ("good", "link leaf3 - spine2 is up")]
        return [{"number": 20 - i, "time": int((now - 9 * i) * 1000), "grade": texts[i % 4][0], "text": texts[i % 4][1]} for i in range(20)]

    def job(self, number, name, joined):
        hosts = len(self.fabric["nodes"]) - len(self.switches)
        plan = {"collective": "allreduce", "root": None, "optimum": 10_000_000_000, "plan": 9_700_000_000, "trees": 4}
        measured = {"collective": "allreduce", "operations": 812, "recent": 14, "rate": 8_900_000_000}
        return {"job": number, "name": name, "state": "running", "text": "", "generation": 4, "ranks": hosts, "joined": joined,
                "missing": [self.fabric["nodes"][n][0] for n in range(joined, min(hosts, joined + 16))], "share": "1/2", "permille": 890,
                "plans": [plan, {**plan, "collective": "broadcast", "root": "host0"}], "measured": [measured]}

    def live(self):
        now = time.time()
        load = self.load(now)
        return {"started": self.fabric["started"], "time": int(now * 1000), "leads": True, "changing": False, "switches": len(self.switches),
                "nodes_up": [n for n in self.switches if n not in self.down["nodes"]], "nodes_down": self.down["nodes"], "nodes_distrusted": self.switches[9:10],
                "links_down": self.down["links"], "links_distrusted": [17], "load": load, "jobs": [self.job(1, "train", 1021), self.job(7, "", 1024)],
                "waiting": [{"job": 1, "tree": 0, "chunk": 9, "waits_for": "children", "missing": ["host1022"], "node": self.switches[0]}],
                "events": self.events(now // 9 * 9), "sample": self.sample(now // 2 * 2, load)}

    def history(self, query):
        now = time.time() // 2 * 2
        if query:
            wave = [int(50 + 40 * math.sin(i / 20)) for i in range(225)]
            return {"link": int(query.split("=")[1]), "step_ms": 16000, "ab": wave, "ba": wave[::-1]}
        return {"started": self.fabric["started"], "step_ms": 2000, "events": self.events(now // 9 * 9),
                "samples": [self.sample(now - 2 * i) for i in range(1799, 0, -1)]}


def serve(base):
    """Starts the server in a thread. Returns its address."""
    large = Large(base)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            path, _, query = self.path.partition("?")
            if path in ("/v1/live", "/v1/history"):
                body, kind = json.dumps(large.live() if path == "/v1/live" else large.history(query)).encode(), "application/json"
            else:
                with urllib.request.urlopen(base + self.path) as answer:
                    body, kind = answer.read(), answer.headers["Content-Type"]
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"
