//go:build ignore

// Command digest records in steer.sum what the committed objects were made of: the text, the flags, and the compiler.
package main

import (
	"crypto/sha256"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strings"
)

func main() {
	digest := sha256.New()
	for _, name := range []string{"steer.bpf.c", "generate.go"} {
		content, err := os.ReadFile(name)
		if err != nil {
			log.Fatal(err)
		}
		digest.Write(content)
	}
	version, err := exec.Command("clang", "--version").Output()
	if err != nil {
		log.Fatal(err)
	}
	first, _, _ := strings.Cut(string(version), "\n")
	sum := fmt.Sprintf("sha256 %x\nclang %s\n", digest.Sum(nil), first)
	if err := os.WriteFile("steer.sum", []byte(sum), 0o644); err != nil {
		log.Fatal(err)
	}
}
