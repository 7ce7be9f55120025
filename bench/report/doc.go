// Package report shows results: a table that grows line by line, JSON lines, and one HTML file with charts.
//
// The three say the same numbers. The table is for who waits ([Table], with [Progress] beside it), JSON lines are for
// programs ([JSONLines]), and the page is for who comes later ([Page]): it needs no network and no script, carries the
// numbers behind every curve, and says on which machine, with which seed and by which command it was made.
//
// The package knows the experiments' vocabulary (offered load, goodput, SLO, credits) and nothing of how they are run.
package report
