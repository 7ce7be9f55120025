// Package prove is what the commands under bench/ have in common: flags, the two child processes, repetitions with their spread,
// bounds, and the last sentence.
//
// Each command shows one property that the project promises. It compares within one run and interleaves what it compares, since
// the speed of a shared machine changes by the minute; it prints median and spread over its rounds; and it ends with a sentence, and
// with exit code 3 if a bound is not met.
package prove
