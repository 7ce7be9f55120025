// Package paper draws the figures of the Breakwater paper again, from simulated runs, and says at each published point how far ours is away.
//
// It knows what to simulate ([NewPlan] turns the published rows and their set-ups into points), how to compare, and how to show it.
// It does not simulate: a [Runner] does, and the command line brings the two together by [Run].
//
// A [Point] is one run: a scheme under one load. A [Cell] is one reading of it (a metric, or a window of one) beside the published row,
// where there is one. Many cells share a point: goodput, p99 and drops of F3, the same again in F5 b, the reference curves of F8 and F9.
// The figures' "Breakwater" is held against breakwater-artifact, since the artifact's law produced them.
package paper
