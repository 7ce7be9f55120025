package main

import "github.com/spf13/cobra"

// simCommands are the children of sim.
var simCommands = []func(*cli) *cobra.Command{newSimPaper}

func newSim(c *cli) *cobra.Command {
	var children []*cobra.Command
	for _, newCommand := range simCommands {
		children = append(children, newCommand(c))
	}
	return newGroup("sim", "Run overload control in a deterministic simulator", children...)
}
