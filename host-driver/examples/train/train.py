"""Trains a small model on synthetic data with DistributedDataParallel, over banyan or Gloo.

    banyan lab run fabric.json -- python3 train.py --backend banyan --model transformer --steps 50

Rank 0 prints one line: the loss of the first and last step, a hash of all losses and of the final
weights, the median time of a step and the part of it without communication (measured with no_sync).
--record FILE writes them as JSON, with the loss, begin and duration of each step. All ranks must end
with the same weights. show.py runs both models over both backends and draws the records.
"""
import argparse
import hashlib
import json
import statistics
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Transformer(nn.Module):
    """Predicts the next symbol of a sequence."""

    def __init__(self, symbols=64, width=128, layers=2):
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

    def __init__(self, width=1024):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(64 * 16, width), nn.ReLU(), nn.Linear(width, 4),
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
ALONE = 5  # steps without communication, after the others


def hash_of(tensors):
    return hashlib.sha256(b"".join(one.detach().numpy().tobytes() for one in tensors)).hexdigest()[:16]


def parse():
    options = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--backend", choices=("banyan", "gloo"), default="banyan")
    options.add_argument("--model", choices=tuple(MODELS), default="transformer")
    options.add_argument("--steps", type=int, default=30)
    options.add_argument("--rows", type=int, default=8, help="rows of a batch on each rank")
    options.add_argument("--zero", action="store_true", help="shard the optimizer's state (ZeRO-1)")
    options.add_argument("--mark", help="file that rank 0 creates in the middle of the training")
    options.add_argument("--record", help="file for the losses and times of each step, as JSON")
    options = options.parse_args()
    if options.steps < 1 or options.rows < 1:
        raise SystemExit("train.py: --steps and --rows require at least 1")
    return options


def train(options):
    """Train; return (mean loss of each step, begin and seconds of each step, seconds alone, hash of the weights)."""
    kind = MODELS[options.model]
    model = DistributedDataParallel(kind())
    if options.zero:
        from torch.distributed.optim import ZeroRedundancyOptimizer

        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-3)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = torch.Generator().manual_seed(100 + dist.get_rank())
    losses, begins, times, alone = [], [], [], []

    def step():
        inputs, targets = kind.batch(data, options.rows)
        loss = nn.functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        return loss.detach()

    for number in range(options.steps):
        if options.mark and number == options.steps // 2 and dist.get_rank() == 0:
            with open(options.mark, "x", encoding="ascii"):
                pass
        begins.append(time.time())
        begin = time.perf_counter()
        loss = step()
        optimizer.step()
        times.append(time.perf_counter() - begin)
        losses.append(loss)
    weights = [None] * dist.get_world_size()
    dist.all_gather_object(weights, hash_of(model.parameters()))
    if len(set(weights)) != 1:
        raise SystemExit(f"train.py: the ranks have ended with different weights: {' '.join(weights)}")
    for _ in range(ALONE):  # the same work without communication; ZeRO-1's optimizer communicates
        begin = time.perf_counter()
        with model.no_sync():
            step()
        if not options.zero:
            optimizer.step()
        alone.append(time.perf_counter() - begin)
    curve = torch.stack(losses)
    dist.all_reduce(curve)
    return curve / dist.get_world_size(), begins, times, alone, weights[0]


def main():
    options = parse()
    if options.backend == "banyan":
        import banyan_torch  # noqa: F401  registers the backend

    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group(options.backend)
    curve, begins, times, alone, weights = train(options)
    if dist.get_rank() == 0:
        step_s, alone_s = statistics.median(times), statistics.median(alone)
        print(
            f"{options.model} over {options.backend}: loss {curve[0]:.4f} -> {curve[-1]:.4f}, "
            f"curve {hash_of([curve])}, weights {weights}, "
            f"step {1e3 * step_s:.1f} ms, without communication {1e3 * alone_s:.1f} ms",
            flush=True,
        )
        if options.record:
            record = {
                "model": options.model,
                "backend": options.backend,
                "curve": hash_of([curve]),
                "weights": weights,
                "losses": curve.tolist(),
                "begins": begins,
                "times": times,
                "step": step_s,
                "alone": alone_s,
            }
            with open(options.record, "w", encoding="ascii") as file:
                json.dump(record, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
