"""Trains a small model on synthetic data with DistributedDataParallel, over banyan or Gloo.

    banyan lab run fabric.json -- python3 train.py --backend banyan --model transformer --steps 50

Rank 0 prints one line: the loss of the first and last step, a hash of all losses and of the final
weights, the median time of a step and the part of it without communication (measured with no_sync).
--losses FILE writes the loss of each step.
"""
import argparse
import hashlib
import statistics
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Transformer(nn.Module):
    """Predicts the next symbol of a sequence."""

    def __init__(self, symbols=64, width=256, layers=2):
        super().__init__()
        self.embed = nn.Embedding(symbols, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.out = nn.Linear(width, symbols)

    def forward(self, data):
        return self.out(self.encoder(self.embed(data))).flatten(0, 1)

    @staticmethod
    def batch(generator, rows):
        """Return sequences in which each symbol follows from the one before, and their successors."""
        first = torch.randint(64, (rows, 1), generator=generator)
        data = (first + 5 * torch.arange(17)) % 64
        return data[:, :-1], data[:, 1:].flatten()


class Convolutions(nn.Module):
    """Tells bars of four directions apart."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(64 * 16, 1024), nn.ReLU(), nn.Linear(1024, 4),
        )  # fmt: skip

    def forward(self, data):
        return self.layers(data)

    @staticmethod
    def batch(generator, rows):
        """Return noisy pictures of 16 x 16 with one bar each, and its direction."""
        kinds = torch.randint(4, (rows,), generator=generator)
        places = torch.randint(2, 14, (rows,), generator=generator)
        pictures = 0.3 * torch.randn(rows, 1, 16, 16, generator=generator)
        diagonal = torch.arange(16)
        for picture, kind, place in zip(pictures, kinds, places):
            if kind == 0:
                picture[0, place, :] += 1
            elif kind == 1:
                picture[0, :, place] += 1
            else:
                picture[0, diagonal, (diagonal + place) % 16 if kind == 2 else (place - diagonal) % 16] += 1
        return pictures, kinds


MODELS = {"transformer": Transformer, "convolutions": Convolutions}


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--backend", choices=("banyan", "gloo"), default="banyan")
    options.add_argument("--model", choices=tuple(MODELS), default="transformer")
    options.add_argument("--steps", type=int, default=30)
    options.add_argument("--rows", type=int, default=8, help="rows of a batch on each rank")
    options.add_argument("--zero", action="store_true", help="shard the optimizer's state (ZeRO-1)")
    options.add_argument("--losses", help="file for the loss of each step")
    options = options.parse_args()
    if options.backend == "banyan":
        import banyan_torch  # noqa: F401  registers the backend

    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group(options.backend)
    rank = dist.get_rank()
    kind = MODELS[options.model]
    model = DistributedDataParallel(kind())
    if options.zero:
        from torch.distributed.optim import ZeroRedundancyOptimizer

        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-3)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = torch.Generator().manual_seed(100 + rank)
    losses, times = [], []

    def step():
        inputs, targets = kind.batch(data, options.rows)
        loss = nn.functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        return loss.detach()

    for _ in range(options.steps):
        begin = time.perf_counter()
        loss = step()
        optimizer.step()
        times.append(time.perf_counter() - begin)
        losses.append(loss)
    alone = []
    for _ in range(5):  # the same work without communication
        begin = time.perf_counter()
        with model.no_sync():
            step()
        alone.append(time.perf_counter() - begin)
    curve = torch.stack(losses)
    dist.all_reduce(curve)
    curve /= dist.get_world_size()
    if rank == 0:
        state = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()[:16]
        curve_hash = hashlib.sha256(curve.numpy().tobytes()).hexdigest()[:16]
        print(
            f"{options.model} over {options.backend}: loss {curve[0]:.4f} -> {curve[-1]:.4f}, "
            f"curve {curve_hash}, weights {state}, "
            f"step {1e3 * statistics.median(times):.1f} ms, without communication {1e3 * statistics.median(alone):.1f} ms",
            flush=True,
        )
        if options.losses:
            with open(options.losses, "w", encoding="ascii") as file:
                file.writelines(f"{i} {loss:.6f}\n" for i, loss in enumerate(curve))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
