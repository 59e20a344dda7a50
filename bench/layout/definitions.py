"""The datasets of the bench, as DRepl texts."""

POINTS = """dataset {{
    const N = {n}
    type Point struct {{ a, b, c float32 }}
    var data [N]Point
}}
view aos {{ var data = data }}
view soa {{ var a [i] = data[i].a; var b [i] = data[i].b; var c [i] = data[i].c }}
view b {{ var b [i] = data[i].b }}
"""

LINE = """dataset {{
    const N = {n}
    var x [N]float32
}}
view x {{ var x = x }}
view every5 {{ var x [i] = x[i*5] }}
"""

MATRIX = """dataset {{
    const ROWS = {rows}
    const COLUMNS = {columns}
    var m [ROWS, COLUMNS]float64
}}
view m {{ var m = m }}
view t {{ var t [i, j] = m[j, i] }}
"""


def points(n: int) -> str:
    """Structures of three numbers: the dataset of the paper."""
    return POINTS.format(n=n)


def line(n: int) -> str:
    """An array, and every fifth of it."""
    return LINE.format(n=n)


def matrix(rows: int, columns: int) -> str:
    """A matrix, and its transpose."""
    return MATRIX.format(rows=rows, columns=columns)


def replica(name: str, *views: str, flags: str = "complete") -> str:
    """A replica with views, one after the other."""
    return f'replica "{name}" {flags} {{ {"; ".join("view " + view for view in views)} }}\n'


def large(variables: int) -> str:
    """Many variables of several types, a view of all of them, and one in the other order."""
    kinds = ["float64", "[100, 50]float32", "[1000]Four", "string20"]
    declared = "\n".join(f"    var v{i} {kinds[i % 4]}" for i in range(variables))
    shown = "\n".join(f"    var w{i} = v{i}" for i in range(variables))
    turned = "\n".join(f"    var w{i} = v{i}" for i in reversed(range(variables)))
    return f"""dataset {{
    type Four struct {{ a, b, c, d int32 }}
{declared}
}}
view all {{
{shown}
}}
view turned rowminor {{
{turned}
}}
"""
