"""Libraries open our addresses: numpy, pandas, xarray, zarr, h5py, dask; and fsspec finds our protocols by itself."""

import os

import fsspec
import pytest
import sluice
from sluice.filesystem import PROTOCOLS, SluiceFileSystem

np = pytest.importorskip("numpy")


@pytest.fixture
def table():
    pandas = pytest.importorskip("pandas")
    chance = np.random.default_rng(3)
    return pandas.DataFrame({"n": np.arange(5000), "x": chance.random(5000), "name": [f"row {n}" for n in range(5000)]})


def test_every_protocol_is_found_and_leads_to_one_file_system_for_each_service(uri):
    for protocol in PROTOCOLS:
        assert fsspec.get_filesystem_class(protocol) is SluiceFileSystem
    with fsspec.open(f"{uri}/a", "wb") as file:
        file.write(b"1")
    fs, path = fsspec.core.url_to_fs(f"{uri}/a")
    again, _ = fsspec.core.url_to_fs(uri.replace("scdc+", "sluice+") + "/b")
    assert (path, fs is again, fs.unstrip_protocol(path)) == ("/data/a", True, f"{uri}/a")
    assert fs.cat("/data/a") == b"1" and fs.ls("/data", detail=False) == ["/data/a"]
    with pytest.raises(ValueError, match="which service"):
        fsspec.filesystem("scdc+uds")
    with pytest.raises(FileNotFoundError):
        fs.cat("/data/none")
    with pytest.raises(ValueError, match="whole store"):
        fs.rm("/data", recursive=True)


