// Package experiments runs the experiments that show overload control works, in package runtime/sim: the production cores under load, each
// scheme on the same arrivals, each experiment beside a control arm that must collapse.
//
// An [Experiment] is a table: a line for each point and scheme, and below it the acceptance as checks that are met or missed. The small size is
// what a test compares byte for byte with testdata, so that a change of a law shows as a changed number; the full size is for claims.
package experiments
