//go:build linux && !portable

package main

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// groupID is the number of a group; of none it is root's.
func groupID(name string) (int, error) {
	if name == "" {
		return 0, nil
	}
	if id, err := strconv.ParseUint(name, 10, 31); err == nil {
		return int(id), nil
	}
	group, err := user.LookupGroup(name)
	if err != nil {
		return 0, usageError("--group %s: there is no such group; give the name or the number of one", name)
	}
	return strconv.Atoi(group.Gid)
}

// blockedAt finds the first folder above the pins that a group has no way through. A BPF file system that systemd mounts is one.
func blockedAt(dir string, group int) string {
	if group == 0 {
		return ""
	}
	for above := filepath.Dir(dir); ; above = filepath.Dir(above) {
		about, err := os.Stat(above)
		if err != nil {
			return "" // whoever may not look need not be told
		}
		mode := about.Mode().Perm()
		owned := about.Sys().(*syscall.Stat_t).Gid == uint32(group) && mode&0o010 != 0
		if mode&0o001 == 0 && !owned {
			return above
		}
		if above == filepath.Dir(above) {
			return ""
		}
	}
}
