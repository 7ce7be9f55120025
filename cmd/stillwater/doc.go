// Command stillwater is the one binary of the project: a server and a client for trying it, load generators that measure it,
// a look at what is attached to an interface, and a doctor for the host.
//
// Nouns read and verbs change state. Data goes to standard output, everything else to standard error. It never asks. The exit
// codes are in exit.go, each command stands in a file of its name, and docs/cli.md describes them all.
package main
