"""Training on a device by two processes, in data parallel and with sharded parameters, over a
backend of torch.distributed.

    train.py BACKEND DEVICE WRAP       RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set; WRAP: ddp, fsdp or
fsdp2 (fully_shard)

All ranks use the first GPU. Rank 0 prints one line with the losses. tests/gpu/gpu.sh runs it on CUDA,
and on the processor where there is no GPU. Exit status 77: this PyTorch cannot do it.
"""
import sys

import torch
import torch.distributed as dist
from torch import nn

STEPS = 8


def skip(why):
    print(f"train.py: skipped: {why}", flush=True)
    if dist.is_initialized():
        dist.destroy_process_group()
    sys.exit(77)


def wrap(model, how, device):
    if how == "ddp":
        return nn.parallel.DistributedDataParallel(model)
    try:
        if how == "fsdp2":
            from torch.distributed.device_mesh import init_device_mesh
            from torch.distributed.fsdp import fully_shard
        else:
            from torch.distributed.fsdp import FullyShardedDataParallel
    except Exception as error:  # PyTorch 1.13 raises ValueError under Python 3.11
        skip(f"PyTorch {torch.__version__} does not import it: {error}")
    if device == "cpu":
        skip("sharded parameters require a GPU")
    if how == "fsdp2":
        fully_shard(model, mesh=init_device_mesh(device, (dist.get_world_size(),)))
        return model
    return FullyShardedDataParallel(model, device_id=torch.device(device, 0))


def check_streams(rank, size, device):
    """Run collectives on tensors that the stream uses before and after, without waiting for it."""
    data = torch.arange(100003, device=device, dtype=torch.float32) * (rank + 1)
    data *= 2
    dist.all_reduce(data)
    data += 1
    assert torch.equal(data.cpu(), torch.arange(100003, dtype=torch.float32) * size * (size + 1) + 1)
    parts = torch.empty(size * 1001, device=device, dtype=torch.bfloat16)
    dist.all_gather_into_tensor(parts, torch.full((1001,), float(rank), device=device, dtype=torch.bfloat16))
    assert all((parts[i * 1001 : (i + 1) * 1001] == i).all() for i in range(size))


def main():
    backend, device, how = sys.argv[1:]
    if device == "cuda" and not torch.cuda.is_available():
        skip(f"PyTorch {torch.__version__} finds no GPU")
    if backend == "banyan":
        import banyan_torch
    torch.manual_seed(1)
    torch.set_num_threads(1)
    dist.init_process_group(backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    if backend != "gloo":
        check_streams(rank, size, device)
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 8)).to(device)
    model = wrap(model, how, device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank)
    losses = []
    for _ in range(STEPS):
        inputs = torch.randn(32, 64, generator=generator).to(device)
        loss = nn.functional.cross_entropy(model(inputs), (inputs[:, :8].argmax(1)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    losses = torch.stack(losses)
    dist.all_reduce(losses)
    if backend == "banyan":
        text, offloaded, passed = banyan_torch.describe()
        assert offloaded > STEPS, (text, offloaded, passed)
    if rank == 0:
        print(f"{how} over {backend} on {device}, PyTorch {torch.__version__}: losses " + " ".join(f"{one:.4f}" for one in losses / size))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
