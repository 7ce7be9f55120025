//go:build linux && !portable

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stillwater-rpc/stillwater/bpf"
)

const schemaClean = "stillwater.xdp_clean.v1"

// cleanData is what xdp clean prints as JSON.
type cleanData struct {
	PinRoot string        `json:"pin_root"`
	DryRun  bool          `json:"dry_run"`
	Folders []cleanFolder `json:"folders"`
}

// cleanFolder is a folder of pins.
type cleanFolder struct {
	Path    string `json:"path"`
	Removed bool   `json:"removed"` // in a dry run: would be
	Reason  string `json:"reason"`  // why, or why not
}

const xdpCleanLong = `Remove pins that lead nowhere: their interface is gone, somebody detached the link by force, or the load was interrupted.
What is attached stays, and so does what xdp detach --keep left for xdp attach, and everything that is not ours.`

func newXDPClean(c *cli) *cobra.Command {
	root, dryRun := bpf.PinRoot, false
	cmd := &cobra.Command{
		Use:     "clean",
		Short:   "Remove pins that lead nowhere",
		Long:    xdpCleanLong,
		Example: "  stillwater xdp clean --dry-run",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return xdpError(clean(c, root, dryRun)) },
	}
	cmd.Flags().StringVar(&root, "pin-root", bpf.PinRoot, "`folder` whose folders have the pins")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be removed")
	return cmd
}

func clean(c *cli, root string, dryRun bool) error {
	left, err := bpf.Clean(root, dryRun)
	if err != nil {
		return err
	}
	data := cleanData{PinRoot: root, DryRun: dryRun, Folders: []cleanFolder{}} // not nil, so that it is a list in JSON
	for _, l := range left {
		data.Folders = append(data.Folders, cleanFolder{l.Dir, l.Removed, l.Reason})
	}
	if !c.text() {
		return c.printObject(schemaClean, data)
	}
	var text strings.Builder
	for _, folder := range data.Folders {
		verb := "kept"
		switch {
		case folder.Removed && dryRun:
			verb = "would be removed"
		case folder.Removed:
			verb = "removed"
		}
		fmt.Fprintf(&text, "%s: %s: %s\n", folder.Path, verb, folder.Reason)
	}
	if len(data.Folders) == 0 {
		fmt.Fprintf(&text, "%s: no pins\n", root)
	}
	return c.print(text.String())
}
