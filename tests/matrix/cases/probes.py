"""Single system and library calls, made by tests/programs/probe.c, compared as JSON.

Each line of a table is one invocation: the call, a path below the data directory, arguments.
`@name` among the arguments is a path below the data directory as well; a path `=name` is used as it
is. Lines are judged one by one, and known.toml can list one as "probe-TABLE: LINE".
"""

from matrix.case import Registry

case = Registry("probes")


def table(name, lines, **options):
    """One case that makes every call of a table, each in a process of its own."""
    script = ["export D"]
    for line in filter(None, map(str.strip, lines.splitlines())):
        call, path, *arguments = line.split()
        shown = " ".join(f'"$D/{a[1:]}"' if a.startswith("@") else f"'{a}'" for a in arguments)
        place = '"$D"' if path == "." else f'"{path[1:]}"' if path.startswith("=") else f'"$D/{path}"'
        script.append(f"printf '%s\\t' '{line}'; $P/probe {call} {place} {shown} || echo status $?")
    case(f"probe-{name}", "\n".join(script), needs="probe", by_line=True, **options)


# Flags as x86-64 Linux numbers: 0 read, 1 write, 2 both, 0100 create, 0200 exclusive, 01000 truncate,
# 02000 append, 0200000 directory, 0400000 no-follow, 02000000 close-on-exec, 010000000 path.
table("open", """
open text.txt 0
open text.txt 2
open text.txt 02001
open text.txt 02000000
open absent 0
open absent/x 0101
open text.txt/x 0
open text.txt/ 0
open new1 0101 0600
open new2 0301 0640
open text.txt 0301
open numbers.txt 01001
open link 0
open link 0400000
open dangling 0
open dangling 0301
open tree 0
open tree 1
open tree 0200000
open text.txt 0200000
open tree/ 0101
open . 0
open tree/.. 0
open tree/../text.txt 0
open64 text.txt 0
open64 absent 0
open64 new3 0101 0644
openat text.txt 0
openat =text.txt 0 0 @
openat =tree/a/one.txt 0 0 @
openat =absent 0 0 @
openat =new4 0101 0600 @
openat =a/one.txt 0 0 @tree
openat =../text.txt 0 0 @tree
openat =x 0 0 @text.txt
open_2 text.txt 0
open_2 absent 0
open64_2 text.txt 0
openat_2 text.txt 0
creat new5 0600
creat text.txt 0644
creat tree
creat64 new6
fopen text.txt r
fopen text.txt r+
fopen text.txt re
fopen absent r
fopen tree w
fopen tree r
fopen64 text.txt a
fopen64 new7 wx
fopen64 new7 wx
freopen text.txt r
freopen absent r
opendir .
opendir tree
opendir text.txt
opendir absent
opendir dirlink
close text.txt
""", core=True)

table("status", "\n".join(
    [f"{call} {path}" for call in ("stat", "stat64", "lstat", "xstat", "lxstat", "xstat64", "lxstat64", "fxstatat", "statx",
                                  "access", "eaccess", "faccessat", "statfs", "statvfs", "pathconf")
     for path in ("text.txt", "link", "dangling", "tree", "tree/a/one.txt", "absent", "text.txt/x", "tree/", "text.txt/", ".",
                  "dirlink", "dirlink/", "tree/../empty")]
    + [f"{call} {path}" for call in ("fstat", "fstat64", "fxstat", "fxstat64", "fstatat_empty", "fstatfs", "fstatvfs", "fpathconf")
       for path in ("text.txt", "tree", "link", "empty", "secret")]
    + ["fstatat link 256", "fstatat text.txt 0", "fstatat absent 0", "fstatat text.txt 12345678", "statx link 256",
       "access text.txt 7", "access run.sh 1", "access text.txt 1", "access tree 7", "access secret 4",
       "faccessat link 0 256", "faccessat dangling 0 256", "eaccess run.sh 1", "access text.txt 64"]), core=True)

table("reading", """
read text.txt 16
read text.txt 0
read text.txt 60000
read empty 10
read tree 10
read_chk text.txt 20
read_writeonly text.txt
pread data.bin 16 1000
pread data.bin 16 1048650
pread data.bin 16 1048653
pread data.bin 16 99999999999
pread data.bin 16 -1
pread tree 16 0
pread64 data.bin 16 77
pread_chk data.bin 16 78
readv data.bin 100
readv no-newline 100
preadv data.bin 20 500
preadv data.bin 20 -7
preadv2 data.bin 20 500 0
preadv2 data.bin 20 -1 0
preadv2 data.bin 20 500 8
preadv2 data.bin 20 500 65536
fread text.txt 100
fread no-newline 100
fread empty 10
fread tree 10
fgets text.txt 20
fgets empty 20
fgets tree 20
fgetc data.bin
fgetc empty
getline text.txt
getline no-newline
getline empty
fscanf text.txt
fscanf empty
lseek text.txt 100 0
lseek text.txt 0 2
lseek text.txt 10 2
lseek text.txt -10 2
lseek text.txt -1 0
lseek text.txt 0 9
lseek64 text.txt 5368709120 0
lseek64 tree 0 0
lseek text.txt 0 3
lseek text.txt 0 4
lseek empty 0 3
lseek text.txt 99999999 3
fseek text.txt 50 0
fseek text.txt -50 2
fseek text.txt -50 0
fseeko64 text.txt 5368709120 0
mmap data.bin 100 1 2
mmap data.bin 100 1 1
mmap data.bin 100 3 1
mmap data.bin 100 3 1 1
mmap data.bin 100 3 2
mmap data.bin 0 1 2
mmap tree 100 1 2
readahead data.bin
posix_fadvise data.bin 3
posix_fadvise data.bin 99
splice data.bin 100
fionread data.bin
isatty data.bin
poll data.bin
""", core=True)

