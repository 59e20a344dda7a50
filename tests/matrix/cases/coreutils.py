"""GNU coreutils, findutils and grep."""

from matrix.case import Registry

case = Registry("coreutils")

case("cp-in", r'''
cp $D/big.bin in.bin
cmp in.bin $D/big.bin
cp $D/empty .
''', core=True)

case("cp-out", r'''
cp $D/data.bin local
cp local $D/copy.bin
cp local $D/tree/b/
''', core=True)

case("cp-within", r'''
cp $D/big.bin $D/copy.bin
cmp $D/big.bin $D/copy.bin
''')

case("cp-tree", r'''
cp -r $D/tree $D/tree2
cp -r $D/tree here
diff -r $D/tree here && echo same
''')

case("cp-archive", r'''
cp -a $D/tree $D/tree-a
cp -a $D/link $D/secret $D/run.sh here 2> /dev/null || {
    mkdir here
    cp -a $D/link $D/secret $D/run.sh here
}
cp -a here $D/back
''')

case("cp-sparse", r'''
truncate -s 3M hollow
printf end >> hollow
cp --sparse=always hollow $D/hollow
cp --sparse=never $D/hollow solid
cmp hollow solid && echo same
cp --sparse=auto $D/hollow again
cmp again hollow
''')

case("cp-force-and-update", r'''
cp -f $D/text.txt $D/secret
cp -u $D/empty $D/text.txt
cp -n $D/empty $D/numbers.txt
cp -b $D/empty $D/table.csv
ls $D
''')

case("cat", r'''
cat $D/text.txt $D/empty $D/no-newline $D/numbers.txt
cat < $D/text.txt | wc -l
cat $D/text.txt $D/numbers.txt > $D/both
''', core=True)

case("cat-uri", r'''
cat "$U/text.txt" | sha256sum
cat "$U/tree/with space.txt"
cp "$U/data.bin" in
cp in "$U/out.bin"
rc cat "$U/absent" 2> /dev/null
''', core=True)

case("dd-blocks", r'''
dd if=$D/big.bin of=$D/out bs=64k status=none
dd if=$D/big.bin bs=1000 skip=7 count=13 status=none | sha256sum
dd if=$D/data.bin of=part bs=4096 skip=3 seek=5 status=none
''', core=True)

case("dd-notrunc", r'''
dd if=$D/data.bin of=$D/big.bin bs=512 seek=100 count=9 conv=notrunc status=none
dd if=/dev/zero of=$D/data.bin bs=1 seek=77 count=5 conv=notrunc,fsync status=none
dd if=$D/text.txt of=$D/numbers.txt bs=10 seek=2 count=1 status=none
''')

case("dd-append", r'''
dd if=$D/numbers.txt of=$D/text.txt oflag=append conv=notrunc bs=777 status=none
dd if=$D/empty of=$D/empty2 status=none
''')

case("dd-one-byte", r'''
head -c 20000 $D/data.bin > $D/small
dd if=$D/small of=$D/bytes bs=1 status=none
cmp $D/small $D/bytes
''')

case("dd-sparse-far", r'''
printf tail | dd of=$D/giant bs=1 seek=5368709120 conv=notrunc status=none
stat -c %s $D/giant
tail -c 6 $D/giant | od -c
''')

case("tail-head", r'''
tail -c 100 $D/text.txt
tail -n 3 $D/text.txt
tail -n +1998 $D/text.txt
head -c 50 $D/data.bin | od -An -tx1
head -n 2 $D/text.txt
head -n -1995 $D/text.txt
tail -c +4194300 $D/big.bin | od -c
tac $D/text.txt | head -3
''', core=True)

case("tail-follow", r'''
cp $D/empty $D/log
tail -f -n +1 -s 0.1 $D/log > followed &
reader=$!
echo one >> $D/log
echo two >> $D/log
for i in $(seq 60); do
    grep -q two followed && break
    sleep 0.1
done
kill $reader
wait $reader || true
cat followed
''')

case("sort", r'''
sort $D/text.txt -R --random-source=$D/data.bin | sha256sum
sort -n -u $D/numbers.txt -o $D/sorted
sort -n -r -o $D/numbers.txt $D/numbers.txt
sort -n -c $D/sorted && echo sorted
''', core=True)

