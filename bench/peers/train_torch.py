#!/usr/bin/python3
"""Peer: a plain Llama-style decoder trained on random tokens with PyTorch on the CPU, in fp32 or with bf16 autocast.

usage: train_torch.py SHAPE fp32|bf16 --threads T [--ranks N] [--seconds S]

One process with T threads, or N processes (DistributedDataParallel over gloo) with T threads and the shape's batch each.
Prints one line of JSON: tokens_per_second of the median and of the fastest step, gflops, and the peak resident bytes of all processes.
Use Debian's interpreter (/usr/bin/python3 with python3-torch), and name OpenBLAS's kernels in OPENBLAS_CORETYPE: left alone, old versions do
not know new processors.
"""
import argparse
import json
import math
import os
import resource
import socket
import statistics
import time

parser = argparse.ArgumentParser()
parser.add_argument("shape", choices=["tiny", "small", "gpt2"])
parser.add_argument("precision", choices=["fp32", "bf16"])
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--ranks", type=int, default=1)
parser.add_argument("--seconds", type=float, default=10)
args = parser.parse_args()
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(args.threads)  # before torch loads its BLAS

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F

# hidden, layers, heads, feed-forward, vocabulary, sequence, batch of one rank
SHAPES = {
    "tiny": (256, 4, 4, 688, 512, 256, 8),
    "small": (512, 8, 8, 1376, 4096, 256, 4),
    "gpt2": (768, 12, 12, 2048, 32000, 256, 2),
}
WARMUP, MINIMUM, MAXIMUM = 2, 5, 60  # steps thrown away, steps at least, steps at most


class RMSNorm(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, x):
        return x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-5).type_as(x) * self.weight


def rope_tables(length, head):
    frequency = 1.0 / (10000 ** (torch.arange(0, head, 2).float() / head))
    angle = torch.outer(torch.arange(length).float(), frequency)
    return torch.cat([angle.cos(), angle.cos()], -1), torch.cat([angle.sin(), angle.sin()], -1)


def rope(x, cos, sin):  # x [B A S D]
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


class Block(nn.Module):
    def __init__(self, hidden, heads, feed):
        super().__init__()
        self.heads, self.head = heads, hidden // heads
        self.norm1, self.norm2 = RMSNorm(hidden), RMSNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden, bias=False)
        self.out = nn.Linear(hidden, hidden, bias=False)
        self.gate_up = nn.Linear(hidden, 2 * feed, bias=False)
        self.down = nn.Linear(feed, hidden, bias=False)

    def forward(self, x, cos, sin, mask):
        B, S, H = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(B, S, 3 * self.heads, self.head).transpose(1, 2).chunk(3, 1)
        scores = (rope(q, cos, sin) @ rope(k, cos, sin).transpose(-2, -1)) * (1 / math.sqrt(self.head)) + mask
        x = x + self.out((F.softmax(scores.float(), -1).type_as(v) @ v).transpose(1, 2).reshape(B, S, H))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Decoder(nn.Module):
    def __init__(self, hidden, layers, heads, feed, vocabulary, length):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads, feed) for _ in range(layers))
        self.norm = RMSNorm(hidden)
        self.head = nn.Linear(hidden, vocabulary, bias=False)
        cos, sin = rope_tables(length, hidden // heads)
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)
        self.register_buffer("mask", torch.full((length, length), float("-inf")).triu(1))
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, 0, 0.02)

    def forward(self, tokens, targets):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin, self.mask)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.float().view(-1, logits.shape[-1]), targets.reshape(-1))


def total(value):
    """The sum of a number over the ranks."""
    if args.ranks == 1:
        return value
    t = torch.tensor([float(value)], dtype=torch.float64)
    dist.all_reduce(t)
    return t.item()


def timed_steps(model, optimizer, batches):
    """Seconds of each step after the warm-up; every rank stops after the same step."""
    seconds, start, step = [], time.monotonic(), 0
    while True:
        batch = batches[step % len(batches)]
        begin = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.precision == "bf16"):
            loss = model(batch[:, :-1], batch[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if not math.isfinite(float(loss)):
            raise SystemExit("train_torch: the loss is not finite")
        step += 1
        if step > WARMUP:
            seconds.append(time.perf_counter() - begin)
        enough = len(seconds) >= MINIMUM and (time.monotonic() - start > args.seconds or len(seconds) >= MAXIMUM)
        if total(enough) > 0:
            return seconds


def worker(rank, port):
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    hidden, layers, heads, feed, vocabulary, length, batch = SHAPES[args.shape]
    if args.ranks > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
        dist.init_process_group("gloo", rank=rank, world_size=args.ranks)
    model = Decoder(hidden, layers, heads, feed, vocabulary, length)
    parameters = sum(p.numel() for p in model.parameters())
    if args.ranks > 1:
        model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1)
    random = torch.Generator().manual_seed(1 + rank)
    seconds = timed_steps(model, optimizer, torch.randint(0, vocabulary, (4, batch, length + 1), generator=random))
    peak = total(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    tokens = batch * length * args.ranks
    # Matrix parameters (the embedding is a lookup) forward and backward, and causal attention: half of 12 L H S.
    flops = tokens * (6 * (parameters - vocabulary * hidden) + 6 * layers * hidden * length)
    median = statistics.median(seconds)
    if rank == 0:
        print(json.dumps({
            "shape": args.shape, "precision": args.precision, "ranks": args.ranks, "threads": args.threads, "steps": len(seconds),
            "tokens_per_second": tokens / median, "best_tokens_per_second": tokens / min(seconds),
            "gflops": flops / median / 1e9, "peak_rss_bytes": int(peak),
        }), flush=True)
    if args.ranks > 1:
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    if args.ranks == 1:
        worker(0, 0)
    else:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            free = s.getsockname()[1]
        mp.start_processes(worker, args=(free,), nprocs=args.ranks, start_method="spawn")
