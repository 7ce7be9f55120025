//go:build linux

package nic

// Insert asks the kernel for a rule without a plan.
func Insert(name string, r Rule) error {
	_, err := (&table{call: ethtool, name: name, size: 1}).insert(r)
	return err
}
