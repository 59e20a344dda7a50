"""Strided reading and writing through mpi4py, whose MPI library is loaded with RTLD_LOCAL.

usage: python.py DIRECTORY; each rank writes what it sees to DIRECTORY/told.RANK.
"""

import array
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
directory = sys.argv[1]
with open(f"{directory}/told.{world.rank}", "w") as told:
    def tell(*words):
        print(*words, file=told)

    file = MPI.File.Open(world, f"{directory}/python.dat", MPI.MODE_RDWR | MPI.MODE_CREATE)
    filetype = MPI.INT.Create_vector(20, 3, 3 * world.size).Commit()
    file.Set_view(12 * world.rank, MPI.INT, filetype)
    values = array.array("i", (1000 * world.rank + i for i in range(60)))
    status = MPI.Status()
    file.Write([values, 30, MPI.INT], status)
    tell("write", status.Get_count(MPI.INT), file.Get_position())
    file.Write_at(30, [memoryview(values)[30:], 30, MPI.INT], status)
    tell("write_at", status.Get_count(MPI.INT))
    file.Sync()
    world.Barrier()
    seen = array.array("i", [0] * 60)
    file.Read_at(7, [seen, 20, MPI.INT], status)
    tell("read_at", status.Get_count(MPI.INT), seen.tolist())
    file.Seek(0)
    file.Read([seen, 10, MPI.INT], status)
    tell("read", status.Get_count(MPI.INT), file.Get_position(), seen.tolist())
    try:
        MPI.File.Open(world, f"{directory}/absent/file", MPI.MODE_RDONLY)
    except MPI.Exception as error:
        tell("open of what is not there", MPI.Get_error_class(error.Get_error_code()) == MPI.ERR_NO_SUCH_FILE)
    file.Close()
    filetype.Free()
