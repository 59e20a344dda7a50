#!/usr/bin/python3
"""A writer of time steps with h5py and mpi4py: a data set that grows, flushed after each step.

usage: series_h5py.py SIDE DIRECTORY; told as the programs of scene.h do.
"""

import sys

import h5py
import numpy
from mpi4py import MPI

STEPS, LENGTH = 8, 500
world = MPI.COMM_WORLD
rank, size = world.rank, world.size
side, directory = sys.argv[1:3]
told = open(f"{side}/told.{rank}", "w", buffering=1)
wrong = 0


def want(what, condition):
    global wrong
    if not condition:
        wrong += 1
        told.write(f"h5py: WRONG: {what}\n")
        print(f"h5py: rank {rank} of {size}: WRONG: {what}", file=sys.stderr)


def row(step, writer):
    return numpy.arange(LENGTH, dtype="<i8") + 1_000_000 * step + 10_000 * writer


def check(data, steps):
    want(f"shape {data.shape} after {steps}", data.shape == (steps, LENGTH * size))
    for step in range(steps):
        for writer in range(size):
            want(f"step {step}, what rank {writer} wrote",
                 (data[step, writer * LENGTH:(writer + 1) * LENGTH] == row(step, writer)).all())


want("h5py without MPI", h5py.get_config().mpi)
name = f"{directory}/series.h5"
with h5py.File(name, "w", driver="mpio", comm=world) as file:
    data = file.create_dataset("series", (0, LENGTH * size), maxshape=(None, LENGTH * size), chunks=(2, 128), dtype="<i8",
                               track_times=False)
    for step in range(STEPS):
        data.resize(step + 1, axis=0)
        mine = slice(rank * LENGTH, (rank + 1) * LENGTH)
        if step % 2:
            with data.collective:
                data[step, mine] = row(step, rank)
        else:
            data[step, mine] = row(step, rank)
        file.attrs[f"step{step}"] = step
        file.flush()
    world.Barrier()
    check(data, STEPS)
    world.Barrier()
    # Everybody changes its part of the first step.
    data[0, mine] = row(0, rank) - 1
    file.flush()
    world.Barrier()
    data[0, mine] = row(0, rank)
world.Barrier()
with h5py.File(name, "r") as file:
    check(file["series"], STEPS)
    want("attributes", [int(file.attrs[f"step{step}"]) for step in range(STEPS)] == list(range(STEPS)))

# And mpi4py's own files.
whole = numpy.empty(LENGTH * size, dtype="<i8")
file = MPI.File.Open(world, f"{directory}/plain", MPI.MODE_CREATE | MPI.MODE_RDWR)
for step in range(STEPS):
    file.Write_at_all(8 * (step * size + rank) * LENGTH, row(step, rank))
    file.Sync()
    world.Barrier()
    file.Sync()
    file.Read_at(8 * step * size * LENGTH, whole)
    want(f"mpi4py, step {step}", (whole == numpy.concatenate([row(step, writer) for writer in range(size)])).all())
file.Close()
told.write(f"h5py: {'bad' if wrong else 'good'}\n")
told.close()
sys.exit(3 if wrong else 0)
