// Package suite runs experiments and shows them: as a table for a person, as JSON for a program, as a page with curves.
//
// An [Experiment] is a table: a line for each point and arm, and below it the acceptance as checks that are met or missed. Each line is played with
// several seeds, side by side on all CPUs, and comes out the same whatever the order. The small size is what a test compares byte for byte
// with its testdata, so that a change of a law shows as a changed number; the full size is for claims. bench/experiments and bench/toolbox are suites.
package suite
