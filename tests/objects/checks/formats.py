"""Files of parallel programs that were written through a log to a bucket, opened there by readers that are not ours."""

import pathlib

from house import installed
from house.checking import Skip, run, want
from house.suite import only_full
from log import stacks
from mpi.libraries import Failed as MpiFailed, Missing
from objects.checks.drained import log_of, settle
from objects.scene import check

READERS = ("h5py==3.14.0", "netCDF4==1.7.2", "xarray==2025.7.1", "s3fs==2025.7.0", "vtk==9.5.0")
RANKS = 2
PROGRAMS = pathlib.Path(__file__).resolve().parents[2] / "log" / "programs"

OPEN = """
import os, sys
import numpy, s3fs
bucket = s3fs.S3FileSystem(key=os.environ["AWS_ACCESS_KEY_ID"], secret=os.environ["AWS_SECRET_ACCESS_KEY"],
                           client_kwargs={"endpoint_url": os.environ["AWS_ENDPOINT_URL"], "region_name": "us-east-1"})
def opened(key):
    return bucket.open("bucket/out/" + key, "rb", block_size=1 << 20)
"""
HDF5 = OPEN + """
import h5py
step, place = numpy.meshgrid(numpy.arange(10), numpy.arange(700), indexing="ij")
for name in ("independent.h5", "collective.h5"):
    with h5py.File(opened(name)) as file:
        should = numpy.concatenate([step * 1000.0 + writer + place / 1024.0 for writer in range(%d)], axis=1)
        assert (file["growing"][:] == should).all(), name
        for n in range(10):
            assert (file[f"step{n:02d}/field"][:] == should[n]).all(), (name, n)
            assert file[f"step{n:02d}/field"].attrs["step"] == n
""" % RANKS
NETCDF = OPEN + """
import netCDF4, xarray
with open(sys.argv[1], "rb") as beside:
    should = beside.read()
found = opened("series.nc").read()
assert found == should, "bytes"
# CDF-5, which only the library of netCDF itself reads.
there, here = (xarray.open_dataset(xarray.backends.NetCDF4DataStore(netCDF4.Dataset("x", memory=data))).load()
               for data in (found, should))
assert set(there.data_vars) >= {"field", "flux", "later"}, there
assert there.sizes["time"] > 1 and int(abs(there["field"]).sum()) > 0
assert there.equals(here)
"""
VTK = OPEN + """
data = opened("slabs.vtk").read()
from vtkmodules.vtkIOLegacy import vtkStructuredPointsReader
from vtkmodules.util.numpy_support import vtk_to_numpy
reader = vtkStructuredPointsReader()
reader.ReadFromInputStringOn()
reader.SetBinaryInputString(data, len(data))
reader.Update()
image = reader.GetOutput()
assert image.GetDimensions() == (160, 100, 120), image.GetDimensions()
found = vtk_to_numpy(image.GetPointData().GetScalars()).reshape(120, 100, 160)
z, y, x = numpy.meshgrid(numpy.arange(120), numpy.arange(100), numpy.arange(160), indexing="ij")
assert (found == (x + 1000 * y + z / 256).astype("f4")).all()
"""


def stacks_of(scene, *names):
    """The MPI libraries of these that are here, at least one."""
    found, missing = stacks.available(scene.scratch)
    wanted = [stack for stack in found if stack.name in names]
    if not wanted:
        raise Skip("; ".join(reason for name, reason in missing if name in names))
    return wanted


def written(scene, stack, *words):
    """Ranks write through a log to the bucket."""
    # Open MPI's launcher has no such address among its arguments: the prefix is mapped.
    options = ("--map", "/far=s3://bucket/out", "--log", log_of(scene), "--to", "s3://bucket/out")
    command = stack.launch(RANKS, words, [scene.sluice, "run", *options, "--"])
    scene.be_served()
    run(*command, env=scene.environment | stack.library.environment, seconds_max=120)
    settle(scene)


def read_by(scene, script, *words):
    """A Python with other people's readers does what a script says."""
    readers = installed.wheels("test-readers", *READERS)
    run(readers / "bin" / "python", "-c", script, *words, env=scene.environment, seconds_max=120)


def parts(make):
    """What is missing here is no failure."""
    try:
        return make()
    except Missing as missing:
        raise Skip(str(missing)) from None
    except MpiFailed as failed:
        raise Skip(str(failed)) from None


@check
@only_full
def hdf5_of_parallel_programs_is_read_from_the_bucket(scene):
    scene.use_versitygw()
    for stack in stacks_of(scene, "ompio", "mpich"):
        program = parts(lambda: stack.compiled("series_hdf5.c", compiler=stack.hdf5()))
        side = scene.scratch / f"side-{stack.name}"
        side.mkdir()
        written(scene, stack, program, side, "/far", "independent", "collective")
        want(not any("WRONG" in told.read_text() for told in side.glob("told.*")), "the program itself says")
        read_by(scene, HDF5)


@check
@only_full
def netcdf_of_parallel_programs_is_read_from_the_bucket(scene):
    scene.use_versitygw()
    stack = stacks_of(scene, "ompio")[0]
    if not pathlib.Path("/usr/include/pnetcdf.h").exists():
        raise Skip("libpnetcdf-dev is not installed")
    program = parts(lambda: stack.compiled("series_pnetcdf.c", link=["-lpnetcdf"]))
    side, beside = scene.scratch / "side", scene.scratch / "beside"
    side.mkdir()
    beside.mkdir()
    run(*stack.launch(RANKS, [program, side, beside, "series"]), env=scene.environment | stack.library.environment)
    written(scene, stack, program, side, "/far", "series")
    read_by(scene, NETCDF, beside / "series.nc")


@check
@only_full
def vtk_of_parallel_programs_is_read_from_the_bucket(scene):
    scene.use_versitygw()
    stack = stacks_of(scene, "mpich", "ompio")[0]
    program = parts(lambda: stack.compiled("pieces_vtk.c"))
    written(scene, stack, program, "/far/slabs.vtk")
    read_by(scene, VTK)
