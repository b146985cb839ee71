// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command kvdemo is a replicated key-value store on Weft.
//
//	kvdemo demo                 five nodes on this machine, killed and verified
//	kvdemo serve --id 1 ...     one node
//	kvdemo gateway --id 101 ... serves clients without data
//	kvdemo put, get, del, ls, watch    a client
//	kvdemo status, health, bench
//	kvdemo member, roster, transfer, snapshot, log-level, leader-weight, backup, restore, certs    for operators
//	kvdemo completion bash      completes commands in a shell
//
// Each command explains itself with --help, and kvdemo --help has the exit statuses;
// docs/kvdemo.md is a tour.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/internal/usage"
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
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if ctx.Err() != nil && cmd.Name() != "serve" && cmd.Name() != "gateway" { // which signals end in good order
		err = fmt.Errorf("%w: %w", errInterrupted, err)
	}
	fmt.Fprintf(errOut, "kvdemo: %v\n", err)
	return exitOf(err)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "kvdemo",
		Short:         "A replicated key-value store on Weft",
		Long:          "kvdemo is a replicated key-value store on Weft.\n\nBegin with: kvdemo demo\n\n" + exitHelp(),
		Version:       ownVersion().String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w; %w", usage.Explain(err), errUsage)
	})
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(newServe(), newGateway(), newDemo(), newPut(), newGet(), newDel(), newLs(), newWatch(), newStatus(), newHealth(), newBench(),
		newMember(), newRoster(), newTransfer(), newSnapshot(), newLogLevel(), newLeaderWeight(), newBackup(), newRestore(), newCerts(), newVersion())
	checkArgs(root)
	return root
}

// checkArgs marks mistakes in the arguments of a command and its subcommands.
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
				err = fmt.Errorf("%s: %w; want %s", cmd.Name(), err, strings.TrimSuffix(cmd.UseLine(), " [flags]"))
			}
			return fmt.Errorf("%w; %w", err, errUsage)
		}
		return nil
	}
}