def test_ranges_of_many_files_come_in_the_order_asked_for(far):
    directory, uri = far
    fs, _ = fsspec.core.url_to_fs(uri)
    data = {name: os.urandom(200_000) for name in "ab"}
    for name, content in data.items():
        (directory / name).write_bytes(content)
    asked = [("a", 5, 10), ("b", 100_000, 150_000), ("a", 0, 7), ("a", -10, None), ("b", None, 3), ("a", 9, 9), ("b", 90_000, 120_000)]
    asked += [("a", at, at + 13) for at in range(1000, 190_000, 1000)]
    paths, starts, ends = ([f"/data/{name}" for name, *_ in asked], [one[1] for one in asked], [one[2] for one in asked])
    assert fs.cat_ranges(paths, starts, ends) == [data[name][start:end] for name, start, end in asked]
    found = fs.cat_ranges(["/data/a", "/data/none"], 0, 3)
    assert found[0] == data["a"][:3] and isinstance(found[1], FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        fs.cat_ranges(["/data/none"], 0, 3, on_error="raise")


def test_ranges_of_a_file_take_few_requests(far):
    directory, uri = far
    (directory / "f").write_bytes(bytes(1 << 20))
    fs, _ = fsspec.core.url_to_fs(uri)
    ranges = [(at, at + 100) for at in range(0, 1 << 20, 4096)]
    starts, ends = zip(*ranges)
    with sluice.Service({"relay": uri}) as counted:
        fs, _ = fsspec.core.url_to_fs(f"{counted.uri}/relay")
        fs.cat_ranges(["/relay/f"], 0, 1)
        before = counted.counters.requests
        fs.cat_ranges(["/relay/f"] * len(ranges), list(starts), list(ends))
        # Where a turn is dear, neighbours are read together.
        assert counted.counters.requests - before < len(ranges)


def test_numpy_loads_and_saves(uri):
    array = np.arange(100_000).reshape(100, 1000)
    with sluice.open(f"{uri}/a.npy", "wb") as file:
        np.save(file, array)
    with fsspec.open(f"{uri}/a.npy", "rb") as file:
        assert (np.load(file) == array).all()
    with sluice.open(f"{uri}/a.npz", "wb") as file:
        np.savez_compressed(file, a=array, b=array[::2])
    with sluice.open(f"{uri}/a.npz", "rb") as file, np.load(file) as loaded:
        assert (loaded["b"] == array[::2]).all()
    with sluice.open(f"{uri}/a.npy", "rb", 0) as file:
        whole = np.empty_like(array)
        assert file.preadinto(whole, file.stat().st_size - whole.nbytes) == whole.nbytes
    assert (whole == array).all()


def test_pandas_reads_and_writes_by_url(uri, table):
    import pandas

    table.to_csv(f"{uri}/t.csv", index=False)
    assert pandas.read_csv(f"{uri}/t.csv").equals(table)
    pytest.importorskip("pyarrow")
    table.to_parquet(f"{uri}/t.parquet")
    assert pandas.read_parquet(f"{uri}/t.parquet", columns=["n"]).n.equals(table.n)


def test_h5py_reads_and_writes_in_place(uri):
    h5py = pytest.importorskip("h5py")
    with sluice.open(f"{uri}/f.h5", "w+b") as file, h5py.File(file, "w") as data:
        data.create_dataset("a/x", data=np.arange(10_000.0), chunks=(1000,), compression="gzip")
    with sluice.open(f"{uri}/f.h5", "r+b") as file, h5py.File(file, "r+") as data:
        data["a/x"][5] = -1
    with fsspec.open(f"{uri}/f.h5", "rb") as file, h5py.File(file, "r") as data:
        assert list(data["a/x"][4:7]) == [4, -1, 6]


def test_xarray_opens_netcdf_and_zarr(uri):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    pytest.importorskip("zarr")
    made = xarray.Dataset({"t": (("y", "x"), np.arange(600.0).reshape(20, 30))}, attrs={"is": "a test"})
    with sluice.open(f"{uri}/t.nc", "wb") as file:
        file.write(made.to_netcdf(engine="h5netcdf"))
    with sluice.open(f"{uri}/t.nc", "rb") as file, xarray.open_dataset(file, engine="h5netcdf") as found:
        assert found.identical(made)
        assert float(found.t[3, 4]) == 94
    made.to_zarr(fsspec.get_mapper(f"{uri}/t.zarr"))
    assert xarray.open_zarr(fsspec.get_mapper(f"{uri}/t.zarr")).load().identical(made)


def test_zarr_by_url(uri):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(f"{uri}/g.zarr", mode="w")
    array = group.create_array("a", shape=(300, 300), chunks=(100, 100), dtype="i4")
    array[:] = np.arange(90_000).reshape(300, 300)
    found = zarr.open_group(f"{uri}/g.zarr", mode="r")["a"]
    assert (found[95:105, 195:205] == np.arange(90_000).reshape(300, 300)[95:105, 195:205]).all()


def test_dask_reads_many_files_at_once(uri, table):
    frames = pytest.importorskip("dask.dataframe")
    for part in range(4):
        table[part::4].to_csv(f"{uri}/part-{part}.csv", index=False)
    found = frames.read_csv(f"{uri}/part-*.csv")
    assert found.npartitions == 4
    assert int(found.n.sum().compute(scheduler="threads")) == int(table.n.sum())
    assert int(found.n.sum().compute(scheduler="processes", num_workers=2)) == int(table.n.sum())


def test_pandas_says_why_not(uri):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(FileNotFoundError) as wrong:
        pandas.read_csv(f"{uri}/none.csv")
    assert wrong.value.filename == f"{uri}/none.csv"


def test_the_command_of_the_package_runs(program, tmp_path):
    import subprocess
    import sys

    if "_bin" not in program:
        pytest.skip("the package was not made by ./dev wheel")
    for command in ([sys.executable, "-m", "sluice"], [os.path.join(os.path.dirname(sys.executable), "sluice")]):
        (tmp_path / "far").mkdir(exist_ok=True)
        (tmp_path / "far" / "f").write_text("preloaded")
        done = subprocess.run([*command, "run", "--store", f"x={tmp_path}/far", "--", "cat", "scdc:///x/f"],
                              capture_output=True, check=True)
        assert done.stdout == b"preloaded"
