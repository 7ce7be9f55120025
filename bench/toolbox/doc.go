// Package toolbox runs the experiments of the admission toolbox: what becomes of a server, its callers and what stands behind it when too much is asked, and
// which policy saves them. They run in package runtime/sim, the production cores on a virtual clock, and where an experiment is about one policy alone, it
// drives that policy by events of the same clock.
//
// Each experiment is a table of bench/suite with a control arm that must collapse. The tests compare the small size byte for byte with testdata.
package toolbox
