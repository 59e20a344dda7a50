#!/bin/sh
# The Linux kernel's own 9P client on our service, in a virtual machine without hardware help.
#
#   v9fs.sh PORT SCRATCH
#
# mounts tree `x` of the service on 127.0.0.1:PORT inside a guest and works on it; prints the guest's
# console with "ok NAME" or "failed NAME" for each check and V9FS-DONE at the end. Exit status 77: a part
# is missing, and the last line says which. SCRATCH/tree is what the service exports as x.
#
# Needs qemu-system-x86, busybox-static and cpio; Debian's kernel package is downloaded and unpacked into
# a cache directory, not installed.
set -eu
PORT=$1
SCRATCH=$2
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/sluice-test/kernel

missing() {
    echo "$1"
    exit 77
}

command -v qemu-system-x86_64 >/dev/null || missing "qemu-system-x86 is not installed"
command -v cpio >/dev/null || missing "cpio is not installed"
BUSYBOX=$(command -v busybox) || missing "busybox-static is not installed"
! ldd "$BUSYBOX" >/dev/null 2>&1 || missing "busybox is not static: busybox-static is needed"

# ---- kernel and modules ---------------------------------------------------------------------------

if [ ! -e "$CACHE/unpacked" ]; then
    rm -rf "$CACHE"
    mkdir -p "$CACHE"
    package=$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/.*Depends: //p' | head -1)
    [ -n "$package" ] || missing "apt knows no linux-image-amd64"
    (cd "$CACHE" && apt-get download "$package" >download.log 2>&1 && dpkg-deb -x ./*.deb . && rm ./*.deb) ||
        missing "$package cannot be downloaded: $(tail -1 "$CACHE/download.log")"
    touch "$CACHE/unpacked"
fi
KERNEL=$(echo "$CACHE"/boot/vmlinuz-*)
MODULES=$(echo "$CACHE"/lib/modules/*/kernel)

# ---- what runs in the guest -----------------------------------------------------------------------

GUEST=$SCRATCH/guest
mkdir -p "$GUEST/bin" "$GUEST/modules" "$GUEST/proc" "$GUEST/dev" "$GUEST/mnt"
cp "$BUSYBOX" "$GUEST/bin/busybox"
for module in drivers/net/ethernet/intel/e1000/e1000 fs/netfs/netfs fs/fscache/fscache net/9p/9pnet \
    fs/9p/9p net/9p/9pnet_fd; do
    # Which of them are built in differs between kernels.
    if [ -e "$MODULES/$module.ko" ]; then cp "$MODULES/$module.ko" "$GUEST/modules/"; fi
done

# busybox has no flock: Debian's, with the libraries that it names.
for file in /usr/bin/flock $(ldd /usr/bin/flock | grep -o '/[^ ]*'); do
    mkdir -p "$GUEST$(dirname "$file")"
    cp -L "$file" "$GUEST$file"
done

cat >"$GUEST/init" <<INIT
#!/bin/busybox sh
PORT=$PORT
INIT
cat >>"$GUEST/init" <<'INIT'
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
for module in netfs fscache 9pnet 9p 9pnet_fd e1000; do
    if [ -e /modules/$module.ko ]; then insmod /modules/$module.ko; fi
done
ip link set lo up
ip addr add 10.0.2.15/24 dev eth0
ip link set eth0 up

check() {
    name=$1
    shift
    if "$@"; then echo "ok $name"; else echo "failed $name"; fi
}

work() {
    cd /mnt
    check "list" test "$(ls | grep -c -e '^numbers$' -e '^sub$' -e '^link$')" = 3
    check "attributes" test "$(stat -c '%s %A' sub/small)" = "6 -rw-r--r--"
    check "read" test "$(cat sub/small)" = hello
    check "symbolic link" cmp link numbers
    mkdir v9fs
    check "make a directory" test -d v9fs
    cd v9fs
    check "write" cp ../numbers big
    check "read back" cmp big ../numbers
    check "append" sh -c 'echo one >log; echo two >>log; test "$(cat log)" = "one
two"'
    check "write in the middle" sh -c 'echo -n X | dd of=log bs=1 seek=1 conv=notrunc 2>/dev/null; test "$(head -1 log)" = oXe'
    check "truncate" sh -c 'truncate -s 2 log && test "$(cat log)" = oX'
    check "mode" sh -c 'chmod 600 log && test "$(stat -c %a log)" = 600'
    check "times" sh -c 'touch -d "2001-09-09 01:46:40" log && test "$(stat -c %Y log)" = 1000000000'
    check "rename" sh -c 'mv log moved && test -e moved && ! test -e log'
    check "rename over" sh -c 'echo new >other && mv other moved && test "$(cat moved)" = new'
    check "hard link" sh -c 'ln moved hard && test "$(stat -c %h moved)" = 2'
    check "make a symbolic link" sh -c 'ln -s moved soft && test "$(readlink soft)" = moved'
    check "remove" sh -c 'rm hard soft moved && ! test -e moved'
    check "remove while open" sh -c 'echo kept >gone; exec 3<gone; rm gone; test "$(cat <&3)" = kept'
    check "lock" sh -c 'echo >locked; flock locked sh -c "! flock -n locked true"'
    check "500 entries" sh -c 'mkdir many; for i in $(seq 500); do : >many/$i; done; test $(ls many | wc -l) = 500'
    check "remove a tree" sh -c 'rm -r many && ! test -e many'
    check "directory not empty" sh -c 'mkdir -p a/b; ! rmdir a 2>/dev/null'
    check "space" sh -c 'test "$(df -P /mnt | tail -1 | wc -w)" -ge 6'
    check "sync" sync
    cd /
}

for msize in 8192 524288; do
    options=trans=tcp,port=$PORT,version=9p2000.L,access=0,uname=root,aname=/x,cache=mmap,msize=$msize
    check "mount with msize $msize" mount -t 9p -o $options 10.0.2.2 /mnt
    rm -rf /mnt/v9fs
    work
    check "unmount" umount /mnt
done
echo V9FS-DONE
poweroff -f
INIT
chmod +x "$GUEST/init"
(cd "$GUEST" && find . | cpio -o -H newc --quiet) >"$SCRATCH/initramfs"

exec qemu-system-x86_64 -accel tcg -cpu max -m 512 -no-reboot -display none -monitor none -serial stdio \
    -kernel "$KERNEL" -initrd "$SCRATCH/initramfs" -append "console=ttyS0 quiet panic=-1" \
    -netdev user,id=n -device e1000,netdev=n </dev/null
