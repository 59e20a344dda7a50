"""Files of gfortran: sequential records and fields in its order, read as plain arrays in the order of C."""

import struct

from house.checking import run, want
from house.suite import only_full
from layout.scene import check, needs

RECORDS = """
dataset {
    const N = 40
    const M = 25
    var n, m int32
    var title [20]uint8
    var u [N][M]float64
}
view "legacy.dat" %s {
    record { var n = n; var m = m }
    record { var title = title }
    var u [i] record = u[i]
}
view plain { var u = u }
view column read-only { var third [i] = u[i][2] }
"""

READ_RECORDS = """
import numpy
i, j = numpy.arange(1, 41)[:, None], numpy.arange(1, 26)[None, :]
u = i + j / 64
assert (numpy.fromfile("/far/plain", "f8").reshape(40, 25) == u).all()
assert (numpy.fromfile("/far/column", "f8") == u[:, 2]).all()
print("equal")
"""


@check
def a_sequential_file_of_gfortran_is_plain_arrays(scene):
    """The file that was there is the replica, with markers of 4 and of 8 bytes, of either byte order."""
    needs("numpy")
    kinds = [("records", ()), ("records 8", ("-frecord-marker=8",)), ("records bigendian", ("-fconvert=big-endian",)),
             ("records 8 bigendian", ("-frecord-marker=8", "-fconvert=big-endian", "-O1"))]
    for flags, options in kinds:
        program = scene.compile("records_write.f90", *options)
        native = scene.directory / f"{flags}.dat"
        run(program, native)
        raw = native.read_bytes()
        with scene.dataset(RECORDS % flags, f'replica "{flags}.dat" {{ view "legacy.dat" }}') as uri:
            want(scene.python(READ_RECORDS, uri=uri) == "equal\n", f"{flags}: numpy")
        want(native.read_bytes() == raw, f"{flags}: the file was changed")
        scene.forget()


@check
def gfortran_writes_records_and_arrays_are_stored(scene):
    """The same program writes through the view; what is stored has no markers, and the view is the native file."""
    needs("numpy")
    program, native = scene.compile("records_write.f90"), scene.local / "native"
    run(program, native)
    with scene.dataset(RECORDS % "records", 'replica "stored" complete { view plain }') as uri:
        scene.carry(uri, program, "/far/legacy.dat")
        want(scene.python(READ_RECORDS, uri=uri) == "equal\n", "numpy")
        want(scene.cat(uri, "legacy.dat") == native.read_bytes(), "not the native file")
    want((scene.directory / "stored").read_bytes()[:8000] == rows(), "the replica is no plain array")


def rows():
    return b"".join(struct.pack("<d", i + j / 64) for i in range(1, 41) for j in range(1, 26))


FIELD = """
dataset { var u [7, 11, 13]float64 }
view fortran rowminor { var u = u }
view c rowmajor { var u = u }
view turned { var u [k, j, i] = u[i, j, k] }
"""

READ_FIELD = """
import sys, h5py, numpy
i, j, k = numpy.meshgrid(range(7), range(11), range(13), indexing="ij")
u = 2 * (10000 * i + 100 * j + k + 0.25)
with h5py.File(sys.argv[1]) as file:
    # As Fortran's own HDF5 files: the lengths in reverse.
    assert file["fortran/u"].shape == (13, 11, 7) and (file["fortran/u"][:] == u.T).all()
    assert (file["c/u"][:] == u).all()
print("equal")
"""


@check
def a_field_of_fortran_is_read_in_the_order_of_c(scene):
    """A program of Fortran writes u(i, j, k), one of C reads u[i][j][k] and changes it; whichever is stored."""
    needs("h5py")
    write, read = scene.compile("field_write.f90"), scene.compile("field_read.c")
    native = scene.local / "native"
    run(write, native)
    for number, replica in enumerate(("{ view fortran }", "{ view c }", "{ view turned }", "hdf5 { view fortran; view c }")):
        with scene.dataset(FIELD, f'replica "r{number}" {replica}') as uri:
            scene.carry(uri, write, "/far/fortran")
            want(scene.cat(uri, "fortran") == native.read_bytes() == scene.cat(uri, "turned"), f"{replica}: in Fortran's order")
            want(scene.carry(uri, read, "/far/c") == "equal\n", replica)
        if "hdf5" in replica:
            want(scene.python(READ_FIELD, scene.directory / f"r{number}") == "equal\n", "h5py")
        scene.forget()


LARGE = """
dataset {
    const N = %d
    var a [N]int64
    var n int64
}
view "large.dat" records { var a = a; var n = n }
view plain { var a = a; var n = n }
"""

READ_LARGE = """
import sys, numpy
n = int(sys.argv[1])
with open("/far/plain", "rb") as file:
    for at in range(0, n, 1 << 22):
        i = numpy.arange(at + 1, min(at + (1 << 22), n) + 1)
        assert (numpy.fromfile(file, "i8", len(i)) == i * 2654435761).all(), at
    assert (numpy.fromfile(file, "i8") == [n]).all()
print("equal")
"""


@check
@only_full
def a_record_of_more_than_two_gigabytes(scene):
    """Written and read by gfortran (9 GB of disk), stored as it is and as a plain array: the markers between subrecords are right."""
    needs("numpy")
    n, program = (1 << 28) + 12345, scene.compile("large_record.f90")
    native = scene.directory / "large.dat"
    run(program, f"w{n}", native, seconds_max=300)
    want(native.stat().st_size == 8 * n + 16 + 16, "libgfortran has split it otherwise")
    with scene.dataset(LARGE % n, 'replica "large.dat" { view "large.dat" }', 'replica "plain.dat" { view plain }') as uri:
        want(scene.python(READ_LARGE, str(n), uri=uri) == "equal\n", "numpy")
    before = native.read_bytes()[:1 << 20]
    native.unlink()
    with scene.dataset(LARGE % n, 'replica "again.dat" { view "large.dat" }', 'replica "plain.dat" { view plain }') as uri:
        want(scene.carry(uri, program, f"r{n}", "/far/large.dat") == "equal\n", "gfortran reads")
        scene.carry(uri, program, f"w{n}", "/far/large.dat")
    want((scene.directory / "again.dat").read_bytes()[:1 << 20] == before, "the file made from the array differs")
    run(program, f"r{n}", scene.directory / "again.dat", seconds_max=300)
