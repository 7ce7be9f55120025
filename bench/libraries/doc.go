// Package libraries measures the policies of credit/admit and credit/client beside well-kept libraries that do the same job, in one run:
//
//	cd bench/libraries && go test -bench . -count 5
//
// It is a module of its own, so that nobody who uses Stillwater gets these libraries. Ours take the time as an argument and have one owner, and are measured with a reading
// of the clock and a mutex as well, which is what the libraries do inside.
package libraries
