module github.com/stillwater-rpc/stillwater/bench/libraries

go 1.26.0

require (
	github.com/failsafe-go/failsafe-go v0.9.8
	github.com/stillwater-rpc/stillwater v0.0.0
	golang.org/x/time v0.16.0
)

require github.com/bits-and-blooms/bitset v1.24.4 // indirect

replace github.com/stillwater-rpc/stillwater => ../..
