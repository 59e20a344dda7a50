"""Archivers, editors, compilers, version control, databases and other programs."""

from matrix.case import Registry

case = Registry("tools")

case("tar", r'''
tar cf $D/t.tar -C $D tree text.txt
tar tf $D/t.tar | sort
mkdir out
tar xf $D/t.tar -C out
diff -r out/tree $D/tree
mkdir $D/unpacked
tar xf $D/t.tar -C $D/unpacked
tar rf $D/t.tar -C $D no-newline
tar tf $D/t.tar | wc -l
cd $D
tar czf all.tgz --sort=name --mtime=@0 --owner=0 --group=0 tree
tar tzf all.tgz | wc -l
rm all.tgz t.tar
''', needs="tar", core=True)

case("tar-pipe", r'''
tar cf - -C $D tree | tar xf - -C $W
diff -r $D/tree tree
tar cf - tree | (cd $D && mkdir x && tar xf - -C x)
tar df <(tar cf - -C $D tree) -C $D 2> /dev/null && echo no difference
tar xOf <(tar cf - -C $D text.txt) | sha256sum
''', needs="tar")

case("gzip", r'''
gzip -k -n $D/text.txt
zcat $D/text.txt.gz | cmp - $D/text.txt
gzip -n $D/numbers.txt
gzip -d $D/numbers.txt.gz
gzip -n < $D/data.bin > $D/data.gz
gunzip < $D/data.gz | cmp - $D/data.bin
gzip -t $D/data.gz
zgrep -c mesh $D/text.txt.gz
gzip -nc $D/big.bin | wc -c
ls $D
''', needs="gzip", core=True)

case("xz-bzip2-zstd", r'''
xz -k -T1 $D/text.txt
xz -dc $D/text.txt.xz | cmp - $D/text.txt
xz $D/numbers.txt
unxz $D/numbers.txt.xz
xz -l $D/text.txt.xz | wc -l
bzip2 -k $D/table.csv
bzcat $D/table.csv.bz2 | cmp - $D/table.csv
zstd -q $D/data.bin -o $D/data.zst
zstd -q -dc $D/data.zst | cmp - $D/data.bin
zstd -q --rm $D/notes.json
zstd -q -d $D/notes.json.zst
zstd -q -T2 < $D/big.bin > $D/big.zst
zstd -t -q $D/big.zst
''', needs="xz bzip2 zstd")

case("zip", r'''
cd $D
zip -q -r -X all.zip tree text.txt
unzip -q -t all.zip | tail -1
unzip -l all.zip | wc -l
mkdir un
unzip -q all.zip -d un
diff -r tree un/tree
zip -q -d all.zip text.txt
unzip -p all.zip tree/a/one.txt | head -1
cd $W
unzip -q $D/all.zip
ls
rm $D/all.zip
''', needs="zip unzip")

case("cpio", r'''
cd $D
find tree | sort | cpio -o -H newc --quiet > $W/a.cpio
cpio -t --quiet < $W/a.cpio
mkdir out
cd out
cpio -idm --quiet < $W/a.cpio
cd ..
diff -r tree out/tree
find tree | cpio -pdm --quiet $D/passed
cpio -o -H newc -F $D/in.cpio --quiet < /dev/null
rm $W/a.cpio $D/in.cpio
''', needs="cpio")

case("awk", r'''
awk -F, 'NR>1 {s+=$2} END {print s}' $D/table.csv
awk '{print > "'$D'/split." ($1%3)}' $D/text.txt
wc -l $D/split.*
awk 'BEGIN {while ((getline l < "'$D'/no-newline") > 0) print l; print "x" >> "'$D'/empty"; close("'$D'/empty"); "wc -c < '$D'/empty" | getline n; print n}'
mawk 'END {print NR}' $D/text.txt
''', needs="awk mawk", core=True)

case("sed", r'''
sed -n '5,7p' $D/text.txt
sed -i 's/mesh/MESH/g' $D/text.txt
sed -i.bak '1d' $D/numbers.txt
sed 's/o/0/w '$D/written $D/no-newline
sed -i -e '$a end' $D/tree/a/*.txt
sed -n 'r '$D/no-newline $D/table.csv | head -2
ls $D
sha256sum < $D/text.txt
''', core=True)

