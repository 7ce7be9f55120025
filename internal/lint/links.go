package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// coreModules is all that a program gets linked with our library besides the standard library: each was judged, and a user of
// the library inherits each one's flaws.
var coreModules = []string{
	"github.com/cilium/ebpf",
	"golang.org/x/sys",
	"github.com/vishvananda/netlink",
	"github.com/vishvananda/netns",
}

// isCore says which packages make the library: runtime itself and what lies below. Sub-packages of runtime may be heavier,
// since who does not import them does not link them; xsk/asavie exists to link another implementation.
func isCore(pkg string) bool {
	if under(pkg, "xsk/asavie") {
		return false
	}
	return pkg == "runtime" || slices.ContainsFunc([]string{"dispatcher", "credit", "wire", "xsk", "bpf"},
		func(dir string) bool { return under(pkg, dir) })
}

// listed is a package as `go list -json` prints it.
type listed struct {
	ImportPath string
	Imports    []string
	Standard   bool
	Module     *struct{ Path string }
	Error      *struct{ Err string }
}

// listDeps lists the given packages of the module in root, and all that they import.
func listDeps(root string, packages []string) (map[string]listed, error) {
	arguments := []string{"list", "-e", "-deps", "-json=ImportPath,Imports,Standard,Module,Error"}
	for _, pkg := range packages {
		arguments = append(arguments, "./"+pkg)
	}
	command := exec.Command("go", arguments...)
	command.Dir, command.Stderr = root, os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	found := make(map[string]listed)
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var l listed
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, fmt.Errorf("decode the output of go list: %w", err)
		}
		if l.Error != nil {
			return nil, fmt.Errorf("go list: %s: %s", l.ImportPath, l.Error.Err)
		}
		found[l.ImportPath] = l
	}
}

// corePackages returns the folders of the core that have Go code beside tests.
func corePackages(sources []*source) (dirs []string) {
	for _, s := range sources {
		if s.isGo() && !s.isTest() && isCore(s.dir()) && !slices.Contains(dirs, s.dir()) {
			dirs = append(dirs, s.dir())
		}
	}
	return dirs
}

// checkLinks finds the imports by which the core links a module that is not on the list. It goes on from package to package as
// the linker does, and reports at the place where a package of ours starts the chain.
func checkLinks(sources []*source, packages map[string]listed) (findings []finding) {
	for _, s := range sources {
		if !s.isGo() || s.isTest() {
			continue
		}
		if _, linked := packages[modulePath+"/"+s.dir()]; !linked {
			continue
		}
		for importPath, pos := range s.imports() {
			if under(importPath, modulePath) {
				continue
			}
			if chain := foreignChain(importPath, packages, map[string]bool{}); chain != nil {
				findings = append(findings, s.at(pos, "the library would link %s; it may link the standard library, %s",
					strings.Join(chain, ", which imports "), strings.Join(coreModules, ", ")))
			}
		}
	}
	return findings
}

// foreignChain returns the imports that lead from a package to one of a module that is not on the list, or nil.
func foreignChain(importPath string, packages map[string]listed, seen map[string]bool) []string {
	pkg, found := packages[importPath]
	if !found || pkg.Standard || seen[importPath] { // not found: another platform's file
		return nil
	}
	seen[importPath] = true
	if pkg.Module == nil || !slices.Contains(coreModules, pkg.Module.Path) {
		return []string{importPath}
	}
	for _, next := range pkg.Imports {
		if chain := foreignChain(next, packages, seen); chain != nil {
			return append([]string{importPath}, chain...)
		}
	}
	return nil
}
