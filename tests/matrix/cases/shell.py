"""Bash and dash themselves: redirections, descriptors, globs, jobs."""

from matrix.case import Registry

case = Registry("shell")

case("redirect-out", r'''
echo one > $D/out
echo two >> $D/out
printf three >> $D/out
: > $D/text.txt
echo x > $D/tree/a/one.txt
cat $D/out
''', core=True)

case("redirect-in", r'''
wc -l < $D/text.txt
tr a-z A-Z < $D/no-newline
read -r first < $D/text.txt
echo "$first"
cat < $D/link | tail -1
rc cat < /dev/null
x=$(< $D/no-newline)
echo "$x"
mapfile -t lines < $D/table.csv
echo ${#lines[@]} ${lines[3]}
''', core=True)

case("redirect-both", r'''
exec 5<> $D/text.txt
read -r -u 5 line
echo "$line"
echo OVERWRITTEN >&5
exec 5>&-
head -3 $D/text.txt
echo new 1<> $D/created
''')

case("redirect-descriptors", r'''
exec 3> $D/three 4>> $D/empty
echo a >&3
echo b >&4
echo c >&3
exec 3>&- 4>&-
cat $D/three $D/empty
exec 6< $D/text.txt
head -c 10 <&6
exec 7<&6 6<&-
read -r -u 7 x
echo "$x"
exec 7<&-
{
    echo to-out
    echo to-err >&2
} > $D/o 2> $D/e
{
    echo p
    echo q >&2
} > $D/pq 2>&1
echo all &> $D/all
echo more &>> $D/all
''', core=True)

case("exec-stdout", r'''
exec > $D/log
echo first
ls $D | head -2
printf "%s\n" last
exec > /dev/null
''', core=True)

case("group-redirect", r'''
{
    echo a
    cat $D/no-newline
    printf "\n%d\n" 7
    date -d @0
} > $D/group
(
    echo sub
    exec echo replaced
) >> $D/group
for i in 1 2 3; do
    echo loop $i
    ls $D/tree/a
done > $D/loop
while read -r a b; do echo "$b $a"; done < $D/table.csv > $D/turned
cat $D/group
''', core=True)

case("here-documents", r'''
cat > $D/doc << END
line of $((6 * 7))
  indented
END
cat >> $D/doc <<- 'END'
	no $expansion
	END
cat <<< "$(cat $D/doc)" > $D/doc2
cmp $D/doc $D/doc2 && echo same
''')

case("while-read", r'''
n=0
while IFS=, read -r name count share; do
    n=$((n + 1))
    last=$name
done < $D/table.csv
echo $n $last
sum=0
while read -r v; do sum=$((sum + v)); done < <(head -100 $D/numbers.txt)
echo $sum
while read -r -n 5 part; do echo "[$part]"; done < $D/no-newline
''')

case("append-subshells", r'''
for i in $(seq 50); do (echo "from $i" >> $D/log); done
wc -l < $D/log
sort -u $D/log | wc -l
''', core=True)

case("append-background", r'''
for i in $(seq 8); do (for j in $(seq 10); do echo "writer $i line $j" >> $D/log; done) & done
wait
wc -l < $D/log
sort -o $D/log $D/log
''', core=True)

case("background-writers", r'''
for i in 1 2 3 4; do (seq $((i * 1000)) > $D/seq$i) & done
wait
wc -l $D/seq?
seq 10 > $D/bg &
wait $!
cat $D/bg
''')

case("shared-offset", r'''
{
    echo parent
    (echo child)
    echo parent again
    bash -c "echo grandchild"
    dash -c "echo dash"
} > $D/order
cat $D/order
exec 3< $D/numbers.txt
head -n 1 <&3 > /dev/null
read -r x <&3 || x=none
exec 3<&-
{
    read -r a
    read -r b
    cat
} < $D/table.csv | wc -l
exec 8> $D/w
echo 1 >&8
(echo 2 >&8)
echo 3 >&8
exec 8>&-
cat $D/w
''', core=True)

case("inherited-by-programs", r'''
awk "{print \$1}" < $D/text.txt > $D/col
sort < $D/col | tail -1
python3 -c "import sys; sys.stdout.write(sys.stdin.read()[:20])" < $D/text.txt > $D/py
cat $D/py
perl -ne "print if 1..2" < $D/text.txt >> $D/py
sed -n 3p < $D/text.txt 2>> $D/err
cat $D/py
''', core=True)

case("pipes", r'''
cat $D/text.txt | tr -d 0-9 | sort | uniq -c | sort -rn | head -5 > $D/top
cat $D/top
cat $D/big.bin | tee >(sha256sum > $D/sum) | wc -c
sleep 0.3
diff <(cat $D/text.txt) <(cat $D/link) && echo same
yes | head -c 3000000 > $D/yes
sha256sum < $D/yes
''')

