package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// modulePath is what the import path of each package of ours starts with.
const modulePath = "github.com/stillwater-rpc/stillwater"

// source is one file of the repository. Go files are parsed whatever their build constraints say, so that a rule
// cannot be dodged by a tag.
type source struct {
	path      string // relative to the root, with slashes
	text      string
	positions *token.FileSet
	syntax    *ast.File // nil unless it is Go
}

// finding is one breach of a rule.
type finding struct {
	path string
	line int
	text string // what is wrong, and the reason of the rule
}

// String is in the form that editors jump to.
func (f finding) String() string { return fmt.Sprintf("%s:%d: %s", f.path, f.line, f.text) }

func (s *source) dir() string     { return path.Dir(s.path) }
func (s *source) base() string    { return path.Base(s.path) }
func (s *source) isGo() bool      { return s.syntax != nil }
func (s *source) isTest() bool    { return strings.HasSuffix(s.path, "_test.go") }
func (s *source) lineCount() int  { return strings.Count(s.text, "\n") }
func (s *source) generated() bool { return s.isGo() && ast.IsGenerated(s.syntax) }

func (s *source) line(pos token.Pos) int { return s.positions.Position(pos).Line }

func (s *source) at(pos token.Pos, format string, args ...any) finding {
	return finding{path: s.path, line: s.line(pos), text: fmt.Sprintf(format, args...)}
}

// imports returns the path of each import with its position.
func (s *source) imports() map[string]token.Pos {
	found := make(map[string]token.Pos)
	for _, spec := range s.syntax.Imports {
		if importPath, err := strconv.Unquote(spec.Path.Value); err == nil { // the parser has checked it
			found[importPath] = spec.Pos()
		}
	}
	return found
}

// localName returns the package name under which a file sees an import; "" when it does not import it by a name. An
// unnamed import is taken to be called like its last element, major version apart.
func (s *source) localName(importPath string) string {
	for _, spec := range s.syntax.Imports {
		if got, err := strconv.Unquote(spec.Path.Value); err != nil || got != importPath {
			continue
		}
		switch {
		case spec.Name != nil:
			return spec.Name.Name
		case path.Base(importPath) == "v2":
			return path.Base(path.Dir(importPath))
		default:
			return path.Base(importPath)
		}
	}
	return ""
}

// parseSource makes a source of a file's text.
func parseSource(name, text string) (*source, error) {
	s := &source{path: name, text: text}
	if strings.HasSuffix(name, ".go") {
		s.positions = token.NewFileSet()
		syntax, err := parser.ParseFile(s.positions, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		s.syntax = syntax
	}
	return s, nil
}

// readTree reads the Go, C and shell sources below root. Nested modules live by rules of their own.
func readTree(root string) (sources []*source, err error) {
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		if entry.IsDir() {
			return enter(root, relative)
		}
		if !entry.Type().IsRegular() || !isSource(relative) {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		s, err := parseSource(relative, string(text))
		if err != nil {
			return err
		}
		sources = append(sources, s)
		return nil
	})
	return sources, err
}

func enter(root, dir string) error {
	base := path.Base(dir)
	if dir == "." || dir == ".ci" {
		return nil
	}
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || dir == "out" {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(root, dir, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func isSource(name string) bool {
	if slices.Contains([]string{".go", ".c", ".h", ".sh"}, path.Ext(name)) {
		return path.Base(name) != "vmlinux.h" // the kernel's own types, generated
	}
	return path.Ext(name) == "" && (path.Dir(name) == "scripts" || path.Dir(name) == ".ci")
}

// under reports whether a package or folder is dir or below it.
func under(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }
