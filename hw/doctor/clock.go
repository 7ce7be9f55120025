//go:build linux

package doctor

import (
	"slices"
	"strings"
)

const directoryClock = "sys/devices/system/clocksource/clocksource0"

// fastClocks are read without a system call (the vDSO has them), on any architecture.
var fastClocks = []string{"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"}

func clockSource(e *examination) []Item {
	s := subject{
		"clock.source", "tsc", "each look at another clock is a system call, and there are several for each request",
		"echo tsc > /" + directoryClock + "/current_clocksource",
	}
	now, ok := e.read(directoryClock + "/current_clocksource")
	if !ok {
		return s.missing(directoryClock + "/current_clocksource")
	}
	if slices.Contains(fastClocks, now) {
		return s.ok("%s", now)
	}
	if available, _ := e.read(directoryClock + "/available_clocksource"); !slices.Contains(strings.Fields(available), "tsc") {
		s.cure = "dmesg | grep -i tsc # says why the kernel gave it up; tsc=reliable on its command line keeps it, where the clocks of all CPUs agree"
	}
	return s.warn("%s", now)
}
