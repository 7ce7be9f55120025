//go:build linux

package main

import "github.com/stillwater-rpc/stillwater/bench/overload"

func main() { overload.Locks().Main() }
