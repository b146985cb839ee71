// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/internal/secure"
	"github.com/weftraft/weft/internal/certs"
)

// defaultClientAddress is where a node serves clients and clients look for one.
const defaultClientAddress = "127.0.0.1:7300"

// endpointsVariable names an environment variable with the default of
// --endpoints.
const endpointsVariable = "KVDEMO_ENDPOINTS"

// clientFlags are those of all client verbs.
type clientFlags struct {
	endpoints string
	timeout   time.Duration
	json      bool
	tls       certs.Files
}

func (f *clientFlags) add(cmd *cobra.Command) {
	def := os.Getenv(endpointsVariable)
	if def == "" {
		def = defaultClientAddress
	}
	flags := cmd.Flags()
	flags.StringVar(&f.endpoints, "endpoints", def, "client addresses of nodes, host:port,... (environment: "+endpointsVariable+")")
	if f.timeout == 0 {
		f.timeout = client.DefaultTimeout
	}
	flags.DurationVar(&f.timeout, "timeout", f.timeout, "how long the command may take at most")
	flags.BoolVar(&f.json, "json", false, "print JSON, one object per line")
	addTLS(cmd, &f.tls, "for nodes that want certificates", true)
}

// addTLS adds the flags for certificates. A client's flags default to variables of the
// environment. A node's flags do not, because the certificate in the environment
// belongs to a person working on the same machine.
func addTLS(cmd *cobra.Command, files *certs.Files, note string, environment bool) {
	for _, f := range []struct {
		field    *string
		name, is string
	}{
		{&files.Cert, "tls-cert", "file with the certificate; " + note},
		{&files.Key, "tls-key", "file with its private key"},
		{&files.CA, "tls-ca", "file with the authorities to believe"},
	} {
		def := ""
		if environment {
			variable := "KVDEMO_" + strings.ToUpper(strings.ReplaceAll(f.name, "-", "_"))
			def, f.is = os.Getenv(variable), f.is+" (environment: "+variable+")"
		}
		cmd.Flags().StringVar(f.field, f.name, def, f.is)
	}
}

// config returns the client's configuration.
func (f *clientFlags) config() (client.Config, error) {
	cfg := client.Config{Endpoints: strings.Split(f.endpoints, ","), Timeout: f.timeout}
	if f.timeout <= 0 {
		return cfg, fmt.Errorf("--timeout: %v, want more than 0; %w", f.timeout, errUsage)
	}
	if f.tls == (certs.Files{}) {
		return cfg, nil
	}
	var err error
	if f.tls.Cert == "" || f.tls.Key == "" || f.tls.CA == "" {
		return cfg, fmt.Errorf("--tls-cert, --tls-key, --tls-ca: some are missing, want all three or none; %w", errUsage)
	}
	cfg.TLS, err = secure.Client(f.tls)
	return cfg, err
}

// runs has a verb call do with a client and the deadline, and gives it the flags.
func (f *clientFlags) runs(cmd *cobra.Command, do func(ctx context.Context, c *client.Client, args []string) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return f.with(cmd, func(ctx context.Context, c *client.Client) error { return do(ctx, c, args) })
	}
	f.add(cmd)
	return cmd
}

// with calls do with a client and the deadline.
func (f *clientFlags) with(cmd *cobra.Command, do func(context.Context, *client.Client) error) error {
	cfg, err := f.config()
	if err != nil {
		return err
	}
	c, err := client.New(cfg)
	if err != nil {
		return fmt.Errorf("--%w; %w", err, errUsage)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	return errors.Join(do(ctx, c), c.Close())
}
