package main

import (
	"github.com/spf13/cobra"

	"github.com/stillwater-rpc/stillwater/bench/toolbox"
)

const toolboxLong = `Runs the experiments of the admission toolbox, in the simulator: queues without an end, retry storms, hedges, cold caches, pipelines. Each prints a table with the policies
side by side, a control arm that must collapse, and its acceptance as checks, each ok or MISSED with the figure.

Without an ID it runs all of them. The small size takes less than a minute; the full size, which is what claims are made of, some minutes on two CPUs.`

func newSimToolbox(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "toolbox [ID...]",
		Short: "Run the experiments of the admission toolbox: what each policy saves, and from what",
		Long:  toolboxLong,
		Example: "  stillwater sim toolbox E1 E3\n" +
			"  stillwater sim toolbox --size full --html toolbox.html\n" +
			"  stillwater sim toolbox E5 -o jsonl",
	}
	f := &suiteFlags{}
	f.register(cmd, "how much to run: `size` is small (one seed, short runs) or full (three seeds, all points)")
	cmd.RunE = func(_ *cobra.Command, ids []string) error {
		return c.suite(ids, f, toolbox.Small(), toolbox.Full(), toolbox.Run)
	}
	return cmd
}
