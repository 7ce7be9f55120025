package child

import (
	"runtime"
	"runtime/metrics"
)

// heapObjects is the number of heap objects that this process has allocated so far. The metric alone counts a span of a P's cache
// when the span is full, so small numbers would come in steps of hundreds; reading the memory statistics empties these caches.
func heapObjects() uint64 {
	runtime.ReadMemStats(new(runtime.MemStats))
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
