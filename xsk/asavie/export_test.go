//go:build linux

package asavie

import "github.com/stillwater-rpc/stillwater/xsk"

// Recognise is recognise, for a test without a socket.
func Recognise(err error) error { return recognise(&xsk.Config{}, err) }

// KickError is kickError.
func KickError(cause any) error { return kickError(cause) }
