package lint

import (
	"go/ast"
	"path"
	"slices"
	"strings"
)

// sansIOReason stands in each finding of the rule.
const sansIOReason = "cores do no IO, so that the simulator runs the production code and a failure replays from its seed"

// sansIODirs are the cores; the dispatcher's loop is its shell.
var sansIODirs = []string{"credit", "wire", "xsk/frame", "dispatcher"}

// bannedImports are whole packages with their subtrees; net/netip alone is free of IO.
var bannedImports = []string{
	"os", "net", "log", "syscall", "golang.org/x/sys", "crypto/rand", "time/tzdata", "runtime/trace",
}

// bannedNames are what reads a clock or starts a timer.
var bannedNames = map[string][]string{
	"time": {
		"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick",
	},
	"context":                {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause"},
	modulePath + "/hw/clock": {"Now"},
}

// seededNames are all that math/rand may be used for: a generator with a seed that somebody passes in. What else it
// exports draws from one that the process seeds by itself.
var seededNames = []string{
	"New", "NewSource", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "Source64", "PCG", "ChaCha8", "Zipf",
}

func isSansIO(s *source) bool {
	if !s.isGo() || s.isTest() {
		return false
	}
	if loop, err := path.Match("dispatcher/loop*.go", s.path); err == nil && loop {
		return false
	}
	return slices.ContainsFunc(sansIODirs, func(dir string) bool { return under(s.dir(), dir) })
}

// checkSansIO finds IO, clocks, goroutines and unseeded chance in the cores.
func checkSansIO(sources []*source) (findings []finding) {
	for _, s := range sources {
		if !isSansIO(s) {
			continue
		}
		findings = append(findings, bannedImportsOf(s)...)
		ast.Inspect(s.syntax, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.GoStmt:
				findings = append(findings, s.at(node.Pos(), "go statement: %s", sansIOReason))
			case *ast.SelectorExpr:
				if name := bannedSelector(s, node); name != "" {
					findings = append(findings, s.at(node.Pos(), "%s: %s", name, sansIOReason))
				}
			case *ast.Comment:
				if strings.HasPrefix(node.Text, "//go:linkname ") {
					findings = append(findings, s.at(node.Pos(), "go:linkname can hide a clock: %s", sansIOReason))
				}
			}
			return true
		})
	}
	return findings
}

func bannedImportsOf(s *source) (findings []finding) {
	for importPath, pos := range s.imports() {
		banned := slices.ContainsFunc(bannedImports, func(dir string) bool { return under(importPath, dir) })
		_, partly := bannedNames[importPath]
		switch {
		case banned && importPath != "net/netip":
			findings = append(findings, s.at(pos, "import of %s: %s", importPath, sansIOReason))
		case (partly || isRand(importPath)) && s.localName(importPath) == ".":
			findings = append(findings, s.at(pos, "dot import of %s hides its clock: %s", importPath, sansIOReason))
		}
	}
	return findings
}

func isRand(importPath string) bool { return importPath == "math/rand" || importPath == "math/rand/v2" }

// bannedSelector returns the full name of a selector that reads a clock or draws unseeded chance, or "".
func bannedSelector(s *source, selector *ast.SelectorExpr) string {
	qualifier, ok := selector.X.(*ast.Ident)
	if !ok {
		return ""
	}
	name := selector.Sel.Name
	for importPath := range s.imports() {
		if s.localName(importPath) != qualifier.Name {
			continue
		}
		if slices.Contains(bannedNames[importPath], name) || isRand(importPath) && !slices.Contains(seededNames, name) {
			return importPath + "." + name
		}
	}
	return ""
}
