// Drives a 9P service with Plan 9's own client library and checks what it answers.
//
//	plan9 NETWORK ADDRESS TREE
//
// prints "ok NAME" or "failed NAME: why" for each check. The tree must be empty.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sort"

	"9fans.net/go/plan9"
	"9fans.net/go/plan9/client"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: plan9 NETWORK ADDRESS TREE")
		os.Exit(2)
	}
	conn, err := client.Dial(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Println("failed dial:", err)
		os.Exit(1)
	}
	tree, err := conn.Attach(nil, "glenda", os.Args[3])
	if err != nil {
		fmt.Println("failed attach:", err)
		os.Exit(1)
	}
	status := 0
	for _, check := range checks {
		if err := check.run(tree); err != nil {
			fmt.Printf("failed %s: %v\n", check.name, err)
			status = 1
		} else {
			fmt.Println("ok", check.name)
		}
	}
	os.Exit(status)
}

var content = bytes.Repeat([]byte("Plan 9 from Bell Labs\n"), 20_000)

// Each check builds on those before it.
var checks = []struct {
	name string
	run  func(*client.Fsys) error
}{
	{"authentication is not required", func(tree *client.Fsys) error {
		conn, err := client.Dial(os.Args[1], os.Args[2])
		if err != nil {
			return err
		}
		_, err = conn.Auth("glenda", os.Args[3])
		return refused(err, "authentication not required")
	}},
	{"create and write", func(tree *client.Fsys) error {
		fid, err := tree.Create("file", plan9.OWRITE, 0644)
		if err != nil {
			return err
		}
		defer fid.Close()
		n, err := fid.Write(content)
		if err == nil && n != len(content) {
			err = fmt.Errorf("%d of %d bytes", n, len(content))
		}
		return err
	}},
	{"read back", func(tree *client.Fsys) error {
		return holds(tree, "file", content)
	}},
	{"read at an offset", func(tree *client.Fsys) error {
		fid, err := tree.Open("file", plan9.OREAD)
		if err != nil {
			return err
		}
		defer fid.Close()
		part := make([]byte, 6)
		if _, err := fid.ReadAt(part, 22*1000); err != nil {
			return err
		}
		if string(part) != "Plan 9" {
			return fmt.Errorf("%q", part)
		}
		return nil
	}},
	{"create directories", func(tree *client.Fsys) error {
		for _, name := range []string{"d", "d/sub"} {
			fid, err := tree.Create(name, plan9.OREAD, plan9.DMDIR|0755)
			if err != nil {
				return err
			}
			fid.Close()
		}
		return nil
	}},
	{"list a directory of 500", func(tree *client.Fsys) error {
		want := []string{"sub"}
		for i := 0; i < 500; i++ {
			name := fmt.Sprintf("entry-%d", i)
			fid, err := tree.Create("d/"+name, plan9.OWRITE, 0644)
			if err != nil {
				return err
			}
			fid.Close()
			want = append(want, name)
		}
		fid, err := tree.Open("d", plan9.OREAD)
		if err != nil {
			return err
		}
		defer fid.Close()
		found, err := fid.Dirreadall()
		if err != nil {
			return err
		}
		var names []string
		for _, dir := range found {
			names = append(names, dir.Name)
			if (dir.Mode&plan9.DMDIR != 0) != (dir.Name == "sub") {
				return fmt.Errorf("%s has mode %v", dir.Name, dir.Mode)
			}
		}
		sort.Strings(names)
		sort.Strings(want)
		if fmt.Sprint(names) != fmt.Sprint(want) {
			return fmt.Errorf("%d entries: %v", len(names), names)
		}
		return nil
	}},
	{"stat", func(tree *client.Fsys) error {
		dir, err := tree.Stat("file")
		if err != nil {
			return err
		}
		if dir.Name != "file" || dir.Length != uint64(len(content)) || dir.Mode != 0644 {
			return fmt.Errorf("%v", dir)
		}
		dir, err = tree.Stat("d")
		if err != nil {
			return err
		}
		if dir.Mode&plan9.DMDIR == 0 || dir.Qid.Type&plan9.QTDIR == 0 {
			return fmt.Errorf("%v", dir)
		}
		return nil
	}},
	{"wstat: mode, mtime and length", func(tree *client.Fsys) error {
		var change plan9.Dir
		change.Null()
		change.Mode, change.Mtime, change.Length = 0600, 1_000_000_000, 22
		if err := tree.Wstat("file", &change); err != nil {
			return err
		}
		dir, err := tree.Stat("file")
		if err != nil {
			return err
		}
		if dir.Mode != 0600 || dir.Mtime != 1_000_000_000 || dir.Length != 22 {
			return fmt.Errorf("%v", dir)
		}
		return holds(tree, "file", content[:22])
	}},
	{"wstat: rename", func(tree *client.Fsys) error {
		var change plan9.Dir
		change.Null()
		change.Name = "renamed"
		if err := tree.Wstat("file", &change); err != nil {
			return err
		}
		if _, err := tree.Stat("file"); err == nil {
			return fmt.Errorf("the old name is still there")
		}
		return holds(tree, "renamed", content[:22])
	}},
	{"truncate at open", func(tree *client.Fsys) error {
		fid, err := tree.Open("renamed", plan9.OWRITE|plan9.OTRUNC)
		if err != nil {
			return err
		}
		if _, err := fid.Write([]byte("short")); err != nil {
			return err
		}
		fid.Close()
		return holds(tree, "renamed", []byte("short"))
	}},
	{"remove", func(tree *client.Fsys) error {
		if err := refused(tree.Remove("d"), "Directory not empty"); err != nil {
			return err
		}
		return tree.Remove("renamed")
	}},
	{"what is missing is an error", func(tree *client.Fsys) error {
		_, err := tree.Open("renamed", plan9.OREAD)
		return refused(err, "No such file or directory")
	}},
	{"what exists is not created again", func(tree *client.Fsys) error {
		_, err := tree.Create("d", plan9.OREAD, 0644)
		return refused(err, "File exists")
	}},
}

func holds(tree *client.Fsys, name string, want []byte) error {
	fid, err := tree.Open(name, plan9.OREAD)
	if err != nil {
		return err
	}
	defer fid.Close()
	found, err := io.ReadAll(fid)
	if err == nil && !bytes.Equal(found, want) {
		err = fmt.Errorf("%s holds %d other bytes", name, len(found))
	}
	return err
}

func refused(err error, want string) error {
	if err == nil {
		return fmt.Errorf("not refused")
	}
	if err.Error() != want {
		return fmt.Errorf("refused with %q, not %q", err, want)
	}
	return nil
}
