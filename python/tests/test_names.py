"""Functions on names, beside those of `os` on the directory that is served."""

import errno
import os
import pathlib

import pytest
import sluice


def test_listing_and_asking_tell_what_os_tells(far):
    directory, uri = far
    (directory / "dir").mkdir()
    (directory / "dir" / "inner").write_bytes(b"123")
    (directory / "f").write_bytes(b"12345")
    (directory / "link").symlink_to("f")
    assert sluice.listdir(uri) == sorted(os.listdir(directory))
    ours = {entry.name: entry for entry in sluice.scandir(uri)}
    for theirs in os.scandir(directory):
        one = ours.pop(theirs.name)
        found = theirs.stat(follow_symlinks=False)
        for field in ("st_mode", "st_size", "st_mtime_ns", "st_nlink", "st_uid"):
            assert getattr(one.stat, field) == getattr(found, field), (theirs.name, field)
        assert (one.is_dir(), one.is_symlink()) == (theirs.is_dir(follow_symlinks=False), theirs.is_symlink())
    assert not ours
    assert sluice.stat(f"{uri}/link").st_size == 5
    assert sluice.readlink(f"{uri}/link") == "f"
    assert sluice.exists(f"{uri}/dir/inner") and not sluice.exists(f"{uri}/dir/other") and not sluice.exists(f"{uri}/f/x")


def test_many_files_are_listed_with_their_sizes(far):
    directory, uri = far
    for number in range(700):
        (directory / f"{number:03}").write_bytes(b"x" * number)
    assert [(entry.name, entry.stat.st_size) for entry in sluice.scandir(uri)] == [(f"{n:03}", n) for n in range(700)]


def test_making_renaming_and_removing(far):
    directory, uri = far
    sluice.makedirs(f"{uri}/a/b/c")
    sluice.makedirs(f"{uri}/a/b/c", exist_ok=True)
    with pytest.raises(FileExistsError):
        sluice.makedirs(f"{uri}/a/b/c")
    assert (directory / "a/b/c").is_dir()
    with sluice.open(f"{uri}/a/f", "w") as file:
        file.write("x")
    sluice.rename(f"{uri}/a/f", f"{uri}/a/b/g")
    assert (directory / "a/b/g").read_text() == "x"
    with pytest.raises(OSError) as wrong:
        sluice.rmdir(f"{uri}/a/b")
    assert wrong.value.errno == errno.ENOTEMPTY
    with pytest.raises(IsADirectoryError):
        sluice.remove(f"{uri}/a/b")
    sluice.remove(f"{uri}/a/b/g")
    sluice.rmdir(f"{uri}/a/b/c")
    assert sluice.listdir(f"{uri}/a/b") == []
    with pytest.raises(OSError) as wrong:
        sluice.rename(f"{uri}/a", "scdc+tcp://127.0.0.1:1/a")
    assert wrong.value.errno == errno.EXDEV


def test_names_may_be_bytes_and_paths_and_need_not_be_text(far):
    directory, uri = far
    name = b"\xff\xfe"
    with sluice.open(uri.encode() + b"/" + name, "wb") as file:
        file.write(b"x")
    assert os.listdir(os.fsencode(directory)) == [name]
    assert sluice.listdir(uri) == [os.fsdecode(name)]
    with sluice.open(f"{uri}/{os.fsdecode(name)}", "rb") as file:
        assert file.read() == b"x"
    # A path folds `//`, which is understood.
    assert sluice.listdir(pathlib.PurePosixPath(uri)) == [os.fsdecode(name)]


def test_new_files_obey_the_umask(far):
    directory, uri = far
    before = os.umask(0o027)
    try:
        sluice.open(f"{uri}/f", "w").close()
        sluice.mkdir(f"{uri}/d")
    finally:
        os.umask(before)
    assert (directory / "f").stat().st_mode & 0o777 == 0o640
    assert (directory / "d").stat().st_mode & 0o777 == 0o750


def test_mapped_prefixes_of_the_configuration_are_addresses(far, tmp_path, python):
    directory, uri = far
    (directory / "f").write_text("mapped")
    (tmp_path / "sluice.toml").write_text(f'[routes]\n"/far" = "{uri}"\n')
    told = python("import sluice; print(sluice.open('/far/f').read(), sluice.listdir('/far'))",
                  SLUICE_CONFIG=str(tmp_path / "sluice.toml"))
    assert told == "mapped ['f']\n"