case("globs", r'''
cd $D
echo *.txt
echo tree/*/*
shopt -s globstar nullglob dotglob
echo **/*.txt
echo $D/t*
echo none*
for f in tree/*; do echo "[$f]"; done
bash -O extglob -c "echo !(*.bin)"
[[ -f text.txt && -d tree && -L link && ! -e gone ]] && echo tests
compgen -f tree/
''', core=True)

case("noclobber", r'''
set -C
rc bash -c "set -C; echo x > $D/text.txt" 2> /dev/null
echo y >| $D/text.txt
echo z > $D/fresh
cat $D/text.txt $D/fresh
''')

case("source-and-run", r'''
echo "answer=42; helper() { echo helped \$1; }" > $D/lib.sh
. $D/lib.sh
helper $answer
bash $D/run.sh x
cd $D
bash run.sh y
echo "echo from stdin" > $D/s
bash < $D/s
dash $D/lib.sh
bash -c ". ./lib.sh; helper 1"
''', needs="dash")

case("dash-redirects", r'''
dash -ec 'echo a > $D/a; echo b >> $D/a; cat < $D/a; exec 3> $D/three; echo x >&3; exec 3>&-; { echo g; echo h; } > $D/gh; while read -r l; do echo got $l; done < $D/a; (cd $D/tree; ls; pwd); read -r z < $D/no-newline || echo "$z"; echo $D/*.txt'
''', needs="dash")

case("cd-relative", r'''
cd $D
cat text.txt | head -1
echo rel > relative
cd tree
ls
cat ../relative
mkdir sub
cd sub
echo deep > deep.txt
cd ../..
cat tree/sub/deep.txt
python3 -c "print(open('relative').read(), end=''); import os; print(os.getcwd())"
bash -c "pwd; cat relative"
rm relative
pushd tree/a > /dev/null
cat one.txt | wc -l
popd > /dev/null
sh -c "cd tree && ls | wc -l"
''', core=True)

case("cd-removed", r'''
mkdir $D/doomed
cd $D/doomed
rmdir $D/doomed
rc touch x 2> /dev/null
cd $D
ls | wc -l
''')

case("overwrite-while-reading", r'''
cat $D/text.txt | head -c 5000 > $D/copy
exec 3< $D/copy
head -c 5 <&3
echo SHORT > $D/copy
exec 3<&-
cat $D/copy
exec 4< $D/no-newline
rm $D/no-newline
read -r line <&4 || echo "$line"
exec 4<&-
ls $D
''')

case("removed-then-inherited", r'''
exec 4< $D/no-newline
rm $D/no-newline
cat <&4
''')

case("descriptor-names", r'''
head -2 /dev/stdin < $D/text.txt
cat /dev/fd/3 3< $D/no-newline
cat /proc/self/fd/4 4< $D/table.csv | tail -1
echo through the name > $D/out
bash -c 'echo appended >> /dev/stdout' >> $D/out
python3 -c 'open("/dev/stdout", "a").write("by name\n")' >> $D/out
tee /dev/fd/5 5>> $D/out < $D/no-newline
cp /dev/stdin $D/copy < $D/data.bin
cmp $D/copy $D/data.bin
readlink /proc/self/fd/6 6< $D/text.txt
cat $D/out
''')

case("errors", r'''
rc bash -c "echo x > $D/absent/file" 2> /dev/null
rc bash -c "cat < $D/absent" 2> /dev/null
rc bash -c "echo x > $D/tree" 2> /dev/null
rc bash -c "cd $D/text.txt" 2> /dev/null
rc bash -c "cd $D/absent" 2> /dev/null
rc bash -c ". $D/absent" 2> /dev/null
''')

case("large-redirect", r'''
head -c 9000000 /dev/zero | tr "\0" "z" > $D/zs
sha256sum < $D/zs
cat $D/zs $D/zs > $D/zz
wc -c < $D/zz
seq 200000 > $D/seq
sha256sum $D/seq | cut -c1-64
''', core=True)

case("trap-and-kill", r'''
trap "echo trapped >> $D/trace" USR1
kill -USR1 $$
cat $D/trace
(
    trap "echo bye > $D/bye" EXIT
    exit 0
)
cat $D/bye
: > $D/sleeper
sleep 60 >> $D/sleeper &
kill $!
wait $! 2> /dev/null || echo killed
ls $D/sleeper
''')

case("coproc-and-procsub", r'''
coproc sed -u s/^/got-/
echo line >&"${COPROC[1]}"
read -r -u "${COPROC[0]}" answer
echo "$answer"
cat <(head -1 $D/text.txt) <(tail -1 $D/text.txt)
echo routed > >(cat > $D/via-procsub)
sleep 0.3
cat $D/via-procsub
''')
