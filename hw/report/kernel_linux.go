//go:build linux

package report

const kernelName = "Linux"
