"""The project's own C, C++ and Fortran programs (tests/programs), part by part."""

from matrix.case import Registry

case = Registry("programs")


def parts(program, names, needs=None, core=(), **options):
    """One case for each part of a program."""
    for name in names.split():
        case(f"{program}-{name}", f"$P/{program} {name} $D", needs=needs or program, core=name in core, **options)


STDIO = ("write-and-read read-lines read-inlined seek-and-update append modes buffering reopen from-descriptor "
         "temporary pipes wide many-numbers several-streams left-open variable-reads")
parts("stdio", STDIO, core=("write-and-read", "seek-and-update", "reopen", "left-open"))
parts("stdio-fortify", STDIO, core=("write-and-read", "variable-reads"))
parts("stdio-bits64", "write-and-read seek-and-update append reopen temporary")
parts("stdio-names64", "write-and-read seek-and-update append reopen from-descriptor temporary")

DESCRIPTORS = ("duplicates flags close-in-bulk ten-thousand too-many numbering waiting signals handler-writes "
               "passed-over-socket proc-names")
parts("descriptors", DESCRIPTORS, core=("duplicates", "close-in-bulk"))
parts("descriptors-fortify", "duplicates flags waiting")

# A hundred thousand calls of one byte, each a few processes' turn on a mount: a minute is not enough on a busy machine.
parts("vectors", "one-byte", seconds_max=300)
VECTORS = "vectors positions bad-addresses alternating kernel-copies spliced asynchronous listed large-blocks"
parts("vectors", VECTORS, core=("positions", "alternating", "large-blocks"))
parts("vectors-fortify", "vectors positions")

parts("mapping", "private shared-write left-mapped grown-file write-then-map two-processes refusals fixed-and-advice",
      core=("private", "shared-write"))

DIRECTORIES = "reading scanning walking fts matching resolving standing at-family moved-directory thousand long-names"
parts("directories", DIRECTORIES, core=("reading", "walking", "standing"))
parts("directories-fortify", "resolving standing at-family")

FILES = ("truncating holes beyond-4-gib allocating names-and-open-files nameless links times-and-modes status-forms "
         "special-files")
parts("files", FILES, core=("truncating", "status-forms", "names-and-open-files"))
parts("files-bits64", "beyond-4-gib status-forms")

parts("locks", "record whole-file open-file counter")
parts("processes", "fork-shared-offset fork-both-write fork-in-turns fork-stdio append-from-two exec-inherits vfork-exec "
      "spawn-with-actions spawn-inherits exec-from-directory environment-cleared daemon-like killed-child",
      core=("fork-both-write", "exec-inherits", "vfork-exec", "spawn-with-actions"))
parts("threads", "one-file own-files shared-offset churn fork-among-threads cancellation", core=("one-file", "churn"))
parts("iostream", "streams binary errors filesystem", core=("streams",))
parts("records", "formatted stream direct unformatted inquire", core=("formatted", "direct"))
case("deepbind-plugin", "$P/deepbind run $D", needs="deepbind plugin.so", core=True)
# The same file is reached by name and through the map: a static program must be refused, not let loose
# on a local directory that happens to have the mapped name.
case("static-program", "$P/static $D/text.txt; tail -1 $D/text.txt", needs="static")
