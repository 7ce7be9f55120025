package main

import (
	"errors"
	"fmt"
	"io/fs"
)

// The exit codes. Scripts depend on them.
const (
	exitOK        = 0
	exitInternal  = 1 // something failed that should not
	exitUsage     = 2 // the command line is wrong
	exitCheck     = 3 // what was asked for is not so: a call without an answer, a run that is not to be believed
	exitWarning   = 4 // warnings, with --strict
	exitPrivilege = 5 // a privilege is missing
)

// codeError is an error that names its exit code.
type codeError struct {
	code int
	err  error
}

// Error is the text of the wrapped error.
func (e *codeError) Error() string { return e.err.Error() }

// Unwrap gives the wrapped error.
func (e *codeError) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return &codeError{exitUsage, fmt.Errorf(format, args...)}
}

func checkError(err error) error { return &codeError{exitCheck, err} }

// exitCode finds the code of an error. A missing privilege shows as the kernel's own error, from wherever it comes.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if coded, ok := errors.AsType[*codeError](err); ok {
		return coded.code
	}
	if errors.Is(err, fs.ErrPermission) {
		return exitPrivilege
	}
	return exitInternal
}
