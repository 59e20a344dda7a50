"""The states that a directory goes through in which a writer of `lone.c` makes, renames, links and unlinks.

Changes of names and modes keep their order: after a crash all those up to some moment have happened, and no others. A name with
a `+` is that of something whose mode has been changed.
"""


def states(epochs):
    """(epoch, names) of all states, in their order; an epoch's last one is that of its consistency point."""
    now = set()
    yield 0, frozenset(now)
    for epoch in range(1, epochs + 1):
        steps = [(None, f"dir.{epoch}"), (None, f"new.{epoch}"), (f"new.{epoch}", f"file.{epoch}"), (None, f"link.{epoch}")]
        if epoch > 3:
            steps += [(f"{what}.{epoch - 3}", None) for what in ("file", "link", "dir")]
        steps += [(f"dir.{epoch}", f"dir.{epoch}+"), (f"file.{epoch}", f"file.{epoch}+")]
        for gone, come in steps:
            now -= {gone, f"{gone}+"}
            now |= {come} - {None}
            yield epoch, frozenset(now)


def name_of(path):
    """A name, and whether the mode was changed. That of a link is that of its file."""
    is_changed = not path.name.startswith("link.") and path.stat().st_mode & 0o777 in (0o700, 0o744)
    return f"{path.name}+" if is_changed else path.name


def judge(directory, points):
    """None if the directory may be as it is, else what is wrong with it."""
    found = {name_of(path) for path in directory.iterdir()} if directory.exists() else set()
    last = {epoch: state for epoch, state in states(points.passed)}[points.passed]
    possible = [last, *(state for epoch, state in states(points.entered) if epoch > points.passed)]
    if found not in possible:
        lost = not any(found == state for epoch, state in states(points.entered))
        what = "its names were never those" if lost else "lost: its names are those of an earlier moment"
        return f"{what}: {' '.join(sorted(found)) or 'none'}; it was to be {' '.join(sorted(last))}, or what came afterwards"
    if points.passed and not directory.is_dir():
        return "lost: the directory"
    for path in directory.iterdir() if found else ():
        name, (kind, epoch) = path.name, path.name.split(".")
        if kind == "dir":
            if not path.is_dir():
                return f"{name} is no directory"
        elif path.read_text() != f"{epoch}\n" and not (kind == "new" and path.read_text() == ""):
            return f"{name} has {path.read_bytes()[:20]!r}"
    for name in (path.name for path in directory.iterdir()) if found else ():
        twin = name.replace("link.", "file.")
        if name.startswith("link.") and (directory / twin).exists() and not (directory / name).samefile(directory / twin):
            return f"{name} and {twin} are two files"
    return None
