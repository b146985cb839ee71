// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// logLevelResult is a node in the output of log-level.
type logLevelResult struct {
	Endpoint string `json:"endpoint"`
	Level    string `json:"level"`
}

func newLogLevel() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:   "log-level [LEVEL]",
		Short: "Show or change the level of the log of each of the endpoints' nodes",
		Long: "log-level shows the level of the nodes' logs, or changes it to LEVEL: debug, info, warn or error. A node\n" +
			"that starts again has the level of serve --log-level.",
		Args: cobra.MaximumNArgs(1),
	}
	return f.runs(cmd, func(ctx context.Context, c *client.Client, args []string) error {
		req := &kvpb.SetLogLevelRequest{}
		if len(args) > 0 {
			req.Level = args[0]
		}
		t := f.table(cmd, "ENDPOINT", "LEVEL")
		return rowsOf(t, client.AdminAt(ctx, c, kvpb.AdminClient.SetLogLevel, req), func(endpoint string, resp *kvpb.SetLogLevelResponse) error {
			return t.row(logLevelResult{endpoint, resp.GetLevel()}, endpoint, resp.GetLevel())
		})
	})
}
