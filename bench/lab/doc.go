// Package lab makes small networks out of nothing: namespaces, veth pairs between them, and processes on both ends.
//
// Nothing here has a name outside the process: a [Namespace] is kept by a descriptor, a [Pair] is created inside its two
// namespaces, and a helper process dies with its parent. So nothing is left behind when a test is killed, tests of several
// packages may run at once, and the host's own interfaces are never touched. All of it needs root.
package lab
