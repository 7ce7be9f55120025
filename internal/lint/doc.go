// Package lint holds the rules of this repository that no general linter knows, as tests: which folder may import which,
// what the library may link, that the cores do no IO, how long a function and a file may be, and what must be documented.
//
// The import arrows are read from ARCHITECTURE.md, section 5, so that the drawing is the rule. Each rule is a plain
// function from sources to findings; lint_test.go runs all of them on the repository, and the test of each rule shows it
// a small wrong example, since a rule that cannot fail checks nothing.
package lint
