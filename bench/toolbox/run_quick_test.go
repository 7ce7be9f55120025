package toolbox

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestQuick(t *testing.T) {
	ids := strings.Fields(os.Getenv("IDS"))
	if len(ids) == 0 {
		t.Skip()
	}
	size := Small()
	if os.Getenv("FULL") != "" {
		size = Full()
		size.Seeds = 1
	}
	b := time.Now()
	if _, err := Run(t.Context(), Options{IDs: ids, Size: size, Out: os.Stdout, Parallel: 1}); err != nil {
		t.Fatal(err)
	}
	fmt.Println(time.Since(b))
}