case("perl-io", r'''
perl -e '
my $d = $ENV{D}; open(my $f, "<", "$d/text.txt") or die $!; my @l = <$f>; close $f; print scalar(@l), "\n";
open($f, ">", "$d/out") or die $!; print $f "hello\n"; printf $f "%05d\n", 42; close $f or die $!;
open($f, ">>", "$d/out") or die $!; print $f "more\n"; print tell($f), "\n"; close $f; print -s "$d/out", "\n";
open($f, "+<", "$d/out") or die $!; seek($f, 6, 0); print $f "99999"; seek($f, 0, 0); local $/; print <$f>; close $f;
open($f, "<:raw", "$d/data.bin") or die $!; read($f, my $b, 1000, 0); seek($f, -10, 2); print read($f, $b, 100), eof($f) ? "eof" : "", "\n";
print -e "$d/absent" ? "y" : "n", -d "$d/tree" ? "d" : "", -x "$d/run.sh" ? "x" : "", -l "$d/link" ? "l" : "", "\n";
open($f, "<", "$d/absent") or print "$!\n";'
''', needs="perl", core=True)

case("perl-files", r'''
perl -MFcntl=:DEFAULT,:flock,:seek -MFile::Copy -MFile::Find -MFile::Path=make_path,remove_tree -MCwd -e '
my $d = $ENV{D}; opendir(my $h, "$d/tree") or die $!; print join(",", sort readdir $h), "\n"; closedir $h;
sysopen(my $f, "$d/sys", O_RDWR|O_CREAT|O_EXCL, 0640) or die $!; syswrite($f, "0123456789") == 10 or die; sysseek($f, 3, SEEK_SET); sysread($f, my $b, 4); print "$b\n";
flock($f, LOCK_EX) or die $!; truncate($f, 5) or die $!; close $f; sysopen($f, "$d/sys", O_WRONLY|O_CREAT|O_EXCL) or print "$!\n";
copy("$d/text.txt", "$d/copied") or die $!; move("$d/copied", "$d/moved") or die $!; make_path("$d/p/q/r"); remove_tree("$d/p");
find(sub { $n++ if -f }, "$d/tree"); print "$n\n"; my @s = stat "$d/text.txt"; print "$s[7] $s[9]\n"; utime(1000000000, 1000000000, "$d/moved"); rename "$d/moved", "$d/m2"; chmod 0600, "$d/m2"; symlink "m2", "$d/sl"; print readlink "$d/sl", "\n"; unlink "$d/sl"; mkdir "$d/mk"; rmdir "$d/mk";
chdir "$d/tree" or die $!; print getcwd() eq "$d/tree" ? "there\n" : getcwd(); print join(" ", glob("a/*")), "\n";'
''', needs="perl")

case("perl-inplace", r'''
perl -pi -e 's/flux/FLUX/' $D/text.txt
perl -pi.orig -e '$.==1 and $_=uc' $D/table.csv
perl -ne 'END{print $.}' $D/text.txt
perl -e 'exec q(cat), qq($ENV{D}/no-newline)'
perl -e '$|=1; open(STDOUT, q(>), qq($ENV{D}/so)); print qq(to file\n); system(q(echo from child));'
cat $D/so
''', needs="perl")

case("ed", r'''
printf "1,2d\n/lattice/s/lattice/LATTICE/\n\$a\nappended\n.\nw\nq\n" | ed -s $D/text.txt
tail -1 $D/text.txt
printf "r $D/no-newline\nw $D/ed-out\nq\n" | ed -s
cat $D/ed-out
''', needs="ed")

case("ex", r'''
ex -s -u NONE -n -c '1,3d' -c '%s/mesh/MESH/ge' -c 'wq' $D/text.txt < /dev/null
head -1 $D/text.txt
ex -s -u NONE -c 'r $D/no-newline' -c 'w $D/ex-out' -c 'q!' < /dev/null
cat $D/ex-out
''', needs="ex")

case("rsync-out", r'''
rsync -a $D/tree/ copy/
diff -r $D/tree copy
rsync -a --itemize-changes $D/tree/ copy/
rsync -rlptc $D/text.txt $D/link here/
ls here
''', needs="rsync", core=True)

case("rsync-in", r'''
cp -a $D/tree src
echo changed >> src/a/one.txt
rm src/c/five.txt
rsync -a --delete src/ $D/tree/
cp $D/big.bin b
printf X | dd of=b bs=1 seek=1000000 conv=notrunc status=none
rsync --inplace --no-whole-file b $D/big.bin
rsync -a --partial b $D/new.bin
rsync -a --append-verify b $D/data.bin
rsync -a --link-dest=$D/tree src/ $D/linked
cmp b $D/big.bin
''', needs="rsync")

