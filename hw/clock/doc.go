// Package clock is the time base of every core: a monotonic instant of eight bytes.
//
// The zero Time means "unset". Instants are nanoseconds of CLOCK_MONOTONIC on Linux, so they compare with the
// stamps that the XDP program writes (bpf_ktime_get_ns reads the same clock). Cores never call [Now]: the shell
// reads the clock once per batch and passes the instant in.
package clock
