//go:build !linux

package report

import "runtime"

const kernelName = runtime.GOOS
