package main

import (
	"cmp"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/stillwater-rpc/stillwater/hw/report"
)

const schemaVersion = "stillwater.version.v1"

// versionData is what version prints as JSON.
type versionData struct {
	ModuleVersion string `json:"module_version"`
	VCSRevision   string `json:"vcs_revision"`
	VCSModified   bool   `json:"vcs_modified"`
	GoVersion     string `json:"go_version"`
	Arch          string `json:"arch"`
}

func newVersion(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program and of the Go that built it",
		Example: "  stillwater version -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			m := report.Facts()
			v := versionData{m.ModuleVersion, m.VCSRevision, m.VCSModified, m.GoVersion, m.Arch}
			if !c.text() {
				return c.printObject(schemaVersion, v)
			}
			revision := cmp.Or(v.VCSRevision, "unknown")
			if v.VCSModified {
				revision += " with changes"
			}
			return c.print(fmt.Sprintf("stillwater %s\nrevision %s\n%s %s/%s\n",
				cmp.Or(v.ModuleVersion, "unknown"), revision, v.GoVersion, runtime.GOOS, v.Arch))
		},
	}
}
