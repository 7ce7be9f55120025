// Package doctor says how a host will carry our packets, what stands in the way, and the cure for each.
//
// It judges and asks nothing: sysfs and procfs come as a file system, which may be a recorded tree of another machine; what the driver says of the
// interface, and how a trial on it ended, come as values, since this package imports nothing of ours that could find them out.
//
// Each check is an [Item] with a verdict of its own. [Fail] means that packets cannot go over AF_XDP at all, [Warn] that they go worse than they
// could, [Unknown] that it could not be found out: for want of rights, or since it takes a trial that was not made.
package doctor
