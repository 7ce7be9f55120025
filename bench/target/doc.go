// Package target is the system under test: the handler that does the work a payload asks for, and the sessions that the
// generators of package load drive.
package target
