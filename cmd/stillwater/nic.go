//go:build linux && !portable

package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/stillwater-rpc/stillwater/hw/nic"
)

const schemaNIC = "stillwater.nic_status.v1"

func newNIC(c *cli) *cobra.Command {
	return newGroup("nic", "See a network interface, and steer ports to its queues", newNICStatus(c), newNICSteer(c))
}

const nicStatusLong = `Show what decides where an interface puts its packets, and how soon: driver, queues, RSS, rings, coalescing, offloads, what XDP can do,
which CPU each queue interrupts, and the NUMA node. It changes nothing and needs no privilege. What the driver does not have and what
could not be read are named at the end.`

func newNICStatus(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:     "status INTERFACE",
		Short:   "Show the queues, the steering and the settings of an interface",
		Long:    nicStatusLong,
		Example: "  stillwater nic status eth1 -o json",
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return nicStatus(c, args[0]) },
	}
}

func nicStatus(c *cli, name string) error {
	if err := checkInterface(name); err != nil {
		return err
	}
	s, err := nic.Read(name, os.DirFS("/"))
	if err != nil {
		return err
	}
	if !c.text() {
		return c.printObject(schemaNIC, s)
	}
	return c.print(nicText(s))
}
