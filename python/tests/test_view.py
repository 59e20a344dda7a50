"""`sluice.Array` and `sluice.View` beside numpy on the same bytes."""

import os
import random

import pytest
import sluice

np = pytest.importorskip("numpy")

POINTS = """
dataset {
    const N = 1000
    type Point struct {
        a, b float32
        v [3]float64
    }
    var data [N]Point
    var grid [20, 30]int32
}
view aos { var data = data }
view soa {
    var a [i] = data[i].a
    var b [i] = data[i].b
}
view grids { var grid = grid }
view fortran rowminor bigendian { var grid = grid }
view some read-only { var b [i] { b } = data[i*5] }
replica "points.dat" { view aos }
replica "grids.dat" { view grids }
"""


@pytest.fixture
def dataset(served, tmp_path):
    (tmp_path / "points.drepl").write_text(POINTS)
    return served(f"p={tmp_path / 'points.drepl'}").uri + "/p"


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(7,), (40, 50), (12, 9, 11), (3, 4, 5, 6)])
def test_every_basic_index_reads_what_numpy_reads(far, order, shape):
    directory, uri = far
    reference = np.arange(np.prod(shape), dtype=">i4").reshape(shape)
    (directory / "f").write_bytes(b"header!!" + reference.tobytes(order))
    chance = random.Random(11)
    with sluice.open(f"{uri}/f", "rb", 0) as file:
        array = sluice.Array(file, ">i4", shape, offset=8, order=order)
        for _ in range(150):
            key = tuple(random_index(chance, length) for length in shape[: chance.randint(0, len(shape))])
            if chance.random() < 0.3 and len(key) < len(shape):
                key = (..., *(random_index(chance, length) for length in shape[len(shape) - len(key):]))
            found, expected = array[key], reference[key]
            assert np.shape(found) == np.shape(expected) and found.dtype == expected.dtype, key
            assert (found == expected).all(), key
        assert (np.asarray(array) == reference).all()


def random_index(chance, length):
    if chance.random() < 0.35:
        return chance.randrange(-length, length)
    start, stop = (chance.choice([None, chance.randint(-length - 2, length + 2)]) for _ in range(2))
    return slice(start, stop, chance.choice([None, 1, 2, 3, -1, -2, length]))


def test_assigning_writes_what_numpy_writes_and_nothing_else(far):
    directory, uri = far
    reference = np.arange(30 * 40, dtype="<f8").reshape(30, 40)
    (directory / "f").write_bytes(reference.tobytes())
    chance = random.Random(5)
    with sluice.open(f"{uri}/f", "r+b", 0) as file:
        array = sluice.Array(file, "<f8", (30, 40))
        for turn in range(60):
            key = tuple(random_index(chance, length) for length in (30, 40))
            value = turn if turn % 3 else np.random.default_rng(turn).random(reference[key].shape)
            array[key] = value
            reference[key] = value
        assert file.pread(reference.nbytes, 0) == reference.tobytes()
        with pytest.raises(ValueError, match="broadcast"):
            array[0] = np.zeros(7)
    assert (directory / "f").read_bytes() == reference.tobytes()


def test_fields_of_structs_and_arrays_in_them(far):
    directory, uri = far
    kind = np.dtype([("a", "<f4"), ("v", "<f8", (2, 3)), ("s", [("t", "<i2"), ("u", "S3")])])
    reference = np.frombuffer(os.urandom(kind.itemsize * 500), kind)
    (directory / "f").write_bytes(reference.tobytes())
    with sluice.open(f"{uri}/f", "rb", 0) as file:
        array = sluice.Array(file, kind, 500)
        assert array["v"].shape == (500, 2, 3)
        assert array["v"][10:400:7, 1, ::-1].tobytes() == reference["v"][10:400:7, 1, ::-1].tobytes()
        assert (array["s"]["t"][::3] == reference["s"]["t"][::3]).all()
        assert array[7].tobytes() == reference[7].tobytes()
        assert array[5:9].tobytes() == reference[5:9].tobytes()
        with pytest.raises(KeyError, match="a, v, s"):
            array["none"]


