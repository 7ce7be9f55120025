package lint

import (
	"fmt"
	"testing"
)

func TestSansIOImports(t *testing.T) {
	for _, importPath := range []string{
		"os", "os/exec", "net", "net/http", "log", "log/slog", "syscall", "golang.org/x/sys/unix", "crypto/rand",
	} {
		text := fmt.Sprintf("package x\n\nimport _ %q\n", importPath)
		expect(t, checkSansIO(tree(t, map[string]string{
			"credit/x.go": text, "credit/x_test.go": text, "dispatcher/loop_run.go": text, "dispatcher/loop.go": text,
			"runtime/x.go": text, "xsk/x.go": text,
		})), "credit/x.go:3: import of "+importPath+": cores do no IO")
	}
	expect(t, checkSansIO(tree(t, map[string]string{
		"wire/x.go":     "package x\n\nimport _ \"net/netip\"\n",
		"wire/y.go":     "package x\n\nimport . \"time\"\n",
		"wire/z.go":     "package x\n\nimport . \"math/rand/v2\"\n",
		"wire/logic.go": "package x\n\nimport _ \"osmosis/log\"\n",
	})), "wire/y.go:3: dot import of time", "wire/z.go:3: dot import of math/rand/v2")
}

func TestSansIONames(t *testing.T) {
	text := `package x

import (
	"context"
	mrand "math/rand/v2"
	"time"

	"` + modulePath + `/hw/clock"
)

//go:linkname nanotime runtime.nanotime
func nanotime() int64

var seeded = mrand.New(mrand.NewPCG(1, 2))

func bad(ctx context.Context, now clock.Time, d time.Duration) {
	go bad(ctx, now.Add(d), time.Second)
	_ = time.Now()
	_ = time.NewTimer
	_ = clock.Now()
	_ = mrand.IntN(3)
	_ = seeded.IntN(3)
	_, _ = context.WithTimeout(ctx, d)
	_ = now.After(now)
}
`
	want := func(path string) []string {
		return []string{
			path + ":11: go:linkname", path + ":17: go statement", path + ":18: time.Now: cores do no IO",
			path + ":19: time.NewTimer", path + ":20: hw/clock.Now", path + ":21: math/rand/v2.IntN",
			path + ":23: context.WithTimeout",
		}
	}
	for _, path := range []string{"credit/admit/x.go", "wire/x.go", "xsk/frame/x.go", "dispatcher/x.go"} {
		expect(t, checkSansIO(tree(t, map[string]string{path: text})), want(path)...)
	}
	for _, path := range []string{"dispatcher/loop.go", "dispatcher/loop_worker.go", "wire/x_test.go", "runtime/x.go", "xsk/x.go"} {
		expect(t, checkSansIO(tree(t, map[string]string{path: text})))
	}
}
