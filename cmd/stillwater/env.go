package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// env is all that a command gets from its process, so that tests can call the whole program in theirs.
type env struct {
	args           []string // without the program's name
	stdout, stderr io.Writer
	ctx            context.Context // ends with the first SIGINT or SIGTERM: finish in order
	hurry          context.Context // ends with the second one: stop at once
	getenv         func(string) string
}

// processEnv is the env of this process. After the second signal a third one ends the process by itself, whatever it does.
func processEnv() (e env, release func()) {
	ctx, cancel := context.WithCancel(context.Background())
	hurry, cancelHurry := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		signal.Stop(signals)
		cancelHurry()
	}()
	e = env{
		args: os.Args[1:], stdout: os.Stdout, stderr: os.Stderr,
		ctx: ctx, hurry: hurry, getenv: os.Getenv,
	}
	return e, func() { cancel(); cancelHurry() }
}
