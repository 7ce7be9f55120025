//go:build linux && !portable

package main

import (
	"github.com/spf13/cobra"

	"github.com/stillwater-rpc/stillwater/bench/child"
)

// The hidden commands by which an experiment runs this program as its children.
const (
	labName       = "lab"
	labServerName = "server"
	labClientName = "client"
)

// newLab makes the children's commands. They speak the lab's protocol on standard input and output, and end with their input; a
// terminal's interrupt is their parent's business.
func newLab(c *cli) *cobra.Command {
	group := newGroup(labName, "Run one side of an experiment",
		newLabChild(c, labServerName, child.Server), newLabChild(c, labClientName, child.Client))
	group.Hidden = true
	return group
}

func newLabChild(c *cli, name string, run child.Main) *cobra.Command {
	cpu := -1
	cmd := &cobra.Command{
		Use: name, Short: "Run the " + name + " of an experiment", Args: cobra.NoArgs, Hidden: true,
		RunE: func(*cobra.Command, []string) error { return run(cpu) },
	}
	cmd.Flags().IntVar(&cpu, "cpu", -1, "run on this CPU alone; negative = anywhere")
	return cmd
}
