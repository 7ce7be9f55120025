package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stillwater-rpc/stillwater/runtime/capture"
)

// commands are all commands: nouns read, verbs change state. A new one is a line here and a file of its name.
var commands = []func(*cli) *cobra.Command{
	newDemo,
	newServe,
	newCall,
	newBench,
	newSim,
	newXDP,
	newNIC,
	newDoctor,
	newVersion,
	newLab,
}

// cli is one run of the program: its surroundings, the flags that every command has, and what happened so far.
type cli struct {
	env
	format   format
	colour   colour
	strict   bool
	log      *slog.Logger
	warnings int
	started  bool // the command line was understood, so errors from here on are not of usage
	captured *capture.Tap
}

// run runs the program and returns its exit code.
func run(e env) int {
	c := &cli{env: e, log: slog.New(slog.NewTextHandler(e.stderr, nil))}
	root := newRoot(c)
	root.SetArgs(append([]string{}, e.args...)) // never nil: cobra would take the process's own arguments
	command, err := root.ExecuteContextC(e.ctx)
	if err != nil && !c.started {
		if _, coded := errors.AsType[*codeError](err); !coded {
			err = &codeError{exitUsage, err}
		}
	}
	err = c.endCapture(err)
	code := exitCode(err)
	switch code {
	case exitOK:
		if c.strict && c.warnings > 0 {
			fmt.Fprintf(e.stderr, "stillwater: %d warnings, and --strict was given\n", c.warnings)
			return exitWarning
		}
		return exitOK
	case exitUsage:
		fmt.Fprintf(e.stderr, "stillwater: %v\nsee: %s --help\n", err, command.CommandPath())
	case exitPrivilege:
		fmt.Fprintf(e.stderr, "stillwater: %v\nrun it as root, or with CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON and CAP_NET_RAW\n", err)
	default:
		fmt.Fprintf(e.stderr, "stillwater: %v\n", err)
	}
	return code
}

const rootLong = `Stillwater is an RPC runtime over AF_XDP whose tail stays flat when demand passes capacity.

Data goes to standard output, logs and errors to standard error. Every flag can be given in the environment as well:
--slo of any command as STILLWATER_SLO; the command line wins.

Exit codes: 0 ok, 1 internal error, 2 usage, 3 a check failed, 4 warnings with --strict, 5 a privilege is missing.`

func newRoot(c *cli) *cobra.Command {
	root := &cobra.Command{
		Use:           "stillwater",
		Short:         "An RPC runtime over AF_XDP that keeps its goodput and its tail under overload",
		Long:          rootLong,
		SilenceUsage:  true, // an error is one line and its cure, not a page
		SilenceErrors: true, // printed by run
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.fromEnvironment(cmd); err != nil {
				return err
			}
			c.started = true
			return nil
		},
	}
	root.SetOut(c.stdout)
	root.SetErr(c.stderr)
	flags := root.PersistentFlags()
	flags.VarP(&c.format, "output", "o", "output `format`: text, json (one object), jsonl (one object a line)")
	flags.Var(&c.colour, "color", "colours in text: `when` is auto, always or never; NO_COLOR is honoured")
	flags.BoolVar(&c.strict, "strict", false, "exit with 4 after a warning")
	for _, newCommand := range commands {
		root.AddCommand(newCommand(c))
	}
	return root
}

// newGroup makes a command that only holds others. Without this, cobra answers a misspelt one with help and success.
func newGroup(use, short string, children ...*cobra.Command) *cobra.Command {
	names := make([]string, len(children))
	for i, child := range children {
		names[i] = child.Name()
	}
	group := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usageError("%s what? Give one of: %s", use, strings.Join(names, ", "))
		},
	}
	group.AddCommand(children...)
	return group
}

// fromEnvironment sets the flags that the command line leaves out: --slo from STILLWATER_SLO. Hidden commands are run by
// the program itself, with the flags that it means.
func (c *cli) fromEnvironment(cmd *cobra.Command) error {
	if cmd.Hidden || cmd.HasParent() && cmd.Parent().Hidden {
		return nil
	}
	var errs []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" {
			return
		}
		name := "STILLWATER_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value := c.getenv(name)
		if value == "" {
			return
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("environment variable %s: %w", name, err))
		}
	})
	return errors.Join(errs...)
}

// warn logs what a person should know although the command goes on; --strict makes it count.
func (c *cli) warn(message string, args ...any) {
	c.warnings++
	c.log.Warn(message, args...)
}