case("make-gcc", r'''
cd $D
mkdir proj
cd proj
cat > main.c << 'END'
#include <stdio.h>
#include "part.h"
int main(void) { printf("%d\n", part(20)); return 0; }
END
echo 'int part(int);' > part.h
echo 'int part(int x) { return 2 * x + 2; }' > part.c
printf 'prog: main.o part.o\n\t$(CC) -o $@ $^\n%%.o: %%.c part.h\n\t$(CC) -O1 -c -o $@ $<\nclean:\n\trm -f *.o prog\n' > Makefile
make -s
cp prog $W/
$W/prog
make
touch part.h
make -n | wc -l
ar rcs libpart.a part.o
nm libpart.a | grep -c part
gcc -o prog2 main.c -L. -lpart
cp prog2 $W
$W/prog2
make -s clean
strip prog2
size prog2 | wc -l
rm -f prog2 libpart.a
ls
''', needs="make gcc ar")

case("gcc-uri", r'''
echo 'int main(void) { return 0; }' > $D/m.c
gcc -c -o $D/m.o $D/m.c
gcc -o m $D/m.o
./m
objdump -h $D/m.o | wc -l
gcc -E $D/m.c | tail -1
g++ -x c++ -fsyntax-only $D/m.c
readelf -h $D/m.o | wc -l
rm $D/m.o
rm m
''', needs="gcc g++ objdump")

case("patch", r'''
cp $D/text.txt new
sed -i "10s/^/CHANGED /" new
diff -u --label a/text.txt --label b/text.txt $D/text.txt new > $D/change.diff || true
cd $D
patch -s -p1 < change.diff
cmp text.txt $W/new
patch -s -R -p1 -b < change.diff
ls
rc patch --dry-run -s -p1 -d $D -i $D/absent 2> /dev/null
''', needs="patch diff")

case("bc-m4-jq", r'''
bc -q $D/sum.bc
bc -lq < $D/sum.bc
jq -c .nested $D/notes.json
jq ".values|add" < $D/notes.json > $D/jq-out
cat $D/jq-out
echo "define(X, 5)include(no-newline) X" > $D/in.m4
(
    cd $D
    m4 in.m4
)
m4 -I $D in.m4 > $D/m4-out
''', needs="bc m4 jq")

case("xxd-strings-file", r'''
strings -n 8 $D/data.bin | head -3
strings $D/no-newline
hexdump -C -n 32 $D/data.bin
look 00012 $D/text.txt | wc -l
''', needs="strings hexdump look")

case("rev-column-split", r'''
column -t -s, $D/table.csv | head -2
rev $D/no-newline
script -q -c "cat $D/no-newline" $W/typescript > /dev/null
rm typescript
logger -s --no-act -f $D/no-newline 2> /dev/null || true
''', needs="column rev script")

case("flock-tool", r'''
flock $D/lock echo locked
(
    flock -n 9 && echo mine
    flock -u 9
) 9> $D/lock
exec 8> $D/lock
flock -x 8
rc flock -n $D/lock true 2> /dev/null
flock -u 8
flock -n $D/lock echo free
flock -s $D/text.txt cat $D/no-newline
''', needs="flock")

case("fallocate-tool", r'''
rc fallocate -l 100000 $D/alloc 2> /dev/null
stat -c %s $D/alloc
rc fallocate -d $D/data.bin 2> /dev/null
cmp $D/data.bin $D/data.bin
''', needs="fallocate")

case("sqlite-create", r'''
sqlite3 $D/db "create table t(a integer primary key, b text); insert into t(b) values('x'),('y'),('z'); create index i on t(b);"
sqlite3 $D/db "select * from t; select count(*) from t; pragma integrity_check;"
sqlite3 $D/db ".dump" | sha256sum
ls $D
''', needs="sqlite3", core=True)

case("sqlite-transactions", r'''
sqlite3 $D/db "create table t(a, b); begin; with recursive c(x) as (select 1 union all select x+1 from c where x<5000) insert into t select x, hex(x*x) from c; commit; begin; delete from t where a%7=0; rollback; begin; update t set b='q' where a%5=0; commit; select count(*), sum(a) from t where b='q'; vacuum; pragma integrity_check;"
sqlite3 $D/db "savepoint s; delete from t; rollback to s; release s; select count(*) from t;"
sqlite3 -csv $D/db "select * from t limit 3" > $D/rows.csv
sqlite3 $D/db ".import --csv --skip 1 $D/table.csv words" "select count(*) from words"
''', needs="sqlite3")

