"""Scenarios of inject.py with several programs: a controller with switches and hosts, and plugins."""
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time

from process import LIMIT_S, Process, Wrong

# Hosts on two switches. Those of x0 share memory with it, so that their sums are real.
HOSTS = {"x0": ["h0", "h1", "h2"], "x1": ["h3", "h4", "h5"]}


numbers = itertools.count(os.getpid())


def free_ports(count):
    """Ports of the loopback interface that nothing uses now."""
    doors = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [door.getsockname()[1] for door in doors]
    for door in doors:
        door.close()
    return ports


class Site:
    """A site in a folder: two switches that run, and how its controller and hosts are started."""

    def __init__(self, scenarios, folder, tls):
        self.scenarios, self.folder, self.tls = scenarios, folder, tls
        names = list(HOSTS) + ["hosts"]
        ports = free_ports(len(names)) if tls else [0] * len(names)
        self.at = {name: "tls:127.0.0.1:%d" % port if tls else "unix:%s/%s.sock" % (folder, name)
                   for name, port in zip(names, ports)}
        self.http = "unix:%s/http" % folder
        self.file = os.path.join(folder, "site.json")
        with open(self.file, "w") as file:  # a host runs one program of a job and a port at a time
            json.dump({"format": "banyan-site-1", "udp_port": 2000 + 16 * (next(numbers) % 3900)}, file)
        self.switches = [self.switch(name) for name in HOSTS]
        if not all(switch.until(r"ready,") for switch in self.switches):
            raise Wrong("a switch does not start:\n" + "".join(switch.text() for switch in self.switches))

    def keys(self, name):
        return ["--keys", os.path.join(self.scenarios.keys, name)] if self.tls else []

    def switch(self, name):
        command = [os.path.join(self.scenarios.bin, "banyan-switchd"), "--name", name, "--control", self.at[name],
                   "--no-huge", "--cores", "1"] + self.keys(name)
        for i in range(len(HOSTS[name])):
            command += (["--shm", os.path.join(self.folder, "198.18.0.%d" % (2 * i))] if name == "x0"
                        else ["--vdev", "net_null%d,no-rx=1" % i])
        return Process(self.folder, command + ["--vdev", "net_null9,no-rx=1"])

    def controller(self, *more, fault=None):
        """Starts banyand. A switch may be silent for three seconds, as on a busy machine."""
        command = [os.path.join(self.scenarios.bin, "banyand"), self.scenarios.site, "--site", self.file,
                   "--heartbeat", "1000", "--state", os.path.join(self.folder, "state"), "--http", "off",
                   "--socket", os.path.join(self.folder, "http"), "--members", self.at["hosts"]]
        for name in HOSTS:
            command += ["--to", "%s=%s" % (name, self.at[name])]
        return Process(self.folder, command + self.keys("operator") + list(more), fault)

    def job(self, *words):
        """Runs `banyan job`. Returns whether it succeeded, and its output."""
        process = Process(self.folder, [os.path.join(self.scenarios.bin, "banyan"), "job"] + list(words)
                          + ["--controller", self.http])
        return process.end() == 0, process.text()

    def create(self, number):
        return self.job("create", "-c", "allreduce", "--ranks", ",".join(HOSTS["x0"]), "--job", str(number))[0]

    def run(self, number, timeout_s):
        """The hosts of x0 run an allreduce in a job. Returns the texts of those that failed."""
        hosts = []
        for host in HOSTS["x0"]:
            environment = {"BANYAN_CONTROLLER": self.at["hosts"], "BANYAN_NODE": host, "BANYAN_JOB": str(number),
                           "BANYAN_TRANSPORT": "shm", "BANYAN_SHM": self.folder, "BANYAN_TIMEOUT": str(timeout_s)}
            if self.tls:
                environment["BANYAN_KEYS"] = os.path.join(self.scenarios.keys, host)
            hosts.append(Process(self.folder, [os.path.join(self.scenarios.examples, "example-allreduce")], environment))
        texts = []
        for process in hosts:
            status = process.end()
            text = process.text()
            if re.search("ranks is (?!3$)", text, re.M) or (status == 0 and "ranks is 3" not in text):
                raise Wrong("exit status %d, or a wrong sum:\n%s" % (status, text))
            if status != 0:
                texts.append(text)
        return texts

    def jobs(self):
        done, text = self.job("list", "--json")
        if not done:
            raise Wrong("the jobs cannot be listed:\n" + text)
        return {job["job"]: job["state"] for job in json.loads(text)["jobs"]}

    def await_jobs(self, wanted, process):
        """Waits until these jobs run, and no others."""
        begin = time.monotonic()
        while set(jobs := self.jobs()) != set(wanted) or set(jobs.values()) - {"running"}:
            if time.monotonic() - begin > LIMIT_S / 2:
                raise Wrong("the jobs are %s, not %s:\n%s" % (jobs, sorted(wanted), process.text()))
            time.sleep(0.02)

    def stop(self):
        for switch in self.switches:
            switch.process.terminate()
        for switch in self.switches:
            switch.end()


