"""Times PyTorch's collectives and training steps over banyan and over Gloo, in turn, in one process of
each host: started by tests/bench/torch.sh on each host of a lab.

    torch_rates.py ROUNDS

Rank 0 prints the median, in milliseconds, of an allreduce of a bucket of 25 MB and of a step of
DistributedDataParallel, for both backends, and of the step without communication. All ranks check
every element of a bucket in each round, outside of the time.
"""
import os
import statistics
import sys
import time

import banyan_torch  # noqa: F401  registers the backend
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../host-driver/examples/train"))
from train import Convolutions  # noqa: E402

BUCKET = 25 << 20  # bytes; DistributedDataParallel's default
WIDTH = 6144  # of the model: 6.3 million parameters, 25 MB
WARMUP = 2


def main():
    rounds = int(sys.argv[1])
    torch.set_num_threads(1)
    dist.init_process_group("banyan")
    rank, size = dist.get_rank(), dist.get_world_size()
    groups = {"banyan": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    times = {}

    def timed(what, function, *arguments):
        dist.barrier(group=groups["gloo"])
        begin = time.perf_counter()
        function(*arguments)
        end = torch.tensor([time.perf_counter() - begin])
        dist.all_reduce(end, op=dist.ReduceOp.MAX, group=groups["gloo"])  # the slowest rank's
        times.setdefault(what, []).append(1e3 * end.item())

    bucket = torch.empty(BUCKET // 4)
    for turn in range(WARMUP + rounds):
        for name, group in groups.items():
            bucket.fill_(rank + turn)
            timed(f"bucket {name}", lambda group=group: dist.all_reduce(bucket, group=group))
            assert (bucket == size * turn + size * (size - 1) / 2).all(), f"a wrong sum over {name}"
    models = {}
    for name, group in groups.items():
        torch.manual_seed(1)
        models[name] = DistributedDataParallel(Convolutions(width=WIDTH), process_group=group)
    optimizers = {name: torch.optim.SGD(model.parameters(), lr=0.01) for name, model in models.items()}
    data = torch.Generator().manual_seed(rank)

    def step(name, inputs, targets):
        optimizers[name].zero_grad()
        nn.functional.cross_entropy(models[name](inputs), targets).backward()
        optimizers[name].step()

    def alone(name, inputs, targets):
        with models[name].no_sync():
            step(name, inputs, targets)

    for _ in range(WARMUP + rounds):
        inputs, targets = Convolutions.batch(data, 4)
        for name in models:
            timed(f"step {name}", step, name, inputs, targets)
    for _ in range(WARMUP + rounds):
        timed("step alone", alone, "gloo", inputs, targets)
    if rank == 0:
        for what, found in times.items():
            print(f"median {what}: {statistics.median(found[WARMUP:]):.2f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
