package lint

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the repository, seen from this package's folder, where go test runs it.
const root = "../.."

// TestRepository runs every rule on the repository.
func TestRepository(t *testing.T) {
	sources, err := readTree(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range []string{"internal/lint/lint_test.go", "hw/clock/clock.go"} {
		if !slices.ContainsFunc(sources, func(s *source) bool { return s.path == known }) {
			t.Errorf("%s is not among the %d files read: the rules would pass over the tree", known, len(sources))
		}
	}
	document, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	drawing, err := parseArrows(string(document))
	if err != nil {
		t.Fatalf("ARCHITECTURE.md: %v", err)
	}
	rules := map[string]func([]*source) []finding{
		"arrows":       drawing.check,
		"sans-IO":      checkSansIO,
		"length":       checkLength,
		"docs":         checkDocs,
		"placeholders": checkPlaceholders,
		"skips":        checkSkips,
	}
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) { report(t, rule(sources)) })
	}
	t.Run("links", func(t *testing.T) {
		core := corePackages(sources)
		if len(core) == 0 {
			t.Fatal("no package of the library was found")
		}
		packages, err := listDeps(root, core)
		if err != nil {
			t.Fatal(err)
		}
		report(t, checkLinks(sources, packages))
	})
}

func report(t *testing.T, findings []finding) {
	t.Helper()
	slices.SortFunc(findings, func(a, b finding) int {
		return cmp.Or(strings.Compare(a.path, b.path), cmp.Compare(a.line, b.line), strings.Compare(a.text, b.text))
	})
	for _, f := range findings {
		t.Error(f)
	}
}

// tree makes sources of an example in memory.
func tree(t *testing.T, files map[string]string) (sources []*source) {
	t.Helper()
	for name, text := range files {
		s, err := parseSource(name, text)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, s)
	}
	return sources
}

// expect compares findings with what each must begin with and contain: "path:line: ... words".
func expect(t *testing.T, got []finding, want ...string) {
	t.Helper()
	var texts []string
	for _, f := range got {
		texts = append(texts, f.String())
	}
	slices.Sort(texts)
	slices.Sort(want)
	matches := len(texts) == len(want)
	for i := 0; matches && i < len(want); i++ {
		place, words, _ := strings.Cut(want[i], " ")
		matches = strings.HasPrefix(texts[i], place) && strings.Contains(texts[i], words)
	}
	if !matches {
		t.Errorf("found\n\t%s\nwant\n\t%s", strings.Join(texts, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// TestReadTree checks what is read and what is passed over.
func TestReadTree(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module x\n", "a/a.go": "package a\n", "a/tagged.go": "//go:build never\n\npackage a\n",
		"bpf/steer.bpf.c": "int x;\n", "bpf/vmlinux.h": "int y;\n", "scripts/test": "#!/bin/sh\n", ".ci/run": "#!/bin/sh\n",
		"a/testdata/bad.go": "not Go", ".git/x.go": "not Go", "nested/go.mod": "module y\n", "nested/n.go": "not Go",
		"README.md": "text", "a/data": "text",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	sources, err := readTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range sources {
		got = append(got, s.path)
	}
	want := []string{".ci/run", "a/a.go", "a/tagged.go", "bpf/steer.bpf.c", "scripts/test"}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
	if err := os.WriteFile(filepath.Join(dir, "a", "broken.go"), []byte("not Go"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := readTree(dir); err == nil {
		t.Error("a file that does not parse was passed over")
	}
}
