"""HDF5 replicas in the readers that people have, and NetCDF-4 files as views."""

import struct

from house import installed
from house.checking import run, tool, want
from house.suite import only_full
from layout.scene import check, needs

# The newest VTK, from its wheel; ParaView is Debian's, with a VTK of its own.
VTK = ("vtk==9.7.2", "numpy==2.4.6")

RUN = """
dataset {
    type Cell struct { id int32; pressure, temperature float64 }
    var step int64
    var cells [30]Cell
    var grid [4, 5, 6]float32
    var series [3][4]float64
}
view legacy { var step = step; var cells = cells; var grid = grid; var series = series }
view fields {
    var pressure [i] = cells[i].pressure
    var grid = grid
    var series = series
}
view small { var temperature [i] = cells[i].temperature; var grid = grid }
"""

STORED = ("replica raw complete { view legacy }", 'replica "run.h5" hdf5 { view legacy group "/"; view fields }',
          'replica "small.h5" on-close hdf5 { view small group "/" deflate 5; view legacy split }')

WRITE = """
import numpy
cells = numpy.zeros(30, [("id", "i4"), ("pressure", "f8"), ("temperature", "f8")])
cells["id"], cells["pressure"], cells["temperature"] = numpy.arange(30), numpy.arange(30) / 4, 300 - numpy.arange(30)
with open("/far/legacy", "r+b") as file:
    numpy.array([77], "i8").tofile(file)
    cells.tofile(file)
    numpy.arange(120, dtype="f4").tofile(file)
    numpy.arange(12, dtype="f8").tofile(file)
"""

READ_NETCDF = """
import sys, numpy, netCDF4
with netCDF4.Dataset(sys.argv[1] + "/run.h5") as file:
    assert file.data_model == "NETCDF4" and file["step"][...] == 77, file
    grid = file["fields/grid"]
    assert grid.shape == (4, 5, 6) and (grid[:] == numpy.arange(120).reshape(4, 5, 6)).all(), grid
    assert (file["fields/pressure"][:] == numpy.arange(30) / 4).all()
    series = file["fields/series"]
    assert series.shape == (3, 4) and (series[1] == [4, 5, 6, 7]).all(), series
    # Of compound types netCDF's library reads those that have a name in the file.
    assert "cells" not in file.variables
with netCDF4.Dataset(sys.argv[1] + "/small.h5") as file:
    assert file["grid"].filters()["zlib"] and file["grid"][3, 4, 5] == 119
    assert (file["temperature"][:] == 300 - numpy.arange(30)).all()
    assert (file["legacy/cells/id"][:] == numpy.arange(30)).all() and file["legacy/series"].shape == (3, 4)
print("equal")
"""


@check
def netcdf_reads_what_an_old_program_has_written(scene):
    """An HDF5 replica is opened by netCDF4-python: groups, numbers, arrays within arrays, compression, structs that are split."""
    needs("numpy", "netCDF4")
    with scene.dataset(RUN, *STORED) as uri:
        scene.python(WRITE, uri=uri)
    want(scene.python(READ_NETCDF, scene.directory) == "equal\n", "netCDF4")


MAKE_NETCDF = """
import sys, numpy, netCDF4
with netCDF4.Dataset(sys.argv[1], "w") as file:
    file.title = "a run"
    file.createDimension("time", None)
    file.createDimension("lat", 3)
    file.createDimension("lon", 4)
    file.createDimension("word", 8)
    time = file.createVariable("time", "f8", ("time",))
    time.units = "days since 2000-01-01"
    time[:] = [0.5, 1.5]
    file.createVariable("lat", "f4", ("lat",))[:] = [-30, 0, 30]
    air = file.createVariable("air", "i2", ("time", "lat", "lon"), zlib=True, complevel=4)
    air.set_auto_scale(False)
    air[:] = numpy.arange(24).reshape(2, 3, 4)
    file.createVariable("depth", ">i4", ("lat", "lon"))[:] = numpy.arange(12).reshape(3, 4) * 100
    file.createVariable("name", "S1", ("lat", "word"))[:] = netCDF4.stringtochar(numpy.array(["south", "equator", "north"], "S8"))
    file.createVariable("remark", str, ("lat",))[:] = numpy.array(["of", "any", "length"], object)
    group = file.createGroup("ocean")
    group.createVariable("salt", "f4", ("lat", "lon"))[:] = numpy.arange(12).reshape(3, 4) / 2
"""

READ_AGAIN = """
import sys, numpy, netCDF4
with netCDF4.Dataset(sys.argv[1]) as file:
    assert file.title == "a run" and file["time"].units == "days since 2000-01-01" and file.dimensions["time"].isunlimited()
    file["air"].set_auto_scale(False)
    assert file["air"].dimensions == ("time", "lat", "lon")
    print(file["air"][1, 2].tolist(), file["depth"][2].tolist(), file["ocean/salt"][0].tolist(), list(file["remark"][:]))
"""


