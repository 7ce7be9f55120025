package lint

import (
	"fmt"
	"strings"
	"testing"
)

// drawing has every form of arrow that the rule knows.
const drawing = "# Title\n\n## 4. Else\n```\nnot ─> this\n```\n\n## 5. Arrows\n\n```\n" +
	"cmd ─> everything         bench ─> runtime, hw\n" +
	"runtime ─> dispatcher, xsk, hw\n" +
	"dispatcher ─> wire, xsk/frame, hw/clock       credit ─> hw/clock\n" +
	"wire, xsk/frame, hw/* ─> nothing of ours         xsk ─> xsk/frame\n" +
	"never: dispatcher ─> xsk; credit <-> wire\n" +
	"```\n"

func importing(pkg, target string) string {
	return fmt.Sprintf("package %s\n\nimport _ %q\n", pkg, modulePath+"/"+target)
}

func TestArrows(t *testing.T) {
	a, err := parseArrows(drawing)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		file, target string
		want         string // "" is allowed
	}{
		{"cmd/stillwater/main.go", "credit", ""},
		{"bench/load/x.go", "runtime/sim", ""},
		{"bench/load/x.go", "bench/lab", ""},
		{"bench/load/x.go", "hw/clock", ""},
		{"bench/load/x.go", "wire", "no arrow bench ─> wire"},
		{"runtime/x.go", "xsk/frame", ""},
		{"runtime/x.go", "xsk/asavie", ""},
		{"runtime/x.go", "bench/lab", "no arrow runtime ─> bench/lab"},
		{"runtime/x_test.go", "bench/lab", ""},
		{"runtime/x.go", "bench/lab/labtest", "no arrow runtime ─> bench/lab/labtest"},
		{"runtime/x_test.go", "bench/lab/labtest", ""},
		{"runtime/x_test.go", "bench/load", "no arrow runtime ─> bench/load"},
		{"dispatcher/x.go", "xsk/frame", ""},
		{"dispatcher/x.go", "wire/session", ""},
		{"dispatcher/x.go", "hw/clock", ""},
		{"dispatcher/x.go", "hw/report", "no arrow dispatcher ─> hw/report"},
		{"dispatcher/x.go", "xsk", "never dispatcher ─> xsk"},
		{"dispatcher/x.go", "xsk/xsktest", "never dispatcher ─> xsk"},
		{"dispatcher/x_test.go", "xsk/xsktest", ""},
		{"credit/admit/x.go", "credit", ""},
		{"credit/x.go", "wire", "never credit ─> wire"},
		{"wire/x.go", "credit", "never wire ─> credit"},
		{"wire/session/x.go", "wire", ""},
		{"wire/x.go", "hw/clock", "no arrow wire ─> hw/clock"},
		{"xsk/x.go", "xsk/frame", ""},
		{"xsk/asavie/x.go", "xsk", ""},
		{"xsk/frame/x.go", "xsk", "no arrow xsk/frame ─> xsk"},
		{"hw/report/x.go", "hw/cpu", "no arrow hw/* ─> hw/cpu"},
		{"hw/clock/x.go", "hw/cpu", "no arrow hw/* ─> hw/cpu"},
		{"hw/nic/x_test.go", "hw/nic", ""},
		{"examples/x.go", "runtime", "the folder has no arrow"},
		{"wire/x_test.go", "internal/seedtest", ""},
		{"wire/x.go", "internal/seedtest", "no arrow wire ─> internal/seedtest"},
		{"wire/x_test.go", "internal/secret", "no arrow wire ─> internal/secret"},
		{"runtime/x.go", "internal/secret", "no arrow runtime ─> internal/secret"},
	} {
		findings := a.check(tree(t, map[string]string{test.file: importing("x", test.target)}))
		if test.want == "" {
			if len(findings) > 0 {
				t.Errorf("unexpected: %v", findings)
			}
			continue
		}
		expect(t, findings, fmt.Sprintf("%s:3: %s", test.file, test.want))
	}
	// Other modules are no concern of the arrows, nor are files that are no Go.
	expect(t, a.check(tree(t, map[string]string{
		"wire/x.go": "package wire\n\nimport _ \"golang.org/x/sys/unix\"\n", "bpf/x.c": "int x;\n",
	})))
}

// TestArrowsOfNothingUnreadable checks that a drawing that cannot be read is an error and not a smaller set of rules.
func TestArrowsOfNothingUnreadable(t *testing.T) {
	for name, document := range map[string]string{
		"no section":       "# Title\n",
		"ASCII arrow":      strings.Replace(drawing, "cmd ─> everything", "cmd -> everything", 1),
		"words":            strings.Replace(drawing, "never: ", "but not: ", 1),
		"odd prohibition":  strings.Replace(drawing, "credit <-> wire", "credit and wire", 1),
		"no drawing there": "# Title\n\n## 5. Arrows\n\ntext\n",
	} {
		if _, err := parseArrows(document); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestLinks(t *testing.T) {
	module := func(path string) *struct{ Path string } { return &struct{ Path string }{path} }
	packages := map[string]listed{
		modulePath + "/runtime":       {Module: module(modulePath)},
		modulePath + "/wire":          {Module: module(modulePath)},
		"fmt":                         {Standard: true},
		"github.com/cilium/ebpf/link": {Module: module("github.com/cilium/ebpf"), Imports: []string{"fmt"}},
		"github.com/vishvananda/netlink": {
			Module: module("github.com/vishvananda/netlink"), Imports: []string{"fmt", "example.com/heavy/sub"},
		},
		"example.com/heavy/sub": {Module: module("example.com/heavy")},
	}
	findings := checkLinks(tree(t, map[string]string{
		"runtime/x.go": "package x\n\nimport (\n\t_ \"fmt\"\n\t_ \"github.com/cilium/ebpf/link\"\n" +
			"\t_ \"github.com/vishvananda/netlink\"\n\t_ \"" + modulePath + "/wire\"\n)\n",
		"runtime/x_test.go":    "package x\n\nimport _ \"example.com/heavy/sub\"\n",
		"runtime/grpcapi/x.go": "package x\n\nimport _ \"example.com/heavy/sub\"\n",
		"wire/x.go":            "package x\n\nimport _ \"example.com/heavy/sub\"\n",
	}), packages)
	expect(t, findings,
		"runtime/x.go:6: would link github.com/vishvananda/netlink, which imports example.com/heavy/sub;",
		"wire/x.go:3: would link example.com/heavy/sub;")
}

func TestIsCore(t *testing.T) {
	for pkg, want := range map[string]bool{
		"runtime": true, "runtime/grpcapi": false, "wire": true, "wire/session": true, "xsk": true, "xsk/frame": true,
		"xsk/asavie": false, "bpf": true, "credit/admit": true, "dispatcher": true, "bench/lab": false, "cmd/stillwater": false,
	} {
		if got := isCore(pkg); got != want {
			t.Errorf("isCore(%q) is %t", pkg, got)
		}
	}
}

// TestListDeps runs the real tool on this package, whose closure is known.
func TestListDeps(t *testing.T) {
	packages, err := listDeps(root, []string{"internal/lint"})
	if err != nil {
		t.Fatal(err)
	}
	if own := packages[modulePath+"/internal/lint"]; own.Module == nil || own.Module.Path != modulePath || own.Standard {
		t.Errorf("this package is listed as %+v", own)
	}
	if !packages["go/ast"].Standard {
		t.Errorf("go/ast is listed as %+v", packages["go/ast"])
	}
	if _, err := listDeps(root, []string{"nonexistent"}); err == nil {
		t.Error("a package that does not exist was listed")
	}
}