for mode in ("delete", "truncate", "persist", "memory", "off"):
    case(f"sqlite-journal-{mode}", rf'''
sqlite3 $D/db "pragma journal_mode={mode}; create table t(a); insert into t values(1); insert into t values(2); update t set a=a+1; select sum(a) from t; pragma integrity_check;"
sqlite3 $D/db "pragma journal_mode={mode}; delete from t where a=2; select * from t;"
ls $D
rm -f $D/db-journal
''', needs="sqlite3")

case("sqlite-wal", r'''
sqlite3 $D/db "create table t(a);"
sqlite3 $D/db "pragma journal_mode=wal; insert into t values(1);" > mode
sqlite3 $D/db "insert into t values(2); select sum(a) from t; pragma wal_checkpoint(truncate); pragma integrity_check;"
cat mode
sqlite3 $D/db "pragma journal_mode=delete;"
''', needs="sqlite3")

case("sqlite-two-processes", r'''
sqlite3 $D/db "create table t(who, n);"
for who in a b; do (for n in $(seq 15); do sqlite3 -cmd ".timeout 20000" $D/db "insert into t values('$who', $n);"; done) & done
wait
sqlite3 $D/db "select who, count(*), sum(n) from t group by who; pragma integrity_check; vacuum into '$W/out.db';"
sqlite3 out.db "select count(*) from t"
rm out.db
sqlite3 $D/db .dump | sort > $D/dump
rm $D/db
''', needs="sqlite3")

case("sqlite-lock-refused", r'''
sqlite3 $D/db "create table t(a);"
(
    echo "begin exclusive;"
    echo ".shell touch $W/held; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do [ -e $W/go ] && break; sleep 0.1; done"
    echo "commit;"
) | sqlite3 $D/db &
for i in $(seq 50); do
    [ -e held ] && break
    sleep 0.1
done
rc sqlite3 $D/db "insert into t values(1);" 2> /dev/null
touch go
wait
sqlite3 $D/db "insert into t values(2); select * from t;"
rm go held
''', needs="sqlite3")

case("git-init-commit", r'''
cd $D/tree
git init -q -b main
git add .
git commit -q -m first
git log --format="%H %s"
git status --short
echo more >> a/one.txt
git status --short
git diff --stat
git commit -q -a -m second
git log --oneline | cat
git show HEAD:a/one.txt | tail -1
git fsck --no-progress
rm .git/index
git reset -q
git status --short
rm -r .git
''', needs="git", core=True)

case("git-branches", r'''
cd $D/tree
git init -q -b main
git add .
git commit -q -m first
git checkout -q -b side
echo side > side.txt
git add side.txt
git commit -q -m side
git checkout -q main
ls
echo main > main.txt
git add .
git commit -q -m main
git merge -q -m merged side
git log --format=%s | sort
ls
git tag v1
git stash list
git mv main.txt moved.txt
git commit -q -m mv
git branch -D side -q
git rev-parse HEAD
git ls-files -s | sha256sum
rm -rf .git
''', needs="git")

case("git-clone-gc", r'''
mkdir r
cd r
git init -q -b main
for i in 1 2 3 4 5; do
    seq $((i * 100)) > f$i
    git add .
    git commit -q -m c$i
done
cd ..
git clone -q r $D/clone
cd $D/clone
git log --oneline | wc -l
echo x > f9
git add .
git commit -q -m nine
git gc -q
git fsck --no-progress
git count-objects | cut -d" " -f1
git push -q origin HEAD:refs/heads/pushed
cd $W
git -C r rev-parse pushed
git clone -q --no-hardlinks $D/clone back
ls back
git -C back rev-parse HEAD
git -C $D/clone archive HEAD | tar t
rm -rf r back $D/clone/.git
''', needs="git tar")

case("git-dir-work-tree", r'''
git init -q --bare -b main $D/bare.git
git init -q -b main w
cd w
cp $D/text.txt .
git add .
git commit -q -m t
git push -q $D/bare.git main
git --git-dir=$D/bare.git log --format=%H
git --git-dir=$D/bare.git cat-file -p main:text.txt | cmp - $D/text.txt
git --git-dir=$D/bare.git repack -q -a -d
git --git-dir=$D/bare.git fsck --no-progress
cd ..
rm -rf w $D/bare.git
git hash-object $D/data.bin
git diff --no-index --shortstat $D/text.txt $D/numbers.txt || true
''', needs="git")
