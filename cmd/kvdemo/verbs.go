// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
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
}

func (f *clientFlags) add(cmd *cobra.Command) {
	def := os.Getenv(endpointsVariable)
	if def == "" {
		def = defaultClientAddress
	}
	flags := cmd.Flags()
	flags.StringVar(&f.endpoints, "endpoints", def, "client addresses of nodes, host:port,... (environment: "+endpointsVariable+")")
	flags.DurationVar(&f.timeout, "timeout", client.DefaultTimeout, "how long the command may take at most")
	flags.BoolVar(&f.json, "json", false, "print JSON, one object per line")
}

// with calls do with a client and the deadline.
func (f *clientFlags) with(cmd *cobra.Command, do func(context.Context, *client.Client) error) error {
	if f.timeout <= 0 {
		return fmt.Errorf("--timeout: %v, want more than 0; %w", f.timeout, errUsage)
	}
	c, err := client.New(client.Config{Endpoints: strings.Split(f.endpoints, ",")})
	if err != nil {
		return fmt.Errorf("--%w; %w", err, errUsage)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	return errors.Join(do(ctx, c), c.Close())
}

func newPut() *cobra.Command {
	var f clientFlags
	var file string
	cmd := &cobra.Command{
		Use:   "put KEY [VALUE]",
		Short: "Set a key to a value, given here, in a file, or on standard input",
		Example: "  kvdemo put greeting 'hello there'\n" +
			"  kvdemo put picture --file cat.jpg\n" +
			"  date | kvdemo put now",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			value, err := readValue(cmd, args[1:], file)
			if err != nil {
				return err
			}
			return f.with(cmd, func(ctx context.Context, c *client.Client) error {
				index, err := c.Put(ctx, args[0], value)
				if err != nil {
					return err
				}
				return f.print(cmd, putResult{Key: args[0], Bytes: len(value), Index: index})
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&file, "file", "f", "", "read the value from this file (- is standard input)")
	return cmd
}

// readValue returns the value of a put. It reads no more than a value may have.
func readValue(cmd *cobra.Command, args []string, file string) ([]byte, error) {
	switch {
	case len(args) > 0 && file != "":
		return nil, fmt.Errorf("put: a value and --file %s, want one of them; %w", file, errUsage)
	case len(args) > 0:
		return []byte(args[0]), nil
	}
	in := cmd.InOrStdin()
	if file != "" && file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("--file: %w", err)
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	value, err := io.ReadAll(io.LimitReader(in, kv.MaxInlineBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read value: %w", err)
	}
	if len(value) > kv.MaxInlineBytes {
		return nil, fmt.Errorf("%w value: more than %d bytes (1 MiB), which is the most a key can have; split it over several keys", kv.ErrInvalid, kv.MaxInlineBytes)
	}
	return value, nil
}

func newGet() *cobra.Command {
	var f clientFlags
	var file string
	var local bool
	cmd := &cobra.Command{
		Use:   "get KEY",
		Short: "Print the value of a key, or write it to a file",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd, func(ctx context.Context, c *client.Client) error {
				resp, err := c.Get(ctx, args[0], local)
				if err != nil {
					return err
				}
				if file != "" {
					return os.WriteFile(file, resp.GetValue(), 0o644)
				}
				if f.json {
					return f.print(cmd, getResult{Key: args[0], Value: resp.GetValue(), Applied: resp.GetApplied()})
				}
				_, err = cmd.OutOrStdout().Write(resp.GetValue())
				return err
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&file, "file", "f", "", "write the value to this file")
	addLocal(cmd, &local)
	return cmd
}

func addLocal(cmd *cobra.Command, local *bool) {
	cmd.Flags().BoolVar(local, "local", false, "read what the node that answers has applied so far, which may be old")
}

func newDel() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:   "del KEY...",
		Short: "Remove keys",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd, func(ctx context.Context, c *client.Client) error {
				for _, key := range args {
					index, existed, err := c.Delete(ctx, key)
					if err != nil {
						return err
					}
					if err := f.print(cmd, delResult{Key: key, Existed: existed, Index: index}); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	f.add(cmd)
	return cmd
}

func newLs() *cobra.Command {
	var f clientFlags
	var local, digests bool
	var limit uint32
	cmd := &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List keys in order, all or those that begin with PREFIX",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			req := &kvpb.ListRequest{Local: local, Digests: digests}
			if len(args) > 0 {
				req.Prefix = args[0]
			}
			return f.with(cmd, func(ctx context.Context, c *client.Client) error {
				return list(ctx, cmd, &f, c, req, int(limit))
			})
		},
	}
	f.add(cmd)
	addLocal(cmd, &local)
	cmd.Flags().BoolVar(&digests, "digests", false, "print the SHA-256 of each value")
	cmd.Flags().Uint32Var(&limit, "limit", 0, "print at most so many keys (0: all)")
	return cmd
}

// list prints pages until there are no more.
func list(ctx context.Context, cmd *cobra.Command, f *clientFlags, c *client.Client, req *kvpb.ListRequest, limit int) error {
	t := f.table(cmd, "KEY", "BYTES", "SHA256")
	for left := limit; ; {
		req.Limit = kv.DefaultPage
		if limit > 0 {
			req.Limit = uint32(min(left, kv.DefaultPage))
		}
		page, err := c.List(ctx, req)
		if err != nil {
			return errors.Join(t.flush(), err)
		}
		for _, item := range page.GetItems() {
			row := lsResult{Key: item.GetKey(), Bytes: item.GetSize(), SHA256: hex.EncodeToString(item.GetSha256())}
			if err := t.row(row, row.Key, row.Bytes, row.SHA256); err != nil {
				return err
			}
		}
		left -= len(page.GetItems())
		if req.After = page.GetNext(); req.After == "" || (limit > 0 && left <= 0) {
			return t.flush()
		}
	}
}