case("sort-spill", r'''
sort -S 64k -T $D $D/text.txt $D/numbers.txt > out
sort -S 64k --parallel=2 -T $D -o $D/merged $D/text.txt
ls $D
''')

case("text-tools", r'''
uniq -c <(cut -c1-2 $D/text.txt) | head -5
cut -d, -f2 $D/table.csv | paste -s
tr a-z A-Z < $D/table.csv | tail -2
join -t, $D/table.csv $D/table.csv | head -3
nl $D/table.csv | tail -1
fold -w 40 $D/no-newline
expand $D/table.csv | head -1
comm -12 <(sort $D/text.txt) <(sort $D/text.txt) | wc -l
od -An -tx8 -j 99 -N 64 $D/data.bin
wc -lwc $D/text.txt
wc -c < $D/big.bin
cksum $D/data.bin | cut -d' ' -f1,2
sum < $D/data.bin
b2sum < $D/big.bin
base64 -w0 $D/data.bin | md5sum
''')

case("checksums", r'''
sha256sum $D/*.bin $D/*.txt > sums
cat sums
sha256sum -c sums
rm sums
(
    cd $D
    md5sum big.bin data.bin > SUMS
    md5sum -c SUMS
    sha1sum tree/a/*
)
''', core=True)

case("shuf-split", r'''
shuf --random-source=$D/big.bin $D/numbers.txt > $D/shuffled
split -b 300k $D/data.bin $D/part.
cat $D/part.* | cmp - $D/data.bin
split -l 700 -d $D/text.txt $D/lines.
split -n 3 $D/data.bin chunk.
csplit -s -f $D/cs. $D/text.txt 100 1000
ls $D
''')

case("tee", r'''
tee $D/one $D/two < $D/text.txt | wc -l
echo more | tee -a $D/one $D/empty
seq 3 | tee $D/three > /dev/null
''')

case("truncate", r'''
truncate -s 100 $D/text.txt
truncate -s +4M $D/data.bin
truncate -s 0 $D/numbers.txt
truncate -s 5G $D/new
truncate -s %4096 $D/table.csv
truncate -r $D/text.txt $D/like
stat -c '%n %s' $D/*.txt $D/new $D/like
rc truncate -c -s 5 $D/absent
ls $D
''', core=True)

case("ls", r'''
ls $D
ls -a $D | wc -l
ls -l $D/tree/a $D/text.txt $D/run.sh
ls -R $D/tree
ls -Q $D/tree
ls -S $D | head -3
ls -t $D | head -4
ls -F $D
ls -ld $D/link
ls -l $D/link $D/dangling
''', core=True)

case("ls-long-all", r'''
cd $D
touch -d 2001-02-03 .
ls -lA --time-style=full-iso
ls -l --time=ctime tree/a | wc -l
ls -1U tree | sort
ls -is tree/a | wc -l
''')

case("ls-absent", r'''
rc ls $D/absent 2>&1
rc ls $D/text.txt/below 2>&1
rc cat $D 2>&1
rc cat $D/absent 2>&1
rc rmdir $D/tree 2>&1
rc mkdir $D/tree 2>&1
rc cp $D/absent x 2>&1
rc ls $D/dangling/ 2>&1
''')

case("stat", r'''
stat -c '%n %s %F %a %h %b %B' $D/text.txt $D/empty $D/run.sh $D/link $D/dangling $D/secret
stat -L -c '%s %F %Y' $D/link
stat -c '%y %n' $D/data.bin
stat -f -c '%l %T' $D
test -d $D/tree
test -L $D/link
test -x $D/run.sh
test ! -e $D/dangling
test -s $D/text.txt
test ! -s $D/empty
test $D/link -ef $D/text.txt
test ! $D/empty -ef $D/text.txt
''')

case("touch", r'''
touch $D/new
touch -d "2001-02-03 04:05:06.789" $D/text.txt
touch -r $D/text.txt $D/empty
touch -h -d 2002-01-01 $D/link
touch -a -d 2003-01-01 $D/run.sh
touch -m -d @12345.678901234 $D/secret
stat -c "%y %n" $D/text.txt $D/empty $D/link $D/secret
rc touch -c $D/absent
ls $D
''')