table("writing", """
write text.txt hello
write empty hello
write_append text.txt hello
write_append numbers.txt x
write_readonly text.txt
pwrite data.bin hello 100
pwrite data.bin hello 2000000
pwrite data.bin hello -1
pwrite64 data.bin there 200
writev no-newline one two
pwritev data.bin one two 300
pwritev data.bin one two -4
pwritev2 data.bin xyz 400 0
pwritev2 data.bin xyz 400 2
pwritev2 data.bin xyz 0 16
pwritev2 data.bin xyz 0 65536
fwrite table.csv HEAD
fprintf table.csv tail
fputc notes.json
dprintf sum.bc text
truncate text.txt 100
truncate text.txt 5000000000
truncate text.txt -1
truncate absent 1
truncate tree 1
truncate link 50
truncate64 numbers.txt 10
ftruncate numbers.txt 20
ftruncate numbers.txt -20
ftruncate64 numbers.txt 3000
ftruncate_readonly numbers.txt
fsync text.txt
fdatasync text.txt
syncfs text.txt
sync_file_range text.txt
posix_fallocate empty 0 10000
posix_fallocate empty -1 5
posix_fallocate empty 0 0
fallocate tree/b/four.dat 0 5000 0
copy_file_range big.bin @copied 5000
sendfile big.bin @sent 5000
""")

table("names", """
mkdir d1 0700
mkdir d1
mkdir text.txt
mkdir absent/d
mkdir text.txt/d
mkdir d2/
mkdirat d3
rmdir d1
rmdir d1
rmdir tree
rmdir text.txt
rmdir d2/
rmdir d3/.
unlink no-newline
unlink no-newline
unlink tree
unlink link
unlink text.txt/x
unlinkat notes.json
unlinkat d3 512
unlinkat tree 512
unlinkat sum.bc 512
remove sum.bc
remove absent
rename text.txt @renamed
rename renamed @renamed
rename renamed @numbers.txt
rename absent @x
rename tree @numbers.txt
rename numbers.txt @tree
rename tree @tree/a/x
rename tree @tree2
rename tree2/a @tree2/b
rename numbers.txt @absent/x
renameat numbers.txt @n2
renameat2 n2 @n3 0
renameat2 n3 @secret 1
renameat2 n3 @n4 1
renameat2 n4 @n5 99
link n4 @hard
link n4 @hard
link absent @h2
link tree2 @h2
linkat n4 @h3
linkat dangling @h4 1024
symlink s1 n4
symlink s1 n4
symlink s2 /nowhere/at/all
symlink absent/s x
symlinkat s3 tree2
readlink s1
readlink s2
readlink s1 1
readlink n4
readlink absent
readlink_chk s3
realpath s1
realpath s3/b
realpath s2
realpath absent
realpath n4/x
realpath_chk s1
chdir tree2
chdir n4
chdir absent
chdir s3
fchdir tree2
fchdir n4
readdir .
readdir64 tree2
readdir n4
scandir tree2
scandir absent
mkstemp tree2/tXXXXXX
mkdtemp tree2/b/dXXXXXX
mkstemp absent/tXXXXXX
mknod plain
""".replace("mkstemp tree2/tXXXXXX\nmkdtemp tree2/b/dXXXXXX\n", ""))

table("attributes", """
chmod text.txt 0640
chmod text.txt 07777
chmod tree 0711
chmod link 0604
chmod absent 0600
fchmod numbers.txt 0601
fchmod tree 0750
fchmodat numbers.txt 0602
chown text.txt
chown absent
lchown link
fchown text.txt
utime text.txt 1000000000
utime absent 1
utimes numbers.txt 1000000001
lutimes link 1000000002
futimes empty 1000000003
utimensat secret 1000000004
utimensat link 1000000005 256
utimensat absent 1
futimens data.bin 1000000006
futimens big.bin -5
stat text.txt
stat numbers.txt
lstat link
stat empty
getxattr text.txt user.none
listxattr text.txt
removexattr text.txt user.none
getxattr absent user.none
""")

table("descriptors", """
dup text.txt
dup2 text.txt
dup3 text.txt
dup3_same text.txt
fcntl_dupfd text.txt
fcntl_dupfd_cloexec text.txt
fcntl_getfl text.txt 0
fcntl_getfl text.txt 2
fcntl_getfl text.txt 02001
fcntl_getfl text.txt 04000
fcntl_setfl text.txt
fcntl_getlk text.txt
fcntl_setlk text.txt 1
fcntl_setlk text.txt 0
fcntl_setlk text.txt 2
fcntl_setlk_readonly text.txt
lockf text.txt
flock text.txt
close_range text.txt
fioclex text.txt
dup tree
fcntl_getfl tree 0
""")
