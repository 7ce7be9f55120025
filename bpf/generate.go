package bpf

// The objects of both endians are committed, so that users need no clang. The second step records what they were made of
// (steer.sum); a test compares it with the text on every run.

//go:generate go tool bpf2go -cc clang -strip llvm-strip -cflags "-O2 -g -Wall -Werror -mcpu=v2 -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu" -tags linux -type reason -type service_key steer steer.bpf.c
//go:generate go run digest.go
