package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/stillwater-rpc/stillwater/bench/load"
)

const benchClosedLong = `Generate a closed load: a fixed number of requests is outstanding, and each outcome starts the next request. That
measures echo rates and capacity. It says nothing about latency under an open load, since a slow server slows the
generator down with it.`

func newBenchClosed(c *cli) *cobra.Command {
	f := &benchFlags{}
	outstanding := 0
	cmd := &cobra.Command{
		Use:     "closed ADDRESS",
		Short:   "Closed loop: each answer starts the next request; measures rates and capacity",
		Long:    benchClosedLong,
		Example: "  stillwater bench closed 10.0.0.1 --outstanding 16 --duration 5s",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) (err error) {
			if outstanding < 1 {
				return usageError("--outstanding %d: give at least 1", outstanding)
			}
			b, err := newBencher(c, f, args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, b.end()) }()
			return b.run("closed loop", 0, load.ClosedLoop{Plan: f.Plan, Outstanding: outstanding}.Run)
		},
	}
	flags := cmd.Flags()
	f.register(flags)
	flags.IntVar(&outstanding, "outstanding", 16, "requests under way at any time, over all sessions")
	flags.DurationVar(&f.Deadline, "deadline", 0, "deadline of each request, from its start; 0 = none")
	return cmd
}