case("mkdir-rmdir", r'''
mkdir $D/d
mkdir -p $D/e/f/g/h
mkdir -m 700 $D/private
rmdir $D/d
rmdir -p $D/e/f/g/h 2> /dev/null || true
ls -R $D/tree $D | wc -l
stat -c "%a %n" $D/private
''', core=True)

case("mv", r'''
mv $D/text.txt $D/renamed
mv $D/tree/a $D/a
mv $D/empty $D/numbers.txt
mv $D/data.bin .
mv data.bin $D/tree/
mv -n $D/renamed $D/run.sh
mkdir x
mv x $D/y
mv $D/tree here
ls -R here
''', core=True)

case("mv-exchange-errors", r'''
rc mv $D/tree $D/tree/b/inside 2>&1
rc mv $D/absent $D/x 2>&1
rc mv -T $D/tree $D/text.txt 2>&1
rc mv -T $D/text.txt $D/tree 2>&1
''')

case("rm", r'''
rm $D/text.txt $D/link $D/dangling
rm -r $D/tree
rm -f $D/absent
rc rm $D/absent 2>&1
rc rm $D 2>&1
mkdir $D/empty-dir
rm -d $D/empty-dir
ls $D
''', core=True)

case("ln", r'''
ln -s text.txt $D/new-link
ln $D/text.txt $D/hard
ln -sf numbers.txt $D/link
readlink $D/link $D/dangling
readlink -f $D/link
readlink -e $D/dirlink/a/one.txt
realpath $D/tree/../dirlink/b
realpath -m $D/no/such
cat $D/hard | tail -1
stat -c %h $D/hard
echo added >> $D/hard
tail -1 $D/text.txt
cat $D/dirlink/a/one.txt
ln -sr $D/tree/a/one.txt $D/relative
readlink $D/relative
link $D/empty $D/empty3
unlink $D/empty3
''', core=True)

case("install", r'''
install -m 750 $D/run.sh $D/installed
install -d $D/i/j/k
install -D -m 644 $D/text.txt $D/m/n/o.txt
install -m 600 -t $D/i $D/data.bin
$D/installed now 2>&1 || echo cannot execute
''', needs="install")

case("execute", r'''
cd $D
bash ./run.sh a b
sh $D/run.sh
. ./run.sh
python3 -c "import os;print(os.access('$D/run.sh', os.X_OK), os.access('$D/text.txt', os.X_OK))"
''')

case("chmod-chown", r'''
chmod 640 $D/text.txt
chmod u+x,g-r $D/numbers.txt
chmod -R o-rwx $D/tree
chmod 1777 $D/tree/c
chmod u+s $D/run.sh
chown 0:0 $D/text.txt
stat -c "%a %u %g %n" $D/text.txt $D/tree/c
umask 077
touch $D/masked
mkdir $D/masked-dir
''')

case("du-df", r'''
du -b $D/tree/a/* $D/big.bin
du -sk --apparent-size $D/text.txt
du -a $D/tree/a | wc -l
df $D > /dev/null
df -i $D | wc -l
sync $D/text.txt
sync -f $D
''')

case("find", r'''
find $D -type f | sort
find $D -size +1M -name "*.bin" | sort
find $D/tree -newer $D/run.sh | wc -l
find $D -type l -lname "text*"
find $D -empty -type f | sort
find $D/tree -name "*.txt" -print0 | sort -z | xargs -0 wc -c
find $D -perm 600
find $D/tree -depth | wc -l
find -L $D/dirlink -name three.txt
find $D -maxdepth 1 -mtime +100 | wc -l
find $D -printf "%s %m %y %l %P\n" | grep -v " d " | sort
''', needs="find", core=True)

case("find-act", r'''
find $D/tree -name "*.txt" -exec cp {} $D/ \;
find $D/tree -name "t*.txt" -delete
find $D/tree -type f -exec sha256sum {} + | sort
cd $D
find . -newermt 2019-01-01 -type f | sort | head
find tree -execdir true \;
''', needs="find")

