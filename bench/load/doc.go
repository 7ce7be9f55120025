// Package load generates load and measures what came back.
//
// It knows nothing of the runtime: it starts requests through an [Issuer] and gets each one back through [Op.Done].
//
// [OpenLoop] asks the open question (users who do not wait for each other). A request is due at an instant that the
// arrival process names, its latency counts from that instant, and a generator that comes late issues late: it never
// skips, so a stalled server shows as the latency that users would see (no coordinated omission). The generator reports
// its own lateness, and a run whose schedule it could not keep says so. [ClosedLoop] asks the closed question (a fixed
// number of requests outstanding), which is right for echo rates and for capacity, and wrong for latency under load.
//
// A run counts the requests that were due within its window. Load goes on before it (warm-up) and after it (cool-down),
// so that the first and the last measured request meet the same conditions as those in the middle.
//
// One goroutine issues and records; it owns everything but the return stack, so recording takes no lock and no
// allocation.
package load
