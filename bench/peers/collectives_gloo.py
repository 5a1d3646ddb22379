"""Peer: torch.distributed's gloo collectives, with the sizes of nccl-tests (bytes of the whole array), fp32, sum.

usage: collectives_gloo.py RANKS SECONDS    prints one line of JSON for each operation and size: op, bytes, us.
A round is a barrier and the operation; its time is that of the slowest rank from the barrier on, and us is that of the middle round.
gloo has no reduce-scatter. Use Debian's interpreter (/usr/bin/python3 with python3-torch).
"""
import json
import os
import socket
import statistics
import sys
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

OPS = ["all_reduce", "all_gather", "all_to_all"]
SIZES = [1 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20]
WARMUP, LEAST, MOST = 2, 5, 300


def call(op, x, y, n):
    if op == "all_reduce":
        dist.all_reduce(x)
    elif op == "all_gather":
        dist.all_gather(list(y.chunk(n)), x[: x.numel() // n])
    else:
        dist.all_to_all_single(y, x)


def middle(op, size, n, seconds):
    x, y = torch.ones(size // 4), torch.empty(size // 4)
    times, begin, on = [], time.perf_counter(), True
    for turn in range(-WARMUP, MOST):
        dist.barrier()
        t = time.perf_counter()
        call(op, x, y, n)
        slowest = torch.tensor([time.perf_counter() - t], dtype=torch.float64)
        x.fill_(1)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        if turn >= 0:
            times.append(float(slowest))
        on = torch.tensor([float(len(times) < LEAST or time.perf_counter() - begin < seconds)])
        dist.broadcast(on, 0)
        if not on.item():
            break
    return statistics.median(times)


def worker(rank, n, seconds, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=n, init_method=f"tcp://127.0.0.1:{port}")
    for op in OPS:
        for size in SIZES:
            t = middle(op, size, n, seconds)
            if rank == 0:
                print(json.dumps({"op": op, "bytes": size, "us": round(t * 1e6, 3)}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = int(sys.argv[1])
    mp.start_processes(worker, args=(ranks, float(sys.argv[2]), port), nprocs=ranks, start_method="spawn")
