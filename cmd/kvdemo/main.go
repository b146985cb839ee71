// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command kvdemo is a replicated key-value store on Weft.
//
//	kvdemo demo                 five nodes on this machine, killed and verified
//	kvdemo serve --id 1 ...     one node
//	kvdemo put, get, del, ls    a client
//	kvdemo status, bench
//	kvdemo member, transfer, snapshot, certs    for operators
//
// Each command explains itself with --help; docs/kvdemo.md is a tour. The exit
// status is 0 for success, 1 for failure, 2 for a command line that makes no
// sense, and 3 for a write whose outcome is unknown.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/internal/usage"
	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
)

const (
	exitFailure = 1
	exitUsage   = 2
	exitUnknown = 3
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs a command line and returns its exit status.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(errOut, "kvdemo: %v\n", err)
	switch {
	case errors.Is(err, errUsage):
		return exitUsage
	case errors.Is(err, client.ErrUnknown):
		return exitUnknown
	}
	return exitFailure
}

// errUsage marks mistakes in the command line.
var errUsage = errors.New("see the command's --help")

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "kvdemo",
		Short:         "A replicated key-value store on Weft",
		Long:          "kvdemo is a replicated key-value store on Weft.\n\nBegin with: kvdemo demo",
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w; %w", usage.Explain(err), errUsage)
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newServe(), newDemo(), newPut(), newGet(), newDel(), newLs(), newStatus(), newBench(),
		newMember(), newTransfer(), newSnapshot(), newCerts())
	checkArgs(root)
	return root
}

// checkArgs marks mistakes in the arguments of a command and those below it.
func checkArgs(cmd *cobra.Command) {
	cmd.Args = usageArgs(cmd.Args)
	for _, sub := range cmd.Commands() {
		checkArgs(sub)
	}
}

// usageArgs marks a wrong number of arguments as a mistake in the command line.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check == nil {
			check = cobra.NoArgs
		}
		if err := check(cmd, args); err != nil {
			if cmd.HasParent() {
				err = fmt.Errorf("%s: %w", cmd.Name(), err)
			}
			return fmt.Errorf("%w; %w", err, errUsage)
		}
		return nil
	}
}
