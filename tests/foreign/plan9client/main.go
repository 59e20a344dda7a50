// A 9P2000 client that is not ours: 9fans.net/go/plan9/client. It lists, reads, writes, renames and
// removes through a service, and prints what it saw.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"sort"

	"9fans.net/go/plan9"
	"9fans.net/go/plan9/client"
)

func check(err error, doing string) {
	if err != nil {
		log.Fatalf("%s: %v", doing, err)
	}
}

func main() {
	conn, err := net.Dial(os.Args[1], os.Args[2])
	check(err, "dial")
	c, err := client.NewConn(conn)
	check(err, "version")
	fs, err := c.Attach(nil, "user", "")
	check(err, "attach")

	dir, err := fs.Open("far", plan9.OREAD)
	check(err, "open the export")
	entries, err := dir.Dirreadall()
	check(err, "list")
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name < entries[j].Name })
	for _, entry := range entries {
		fmt.Println(entry.Name, entry.Length, entry.Mode&plan9.DMDIR != 0)
	}
	check(dir.Close(), "close")

	file, err := fs.Open("far/large", plan9.OREAD)
	check(err, "open")
	data, err := io.ReadAll(file)
	check(err, "read")
	fmt.Println("read", len(data))
	check(file.Close(), "close")

	out, err := fs.Create("far/copy", plan9.OWRITE, 0644)
	check(err, "create")
	n, err := out.Write(data)
	check(err, "write")
	fmt.Println("wrote", n)
	check(out.Close(), "close")

	stat, err := fs.Stat("far/copy")
	check(err, "stat")
	fmt.Println(stat.Name, stat.Length)
	made, err := fs.Create("far/made", plan9.OREAD, plan9.DMDIR|0755)
	check(err, "mkdir")
	check(made.Close(), "close")
	rename := plan9.Dir{}
	rename.Null()
	rename.Name = "renamed"
	check(fs.Wstat("far/made", &rename), "rename")
	check(fs.Remove("far/renamed"), "remove")
	_, err = fs.Stat("far/absent")
	fmt.Println("absent:", err)
}
