// Package checker decides whether every request had exactly one outcome and ran at most once.
//
// It stands apart from what it judges: it reads two histories and nothing else. The client's [Log] has one [Ending] for
// each outcome that the load generator was told, the server's one [Execution] for each time that a handler began, over
// all boots. Both are written by those who saw it happen, with a mark that the issuer put into the payload; no counter
// of the runtime and no field of the wire format takes part. The writers stay alive in nobody's memory: a log is shared
// memory that its reader made, so the record of a process that was killed is whole up to its last instruction.
package checker
