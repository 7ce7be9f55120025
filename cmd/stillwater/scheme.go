package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/stillwater-rpc/stillwater/bench/workload"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// scheme is a scheme of overload control by its name.
type scheme string

// schemeUsage ends the description of every flag --scheme.
var schemeUsage = "`name` is " + strings.Join(sw.Schemes(), ", ")

// String is what Set reads.
func (s *scheme) String() string { return string(*s) }

// Type names the value in help.
func (s *scheme) Type() string { return "name" }

// Set takes a name.
func (s *scheme) Set(text string) error {
	if !slices.Contains(sw.Schemes(), text) {
		return errors.New("it must be " + strings.Join(sw.Schemes(), ", "))
	}
	*s = scheme(text)
	return nil
}

// tuned says that the settings of a scheme are for such work; none stands for what they were published for.
func tuned(work workload.ServiceTime) sw.SchemeParams {
	if work.Mean == 0 {
		return sw.SchemeParams{}
	}
	return sw.SchemeParams{Service: work.Mean, Shape: work.Shape.String()}
}
