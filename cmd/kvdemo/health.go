// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
)

// healthTimeout is the default of --timeout for health: enough for an election.
const healthTimeout = 3 * time.Second

// healthResult is one node in the output of health --json.
type healthResult struct {
	Endpoint string  `json:"endpoint"`
	Healthy  bool    `json:"healthy"`
	Error    string  `json:"error,omitempty"`
	TookMS   float64 `json:"took_ms,omitempty"`
}

func newHealth() *cobra.Command {
	f := clientFlags{timeout: healthTimeout}
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Check that each of the endpoints' nodes serves clients",
		Long: "health asks each node for a linearizable read of all its groups, and whether its disk has\n" +
			"room. It fails unless all nodes are healthy.",
	}
	return f.runs(cmd, func(ctx context.Context, c *client.Client, _ []string) error {
		return f.printHealth(cmd, c.Health(ctx))
	})
}

// printHealth prints a row for each node, all of which must be healthy.
func (f *clientFlags) printHealth(cmd *cobra.Command, answers []client.Answer[time.Duration]) error {
	t := f.table(cmd, "ENDPOINT", "HEALTH", "TOOK")
	var errs []error
	for _, a := range answers {
		r := healthResult{Endpoint: a.Endpoint, Healthy: a.Err == nil, TookMS: float64(a.Response.Microseconds()) / 1e3}
		says, took := "ok", a.Response.Round(10*time.Microsecond).String()
		if a.Err != nil {
			errs = append(errs, a.Err) // the reasons come below the table, a line each
			r.Error = strings.TrimPrefix(a.Err.Error(), a.Endpoint+": ")
			says, took = "failed", "-"
		}
		if err := t.row(r, r.Endpoint, says, took); err != nil {
			return err
		}
	}
	if err := t.flush(); err != nil || len(errs) == 0 {
		return err
	}
	return fmt.Errorf("%d of %d nodes are not healthy:\n%w", len(errs), len(answers), errors.Join(errs...))
}
