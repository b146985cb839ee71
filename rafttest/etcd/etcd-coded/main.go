// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command etcd-coded reports whether stopped etcd members have coded entries in their logs, which
// etcd as released cannot read.
//
//	etcd-coded DATA-DIR...
//
// The exit status is 0 if no log has coded entries, 1 if at least one log has coded entries, and 2
// if a log could not be read.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/rafttest/etcd/disk"
)

var errCoded = errors.New("etcd as released cannot read coded entries, so start such a member on Weft with WEFT_DENSIFY=1, " +
	"until it has taken a snapshot behind the last of them")

func main() {
	switch err := command().Execute(); {
	case err == nil:
	case errors.Is(err, errCoded):
		fmt.Fprintf(os.Stderr, "etcd-coded: %v\n", err)
		os.Exit(1)
	default:
		fmt.Fprintf(os.Stderr, "etcd-coded: %v\n", err)
		os.Exit(2)
	}
}

func command() *cobra.Command {
	var walDir string
	cmd := &cobra.Command{
		Use:           "etcd-coded DATA-DIR...",
		Short:         "Say whether etcd members that are stopped have coded entries in their logs",
		Long:          "etcd-coded reads the logs of etcd members that are stopped.\nIt ends with 0 if no log has coded entries, with 1 if one has, and with 2 if a log could not be read.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if walDir != "" && len(args) > 1 {
				return fmt.Errorf("--wal-dir is of one member, and %d data directories are named", len(args))
			}
			for _, dir := range args {
				l, readErr := disk.Read(dir, walDir)
				if readErr != nil {
					return readErr
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %v\n", dir, l)
				if l.Envelopes > 0 {
					err = errCoded
				}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&walDir, "wal-dir", "", "the member's --wal-dir, if it has one")
	return cmd
}
