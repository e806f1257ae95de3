"""Wrong use of the backend "banyan": each is an error or a warning with the remedy, and nothing hangs.
Two processes between hosts on the loopback interface for each case.

    test_misuse.py          PYTHONPATH: the built package. Prints `N passed, N failed`; exit status 1 after a failure
    test_misuse.py CASE     one rank of a case
"""
import datetime
import os
import socket
import subprocess
import sys
import tempfile

RANKS = 2
LIMIT_S = 60


def fails(words, function, *arguments, **more):
    try:
        function(*arguments, **more)
    except (RuntimeError, ValueError, ImportError) as error:
        assert words in str(error), error
        return
    raise AssertionError(f"no error with '{words}'")


def init(**more):
    import banyan_torch  # noqa: F401
    import torch.distributed as dist

    dist.init_process_group("banyan", **more)
    return dist


# ---- what each rank does


def destroys_while_operations_run():
    """The worker's thread frees tensors that Python has dropped, while destroy waits for it; then again."""
    import torch

    for turn in range(3):
        dist = init(init_method=f"file://{os.environ['FOLDER']}/{turn}", rank=int(os.environ["RANK"]), world_size=RANKS)
        for _ in range(40):
            dist.all_reduce(torch.ones(50000), async_op=True)
        dist.destroy_process_group()
    print("destroyed")


def keeps_a_destroyed_group():
    """A model keeps a group alive: the next one has the job all the same, and the program ends silently."""
    import banyan_torch
    import torch

    kept = []
    for turn in range(2):
        dist = init(init_method=f"file://{os.environ['FOLDER']}/kept{turn}", rank=int(os.environ["RANK"]), world_size=RANKS)
        assert banyan_torch.describe()[0].startswith("over banyan"), banyan_torch.describe()
        data = torch.ones(3)
        dist.all_reduce(data)
        assert (data == RANKS).all()
        kept.append(dist.group.WORLD)
        dist.destroy_process_group()
    kept.append(kept)  # a cycle, which lasts until the program ends
    print("kept")


def passes_wrong_tensors():
    import torch

    dist = init()
    fails("pass tensor.contiguous()", dist.all_reduce, torch.zeros(4, 4).t())
    fails("pass tensor.contiguous()", dist.broadcast, torch.zeros(4, 4)[:, 1], 0)
    fails("does not support elements of type short", dist.all_reduce, torch.zeros(4, dtype=torch.int16))
    fails("such as tensor.to(torch.int32)", dist.reduce, torch.zeros(4, dtype=torch.bool), 0)
    # as a CUDA tensor without CUDA, which PyTorch refuses to make; its dispatcher has no entry for this device
    fails("Meta", dist.all_reduce, torch.zeros(4, device="meta"))
    fails("use ReduceOp.SUM and divide", dist.all_reduce, torch.zeros(4, dtype=torch.int32), op=dist.ReduceOp.AVG)
    fails("trying to initialize the default process group twice", dist.init_process_group, "banyan")
    for dtype in (torch.bool, torch.int16, torch.complex64):  # copies work for every type
        data = torch.full((5,), dist.get_rank() == 0, dtype=dtype)
        dist.broadcast(data, 0)
        parts = [torch.zeros(5, dtype=dtype) for _ in range(RANKS)]
        dist.all_gather(parts, data)
        assert all(part.equal(torch.ones(5, dtype=dtype)) for part in parts), dtype
    data = torch.ones(3)
    dist.all_reduce(data)
    assert (data == RANKS).all()
    fails("allreduce", dist.all_reduce, torch.ones(4 + dist.get_rank()))  # last: the communicator has failed
    dist.destroy_process_group()
    print("refused")


def ends_without_destroy():
    import torch

    dist = init()
    dist.all_reduce(torch.ones(3))
    print("ends")


def has_another_version():
    rank = int(os.environ["RANK"])
    fails("at rank 1 banyan_torch was built with libbanyan", init, timeout=datetime.timedelta(seconds=LIMIT_S))
    print("refused at", rank)


def fails_at_one_rank():
    rank = int(os.environ["RANK"])
    words = "rank 1 has failed: banyan: " if rank == 0 else "BANYAN_MODE"
    fails(words, init, timeout=datetime.timedelta(seconds=LIMIT_S))
    print("refused at", rank)


def never_starts():
    fails("rank 1 has not answered within 2 s in init_process_group or new_group; start all ranks", absent)
    print("refused")


def absent():
    """Makes the group of rank 0 alone, without Gloo, whose own meeting would fail first."""
    import banyan_torch
    import torch.distributed as dist

    store = dist.FileStore(os.environ["FOLDER"] + "/absent", RANKS)
    banyan_torch._C.create(store, 0, RANKS, 2.0, None, True, None)


def imports_with_another_torch():
    import torch

    torch.__version__ = "9.8.7"

    def load():
        import banyan_torch  # noqa: F401

    fails("and this is PyTorch 9.8.7; build it with this one: make torch-build", load)
    print("refused")


# ---- the cases: ranks, variables of rank 1, what all ranks print, and what standard error has

OTHER_VERSION = "int banyan_version(void); int banyan_version(void) { return 20304; }\n"
CASES = {
    destroys_while_operations_run: (RANKS, {}, "destroyed", ""),
    keeps_a_destroyed_group: (RANKS, {}, "kept", ""),
    passes_wrong_tensors: (RANKS, {}, "refused", ""),
    ends_without_destroy: (RANKS, {}, "ends", "ends without torch.distributed.destroy_process_group(), and 0 operations"),
    has_another_version: (RANKS, {"LD_PRELOAD": "version.so"}, "refused at", ""),
    fails_at_one_rank: (RANKS, {"BANYAN_MODE": "nonsense"}, "refused at", ""),
    never_starts: (1, {}, "refused", ""),
    imports_with_another_torch: (1, {}, "refused", ""),
}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def run(case, folder):
    """Run a case; return what is wrong, or None."""
    ranks, variables, printed, warned = CASES[case]
    common = dict(os.environ, WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), FOLDER=folder)
    common |= {"BANYAN_OFFLOAD": "off", "BANYAN_LOG": "0", "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    started = []
    for rank in range(ranks):
        more = {name: value.replace("version.so", folder + "/version.so") for name, value in variables.items() if rank == 1}
        started.append(
            subprocess.Popen(
                [sys.executable, "-W", "ignore", __file__, case.__name__],
                env={**common, "RANK": str(rank), **more}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
        )
    wrong = None
    for one in started:
        try:
            out, error = one.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            one.kill()
            out, error = one.communicate()
            wrong = wrong or f"it has not ended within {LIMIT_S} s\n{out}{error}"
        if one.returncode != 0 or printed not in out or warned not in error or (not warned and "ends without" in error):
            wrong = wrong or f"status {one.returncode}\n{out}{error}"
    return wrong


def main():
    if len(sys.argv) > 1:
        {case.__name__: case for case in CASES}[sys.argv[1]]()
        return
    failed = 0
    with tempfile.TemporaryDirectory(prefix="banyan-misuse-") as folder:
        with open(folder + "/version.c", "w", encoding="ascii") as file:
            file.write(OTHER_VERSION)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder + "/version.so", folder + "/version.c"], check=True)
        for case in CASES:
            wrong = run(case, folder)
            if wrong is not None:
                failed += 1
                print(f"FAIL {case.__name__}: {wrong}")
    print(f"{len(CASES) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