class Systems:
    """Scenarios that use bin, examples, site and keys of a subclass."""

    def make_site(self):
        names = [host for hosts in HOSTS.values() for host in hosts]
        links = [(host, switch) for switch, hosts in HOSTS.items() for host in hosts] + [("x0", "x1")]
        self.site, self.keys = os.path.join(self.scratch, "fabric.json"), os.path.join(self.scratch, "keys")
        with open(self.site, "w") as file:
            json.dump({"name": "site", "unit": "Gbit/s",
                       "nodes": [{"name": name, "kind": "compute"} for name in names]
                       + [{"name": name, "kind": "switch", "multicast": True, "aggregate": True} for name in HOSTS],
                       "links": [{"between": link, "bandwidth": 10} for link in links]}, file)
        self.banyan(["keys", self.keys, "--topology", self.site, "--controller", "operator"])

    def serve(self, folder, fault, tls):
        """A banyand with switches and hosts makes jobs, and ends one; the fault is in this phase."""
        site = Site(self, folder, tls)
        begin = os.path.join(folder, "begin")
        process = site.controller("--job", "2=allreduce:" + ",".join(HOSTS["x1"]), fault=dict(fault, FAIL_AFTER=begin))
        if not process.until(r"job 2 runs"):
            raise Wrong("banyand does not start:\n" + process.text())
        with open(begin, "w"):
            pass
        made = {2}
        ended = False
        if site.create(1):
            if process.process.poll() is None:
                site.run(1, 3)
            if site.create(3):
                made.add(3)
            ended = site.job("end", "1")[0]
        process.end(stop=True)
        if fault["FAIL_AT"] == "0" and not (ended and made == {2, 3}):
            raise Wrong("jobs are not made or ended without a fault:\n" + process.text())
        self.serve_next(site, made, ended)
        site.stop()

    def serve_next(self, site, made, ended):
        """The next banyand has the jobs that were acknowledged, and hosts run in them."""
        process = site.controller()
        if not process.until(r"ready,"):
            raise Wrong("the next banyand does not start:\n" + process.text())
        jobs = set(site.jobs())
        if made - jobs:
            raise Wrong("the next banyand has lost a job that ran: %s\n%s" % (jobs, process.text()))
        if ended and 1 in jobs:
            raise Wrong("the next banyand has a job that was ended:\n" + process.text())
        if 3 not in jobs and not site.create(3):
            raise Wrong("the next banyand makes no job:\n" + process.text())
        site.await_jobs(jobs | {3}, process)
        texts = site.run(3, LIMIT_S // 2)
        if texts:
            raise Wrong("hosts of the next banyand fail:\n%s%s" % ("".join(texts), process.text()))
        if not site.job("end", "3")[0]:
            raise Wrong("the next banyand ends no job:\n" + process.text())
        site.await_jobs(jobs - {3}, process)
        if process.end(stop=True) != 0:
            raise Wrong("the next banyand ends with an error:\n" + process.text())

    def banyand_serves(self, folder, fault):
        self.serve(folder, fault, False)

    def banyand_tls(self, folder, fault):
        self.serve(folder, fault, True)

    # Two ranks on one cable, the loopback interface of a network namespace. Rank 0 has the fault, in
    # the code of libbanyan and of the plugin.

    def two(self, folder, fault, script, right, preload=None):
        """Runs a script of the shell, with $RANK0 and $RANK1 as the prefixes of both ranks."""
        faults = dict(fault, FAIL_OWN="banyan")
        if preload:
            faults["LD_PRELOAD"] = preload + ":" + fault["LD_PRELOAD"]
        ranks = ["env RANK=%d BANYAN_TABLE=%s/h%d.table" % (rank, self.pair, rank) for rank in (0, 1)]
        ranks[0] += "".join(" %s=%s" % pair for pair in faults.items())
        environment = {"RANK0": ranks[0], "RANK1": ranks[1], "WORLD_SIZE": "2", "MASTER_ADDR": "10.7.0.1",
                       "MASTER_PORT": "29500", "HOME": folder, "TMPDIR": folder, "BANYAN_NCCL_INTERFACE": "lo",
                       "BANYAN_TIMEOUT": "10" if fault["FAIL_AT"] == "0" else "2",
                       "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "UCX_TLS": "posix,self"}
        network = ("ip link set lo up && ip address add 10.7.0.1/32 dev lo && ip address add 10.7.0.2/32 dev lo"
                   " || exit 3\n")
        process = Process(folder, ["unshare", "--net", "sh", "-c", network + script], environment)
        status = process.end()
        text = process.text()
        wrong = re.search("wrong (data|value)|: wrong$|AssertionError", text, re.M)
        if wrong or (status == 0 and not re.search(right, text)) or (status != 0 and fault["FAIL_AT"] == "0"):
            raise Wrong("exit status %d, or a wrong result:\n%s" % (status, text))

    BOTH = "$RANK1 %s & $RANK0 %s; status=$?; wait $!; peer=$?; [ $peer -le 3 ] || exit $peer; exit $status"

    def nccl(self, folder, fault):
        """The harness of the NCCL plugin: a ring of messages, and CollNet."""
        rank = os.path.join(self.examples, "nccl-rank") + " 12 65536"
        self.two(folder, fault, self.BOTH % (rank, rank), "collective operations, 0 wrong")

    def python(self, folder, fault):
        here = os.path.dirname(os.path.abspath(__file__))
        rank = "%s %s %s" % (sys.executable, os.path.join(here, "rank.py"), os.path.join(self.lib, "libbanyan.so.0"))
        self.two(folder, fault, self.BOTH % (rank, rank), "right")

    def mpi(self, folder, fault, launcher, preload=None):
        """A plain MPI program under banyan-run."""
        name = launcher.split(maxsplit=1)[0]
        program, run = os.path.join(self.scratch, name), os.path.join(self.bin, "banyan-run")
        if not os.path.exists(program):
            self.compile(name, program)
        ranks = " : ".join("-n 1 $RANK%d %s" % (rank, program) for rank in (0, 1))
        self.two(folder, fault, "exec %s %s %s" % (run, launcher, ranks), "right", preload)

    def openmpi(self, folder, fault):
        self.mpi(folder, fault, "mpirun.openmpi --mca btl self,vader --mca oob_tcp_if_include lo --mca plm isolated"
                                " --mca mpi_yield_when_idle 1 --bind-to none --oversubscribe")

    def mpich(self, folder, fault):
        self.mpi(folder, fault, "mpirun.mpich", os.path.join(self.lib, "banyan/libbanyan-mpich.so"))

    @staticmethod
    def compile(launcher, program):
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mpi.c")
        subprocess.run([launcher.replace("mpirun", "mpicc"), "-O2", "-o", program, source], check=True)

    def lacks(self, name):
        """Returns why a scenario cannot run here, or None."""
        if name in ("library_udp", "nccl", "python", "openmpi", "mpich") and os.geteuid() != 0:
            return "its network namespace needs root"
        plugin = {"openmpi": "openmpi/mca_coll_banyan.so", "mpich": "libbanyan-mpich.so"}.get(name)
        if plugin and not (shutil.which("mpicc." + name) and os.path.exists(os.path.join(self.lib, "banyan", plugin))):
            return "it needs the plugin for MPI: make mpi"
        return None
