//go:build linux

package bpf

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestObjectsAreFresh compares what the committed objects were made of with the text and flags as they are; and, where
// the very compiler is at hand that made them, makes them again and compares every byte.
func TestObjectsAreFresh(t *testing.T) {
	digest := sha256.New()
	for _, name := range []string{"steer.bpf.c", "generate.go"} { // as digest.go does
		digest.Write(mustRead(t, name))
	}
	recorded := string(mustRead(t, "steer.sum"))
	if want := fmt.Sprintf("sha256 %x\n", digest.Sum(nil)); !strings.HasPrefix(recorded, want) {
		t.Fatalf("the objects are older than steer.bpf.c or generate.go: run `go generate ./bpf` and commit what it writes\n"+
			"recorded %q\nwant     %q", recorded, want)
	}
	_, pinned, _ := strings.Cut(recorded, "clang ")
	pinned = strings.TrimSpace(pinned)
	installed, err := exec.Command("clang", "--version").Output()
	if have, _, _ := strings.Cut(string(installed), "\n"); err != nil || have != pinned {
		t.Logf("bytes not compared: the objects are by %q, here is %q (%v)", pinned, have, err)
		return
	}
	regenerate(t)
}

// regenerate runs the generate line of generate.go with another output folder.
func regenerate(t *testing.T) {
	t.Helper()
	_, line, found := strings.Cut(string(mustRead(t, "generate.go")), "//go:generate go tool bpf2go ")
	if !found {
		t.Fatal("generate.go has no bpf2go line")
	}
	line, _, _ = strings.Cut(line, "\n")
	// The one quoted argument is the compiler's flags.
	before, rest, _ := strings.Cut(line, `"`)
	flags, after, _ := strings.Cut(rest, `"`)
	folder := t.TempDir()
	args := append([]string{"tool", "bpf2go", "-output-dir", folder}, strings.Fields(before)...)
	args = append(append(args, flags), strings.Fields(after)...)
	command := exec.Command("go", args...)
	command.Env = append(os.Environ(), "GOPACKAGE=bpf")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("regenerate: %v\n%s", err, output)
	}
	for _, name := range []string{"steer_bpfel.go", "steer_bpfel.o", "steer_bpfeb.go", "steer_bpfeb.o"} {
		if !bytes.Equal(mustRead(t, name), mustRead(t, filepath.Join(folder, name))) {
			t.Errorf("%s is not what the text makes: run `go generate ./bpf` and commit what it writes", name)
		}
	}
}

func mustRead(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