def test_what_is_no_index_and_no_array_is_refused(far):
    directory, uri = far
    (directory / "f").write_bytes(bytes(80))
    with sluice.open(f"{uri}/f", "rb", 0) as file:
        array = sluice.Array(file, "f8", (2, 5))
        for key in [2, -3, (0, 5), (0, 0, 0), (..., ...), [0, 1], np.array([True, False]), True, None, 1.5]:
            with pytest.raises(IndexError):
                array[key]
        with pytest.raises(ValueError, match="reading only"):
            array[0] = 1
        with pytest.raises(EOFError, match="80 bytes before"):
            sluice.Array(file, "f8", (4, 5))[...]
        for wrong in [{"dtype": "O"}, {"dtype": "f8", "order": "K"}, {"dtype": "f8", "shape": -1}, {"dtype": "f8", "offset": -8},
                      {"dtype": "f8", "shape": 3, "strides": (1, 2)}]:
            with pytest.raises((TypeError, ValueError)):
                sluice.Array(file, **wrong)
        with pytest.raises(ValueError, match="overlap"):
            sluice.Array(file, "f8", 3, strides=(4,))[...]
    with pytest.raises(ValueError, match="closed"):
        array[0]
    with sluice.open(f"{uri}/f", "rb") as buffered, pytest.raises(TypeError, match="buffering=0"):
        sluice.Array(buffered, "f8")


def test_a_plane_of_a_large_array_takes_few_requests(far):
    directory, uri = far
    (directory / "f").write_bytes(bytes(64 * 64 * 64 * 8))
    with sluice.Service({"relay": uri}) as counted, sluice.open(f"{counted.uri}/relay/f", "rb", 0) as file:
        array = sluice.Array(file, "f8", (64, 64, 64))
        array[0, 0]
        before = counted.counters.requests
        array[:, 5]
        assert counted.counters.requests - before <= 64 + 8
        before = counted.counters.requests
        array[:, :, 5]
        # 4096 elements, which are not asked for one by one.
        assert counted.counters.requests - before < 1000


def test_views_of_one_dataset_are_arrays_of_the_same_data(dataset):
    with sluice.View(f"{dataset}/aos", writable=True) as view:
        assert list(view) == ["data"] and "1000" in repr(view)
        data = view["data"]
        assert (data.shape, data.dtype.names, data.dtype["v"].shape) == ((1000,), ("a", "b", "v"), (3,))
        whole = np.zeros(1000, data.dtype)
        whole["a"], whole["b"] = np.arange(1000), -np.arange(1000.0)
        whole["v"] = np.arange(3000).reshape(1000, 3)
        data[...] = whole
        data["b"][::2] = 7
    with sluice.View(f"{dataset}/soa") as view, sluice.View(f"{dataset}/some") as some:
        assert set(view) == {"a", "b"}
        assert (view["a"][10:20] == np.arange(10, 20)).all()
        assert (view["b"][:6] == [7, -1, 7, -3, 7, -5]).all()
        assert (some["b"]["b"][:4] == [7, -5, 7, -15]).all() and some["b"].shape == (200,)


def test_row_minor_and_big_endian_views_are_the_same_arrays(dataset):
    values = np.arange(600).reshape(20, 30)
    with sluice.View(f"{dataset}/grids", writable=True) as view:
        view["grid"][...] = values
    with sluice.View(f"{dataset}/fortran") as view:
        grid = view["grid"]
        assert grid.dtype.byteorder == ">" and grid.strides[0] < grid.strides[1]
        assert (grid[3:17:2, ::-3] == values[3:17:2, ::-3]).all()
    dask = pytest.importorskip("dask.array")
    with sluice.View(f"{dataset}/fortran") as view:
        assert int(dask.from_array(view["grid"], chunks=(7, 11)).sum().compute()) == values.sum()


def test_what_is_no_view_is_said(dataset, uri):
    with pytest.raises(ValueError, match="read-only"):
        sluice.View(f"{dataset}/some", writable=True)
    with pytest.raises((ValueError, FileNotFoundError)):
        sluice.View(f"{dataset}/none")
    with pytest.raises(FileNotFoundError):
        sluice.View(f"{uri}/none")
    sluice.open(f"{uri}/f", "w").close()
    with pytest.raises(ValueError, match="no dataset"):
        sluice.View(f"{uri}/f")