case("grep", r'''
grep -c mesh $D/text.txt
grep -r --include="*.txt" three $D/tree | sort
grep -l node $D/*.txt
grep -n -m 3 "lattice orbit" $D/text.txt
grep -z -c . $D/data.bin
grep -b -o "0199. [a-m]*" $D/text.txt
rc grep nothing-such $D/text.txt 2> /dev/null
grep -F -x -f $D/numbers.txt $D/numbers.txt | wc -l
grep -q mesh < $D/text.txt
(
    cd $D
    grep -R view . | wc -l
)
''', core=True)

case("cmp-diff", r'''
cp $D/text.txt other
sed -i 77s/^/X/ other
rc cmp $D/text.txt other 2> /dev/null
rc diff $D/text.txt other 2> /dev/null
rc diff -u --label a --label b $D/text.txt other 2> /dev/null > $D/patch.diff
cp -r $D/tree copy
diff -r $D/tree copy
echo x >> copy/a/one.txt
rc diff -r -q $D/tree copy 2> /dev/null
cmp -i 5:5 -n 100 $D/text.txt other
diff $D/text.txt - < $D/text.txt
''', needs="diff")

case("fifo-and-special", r'''
# A service may refuse to make them.
mkfifo $D/fifo 2> /dev/null || true
mknod $D/null c 1 3 2> /dev/null || true
rm -f $D/fifo $D/null
mkfifo pipe
cat $D/text.txt > pipe &
wc -l < pipe
wait
''')

case("mktemp-shred", r'''
t=$(mktemp -p $D)
echo content > "$t"
cat "$t"
d=$(mktemp -d -p $D)
touch "$d/x"
rm -r "$d" "$t"
shred -u -n 1 $D/secret
ls $D
''')

case("names", r'''
cd $D
long=$(printf 'n%.0s' $(seq 255))
echo long > $long
cat $long
rc touch ${long}x 2> /dev/null
printf x > $'new\nline'
printf y > ' lead trail '
printf z > '*?[a]'
printf q > "quote'\"back\\slash"
printf u > "日本語-ß-🙂"
printf b > $'\xff\xfe-bytes'
ls -b
cat $'new\nline' ' lead trail ' '*?[a]' "quote'\"back\\slash" "日本語-ß-🙂" $'\xff\xfe-bytes'
rm '*?[a]'
mv ' lead trail ' trimmed
echo -- > -dash
cat ./-dash
printf c > c:olon
cat c:olon
printf p > 100%25
ls 100*
''', core=True)

case("deep-path", r'''
cd $D
for i in $(seq 20); do
    mkdir level-$i-with-a-rather-long-name
    cd level-$i-with-a-rather-long-name
done
echo bottom > file
cat $PWD/file
pwd
cd $D
find . -name file -exec cat {} \;
rm -r level-1-with-a-rather-long-name/level-2-with-a-rather-long-name
ls level-1-with-a-rather-long-name
''')

case("many-files", r'''
mkdir $D/many
cd $D/many
for i in $(seq 1000); do echo $i > f$i; done
ls | wc -l
cat * | paste -sd+ | bc
rm f?00
ls -f | wc -l
cat f999
find . -type f | wc -l
cd ..
rm -r many
''', needs="bc")

case("dot-dot", r'''
cd $D/tree/a
cat ../../text.txt | wc -l
ls ..
cat ./../b/./four.dat | wc -l
cat $D/tree/../tree//a///one.txt | wc -l
cd ../..
pwd
cd -
cd $D/dirlink/a
pwd
pwd -P
ls ../b
''', core=True)

case("leave-and-return", r'''
cd $D/..
ls -d "$(basename $D)" > /dev/null
cd "$D"
pwd
cd /
cat $D/no-newline
cd $W
ls
''', core=True)

case("xattr-acl", r'''
cp --preserve=mode,timestamps $D/run.sh $D/run2.sh
stat -c "%a %Y" $D/run2.sh
cp -p $D/secret $D/secret2
stat -c %a $D/secret2
''')

case("timeout-nohup-env", r'''
timeout 20 cat $D/no-newline
nice -n 5 wc -c $D/text.txt
nohup cat $D/no-newline 2> /dev/null
xargs -a $D/numbers.txt -n 5000 -s 100000 | wc -w
stdbuf -o0 cat $D/no-newline
setsid cat $D/no-newline
''')

case("environment-cleared", "env -i PATH=$PATH cat $D/no-newline")