@check
def a_netcdf_file_appears_as_views(scene):
    """`sluice layout import` takes over a file of netCDF4-python's, which reads what raw writers have changed."""
    needs("numpy", "netCDF4")
    file = scene.directory / "run.nc"
    scene.python(MAKE_NETCDF, file)
    made = run(scene.sluice, "layout", "import", file)
    want(b"/remark is left out" in made.stderr, made.stderr)
    text = made.stdout.decode() + """
view wanted { var air [lon, lat, t] = air[t, lat, lon] }
view big bigendian { var depth = depth }
view names read-only { var name = name }
"""
    with scene.dataset(text) as uri:
        turned = struct.pack("<24h", *(12 * t + 4 * lat + lon for lon in range(4) for lat in range(3) for t in range(2)))
        want(scene.cat(uri, "wanted") == turned, "turned")
        want(scene.cat(uri, "big") == struct.pack(">12i", *range(0, 1200, 100)), "depth")
        want(scene.cat(uri, "names") == b"south\0\0\0equator\0north\0\0\0", "names")
        want(scene.cat(uri, "ocean") == struct.pack("<12f", *(i / 2 for i in range(12))), "ocean")
        scene.python("""if True:
            import numpy
            numpy.memmap("/far/wanted", "i2", mode="r+", shape=(4, 3, 2))[2, 2, 1] = -5
            numpy.memmap("/far/big", ">i4", mode="r+")[11] = 12345
            numpy.memmap("/far/ocean", "f4", mode="r+")[:2] = 9.25
            """, uri=uri)
    found = scene.python(READ_AGAIN, file)
    want(found == "[20, 21, -5, 23] [800, 900, 1000, 12345] [9.25, 9.25, 1.0, 1.5] ['of', 'any', 'length']\n", found)


XDMF = """<?xml version="1.0"?>
<Xdmf Version="2.0"><Domain><Grid Name="grid" GridType="Uniform">
<Topology TopologyType="3DCoRectMesh" Dimensions="4 5 6"/>
<Geometry GeometryType="ORIGIN_DXDYDZ">
<DataItem Dimensions="3" Format="XML">0 0 0</DataItem><DataItem Dimensions="3" Format="XML">1 1 1</DataItem>
</Geometry>
<Attribute Name="field" AttributeType="Scalar" Center="Node">
<DataItem Dimensions="4 5 6" NumberType="Float" Precision="4" Format="HDF">%s:/fields/grid</DataItem>
</Attribute>
</Grid></Domain></Xdmf>
"""

READ_VTK = """
import sys, numpy, vtk
from vtk.util.numpy_support import vtk_to_numpy
xdmf = vtk.vtkXdmfReader()
xdmf.SetFileName(sys.argv[1])
xdmf.Update()
grid = xdmf.GetOutputDataObject(0)
assert grid.GetDimensions() == (6, 5, 4), grid.GetDimensions()
assert (vtk_to_numpy(grid.GetPointData().GetArray("field")) == numpy.arange(120)).all()
contour = vtk.vtkContourFilter()
contour.SetInputData(grid)
contour.SetInputArrayToProcess(0, 0, 0, 0, "field")
contour.SetValue(0, 59.5)
contour.Update()
assert contour.GetOutput().GetNumberOfPoints() > 20
netcdf = vtk.vtkNetCDFReader()
netcdf.SetFileName(sys.argv[2])
netcdf.UpdateMetaData()
names = netcdf.GetAllVariableArrayNames()
assert "grid" in [names.GetValue(i) for i in range(names.GetNumberOfValues())]
for i in range(names.GetNumberOfValues()):
    netcdf.SetVariableArrayStatus(names.GetValue(i), names.GetValue(i) == "grid")
netcdf.Update()
found = netcdf.GetOutput()
values = found.GetPointData().GetArray("grid") or found.GetCellData().GetArray("grid")
assert (numpy.sort(vtk_to_numpy(values)) == numpy.arange(120)).all(), found
print("equal")
"""


@check
@only_full
def vtk_reads_an_hdf5_replica(scene):
    """VTK's XDMF reader over the HDF5 replica, and its reader of netCDF files: those that ParaView has."""
    needs("numpy")
    python = installed.wheels("vtk-wheel", *VTK) / "bin" / "python"
    with scene.dataset(RUN, *STORED) as uri:
        scene.python(WRITE, uri=uri)
    description = scene.directory / "grid.xmf"
    description.write_text(XDMF % (scene.directory / "run.h5"))
    want(scene.python(READ_VTK, description, scene.directory / "small.h5", python=python) == "equal\n", "VTK")


READ_PARAVIEW = """
import sys
from paraview import servermanager, simple
grid = simple.XDMFReader(FileNames=[sys.argv[1]])
grid.UpdatePipeline()
field = grid.PointData["field"]
assert field.GetRange() == (0, 119) and field.GetNumberOfTuples() == 120, field.GetRange()
contour = simple.Contour(Input=grid, ContourBy=["POINTS", "field"], Isosurfaces=[59.5])
contour.UpdatePipeline()
assert servermanager.Fetch(contour).GetNumberOfPoints() > 20
netcdf = simple.NetCDFReader(FileName=[sys.argv[2]])
netcdf.UpdatePipeline()
found = servermanager.Fetch(netcdf)
values = found.GetPointData().GetArray("grid") or found.GetCellData().GetArray("grid")
assert values.GetRange() == (0, 119) and values.GetNumberOfTuples() == 120, found
print("equal")
"""


@check
@only_full
def paraview_reads_an_hdf5_replica(scene):
    """ParaView opens the HDF5 replica by an XDMF description, contours it, and opens the other as a netCDF file."""
    pvpython = tool("pvpython")
    needs("numpy")
    # ParaView 5.11 aborts over netCDF files with groups, whoever wrote them.
    with scene.dataset(RUN, *STORED[:2], 'replica "flat.h5" hdf5 { view small group "/" }') as uri:
        scene.python(WRITE, uri=uri)
    description = scene.directory / "grid.xmf"
    description.write_text(XDMF % (scene.directory / "run.h5"))
    script = scene.local / "read.py"
    script.write_text(READ_PARAVIEW)
    said = run(pvpython, script, description, scene.directory / "flat.h5", cwd=scene.local).stdout.decode()
    want(said.endswith("equal\n"), said)
