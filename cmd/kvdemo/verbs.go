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
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

func newPut() *cobra.Command {
	var f clientFlags
	var file string
	cmd := &cobra.Command{
		Use:   "put KEY [VALUE]",
		Short: "Set a key to a value, given here, in a file, or on standard input",
		Long: "put sets a key to a value. A value of - is standard input. Without a value it is standard\n" +
			"input as well, which must not be empty then.",
		Example: "  kvdemo put greeting 'hello there'\n" +
			"  kvdemo put picture --file cat.jpg\n" +
			"  date | kvdemo put now",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			value, size, err := openValue(cmd, args[1:], file)
			if err != nil {
				return err
			}
			defer func() { _ = value.Close() }() // it was only read
			return f.with(cmd, func(ctx context.Context, c *client.Client) error {
				index, err := c.PutFrom(ctx, args[0], value, size)
				if err != nil {
					return err
				}
				return f.print(cmd, putResult{Key: args[0], Bytes: size, Index: index})
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&file, "file", "f", "", "read the value from this file (- is standard input)")
	return cmd
}

// errNoValue says that put was given nothing.
var errNoValue = fmt.Errorf("put: standard input is empty; for an empty value: kvdemo put KEY '', or put KEY - for whatever standard input has; %w", errUsage)

// openValue returns the value of a put and its size. A pipe is copied to a file first,
// because the nodes need the size.
func openValue(cmd *cobra.Command, args []string, file string) (io.ReadCloser, int64, error) {
	switch {
	case len(args) > 0 && file != "":
		return nil, 0, fmt.Errorf("put: a value and --file %s, want one of them; %w", file, errUsage)
	case len(args) > 0 && args[0] != "-":
		return io.NopCloser(strings.NewReader(args[0])), int64(len(args[0])), nil
	case len(args) > 0 || file == "-":
		return spool(cmd.InOrStdin())
	case file == "":
		value, size, err := spool(cmd.InOrStdin())
		if err == nil && size == 0 {
			return nil, 0, errors.Join(errNoValue, value.Close())
		}
		return value, size, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, 0, fmt.Errorf("--file: %w", err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, 0, errors.Join(fmt.Errorf("--file: %w", err), f.Close())
	case info.Mode().IsRegular():
		return f, info.Size(), nil
	}
	defer func() { _ = f.Close() }() // it was only read
	return spool(f)
}

// spool copies a stream of unknown length to a temporary file that has no name.
func spool(in io.Reader) (io.ReadCloser, int64, error) {
	f, err := os.CreateTemp("", "kvdemo-put-")
	if err != nil {
		return nil, 0, fmt.Errorf("read value: %w", err)
	}
	_ = os.Remove(f.Name()) // if impossible, the file stays
	size, err := io.Copy(f, io.LimitReader(in, kv.MaxValueBytes+1))
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err == nil {
		err = kv.CheckValue(int(size))
	}
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("read value: %w", err), f.Close())
	}
	return f, size, nil
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
				switch {
				case file != "":
					return getFile(ctx, c, args[0], local, file)
				case !f.json:
					_, err := c.GetTo(ctx, args[0], local, cmd.OutOrStdout())
					return err
				}
				resp, err := c.Get(ctx, args[0], local)
				if err != nil {
					return err
				}
				return f.print(cmd, getResult{Key: args[0], Value: resp.GetValue(), Applied: resp.GetApplied()})
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&file, "file", "f", "", "write the value to this file")
	addLocal(cmd, &local)
	return cmd
}

// getFile writes a value to a file, which is there only when it is complete.
func getFile(ctx context.Context, c *client.Client, key string, local bool, file string) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".kvdemo-get-")
	if err != nil {
		return fmt.Errorf("--file: %w", err)
	}
	_, err = c.GetTo(ctx, key, local, f)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error counts
	}
	return err
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
