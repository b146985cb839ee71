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
	var conditions putConditions
	cmd := &cobra.Command{
		Use:   "put KEY [VALUE]",
		Short: "Set a key to a value, given here, in a file, or on standard input",
		Long: "put sets a key to a value. A value of - is standard input. Without a value it is standard\n" +
			"input as well, which must not be empty then.",
		Example: "  kvdemo put greeting 'hello there'\n" +
			"  kvdemo put picture --file cat.jpg\n" +
			"  kvdemo put lock me --if-absent --ttl 30s\n" +
			"  date | kvdemo put now",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			value, size, err := openValue(cmd, args[1:], file)
			if err != nil {
				return err
			}
			defer func() { _ = value.Close() }() // it was only read
			conditional, err := conditions.check(cmd, size)
			if err != nil {
				return err
			}
			return f.with(cmd, func(ctx context.Context, c *client.Client) error {
				put := c.PutFrom
				if conditional {
					put = func(ctx context.Context, key string, in io.Reader, size int64) (client.Written, error) {
						return conditions.put(ctx, c, key, in, size)
					}
				}
				at, err := put(ctx, args[0], value, size)
				if err != nil {
					return err
				}
				return f.print(cmd, putResult{Key: args[0], Bytes: size, place: placeOf(at.Position)})
			})
		},
	}
	f.add(cmd)
	conditions.add(cmd)
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
	var verbose, revision bool
	var policy policyFlag
	cmd := &cobra.Command{
		Use:   "get KEY",
		Short: "Print the value of a key, or write it to a file",
		Long:  "get prints the value of a key, or writes it to a file.\n\n" + policyHelp,
		Args:  cobra.ExactArgs(1),
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "write the value to this file")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "say on standard error what served the read")
	cmd.Flags().BoolVar(&revision, "revision", false, "say at which revision the key was changed last, for put --if-revision: on standard error, or as \"changed\" with --json")
	policy.add(cmd)
	return f.runs(cmd, func(ctx context.Context, c *client.Client, args []string) error {
		req := &kvpb.GetRequest{Key: args[0], Policy: policy.policy, Revision: revision}
		if f.json && file == "" {
			resp, err := c.Get(ctx, req)
			if err != nil {
				return err
			}
			return f.print(cmd, getResult{
				Key: args[0], Value: resp.GetValue(), place: placeOf(resp.GetPosition()), Changed: resp.GetRevision(), Served: resp.GetServed(),
			})
		}
		head, err := getTo(ctx, c, req, file, cmd.OutOrStdout())
		if err == nil && verbose {
			fmt.Fprintln(cmd.ErrOrStderr(), servedBy(head.GetServed()))
		}
		if err == nil && revision {
			fmt.Fprintf(cmd.ErrOrStderr(), "changed%v\n", place{head.GetPosition().GetGroup(), head.GetRevision()})
		}
		return err
	})
}

// getTo writes a value to out, or to a file, and returns what came before the value.
func getTo(ctx context.Context, c *client.Client, req *kvpb.GetRequest, file string, out io.Writer) (head *kvpb.ReadChunk, err error) {
	if file == "" {
		return c.GetTo(ctx, req, out)
	}
	err = createWhole(file, func(f *os.File) (err error) {
		head, err = c.GetTo(ctx, req, f)
		return errors.Join(err, f.Chmod(0o644))
	})
	return head, err
}

// createWhole writes a file, which is there only when it is complete.
func createWhole(file string, fill func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".kvdemo-")
	if err != nil {
		return fmt.Errorf("make a file beside %s: %w", file, err)
	}
	if err = errors.Join(fill(f), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error counts
	}
	return err
}

func newDel() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:   "del KEY...",
		Short: "Remove keys",
		Args:  cobra.MinimumNArgs(1),
	}
	return f.runs(cmd, func(ctx context.Context, c *client.Client, keys []string) error {
		for _, key := range keys {
			at, existed, err := c.Delete(ctx, key)
			if err != nil {
				return err
			}
			if err := f.print(cmd, delResult{Key: key, Existed: existed, place: placeOf(at.Position)}); err != nil {
				return err
			}
		}
		return nil
	})
}

func newLs() *cobra.Command {
	var f clientFlags
	var digests bool
	var policy policyFlag
	var limit uint32
	cmd := &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List keys in order, all or those that begin with PREFIX",
		Long:  "ls lists keys in order, all or those that begin with PREFIX.\n\n" + policyHelp,
		Args:  cobra.MaximumNArgs(1),
	}
	policy.add(cmd)
	cmd.Flags().BoolVar(&digests, "digests", false, "print the SHA-256 of each value")
	cmd.Flags().Uint32Var(&limit, "limit", 0, "print at most so many keys (0: all)")
	return f.runs(cmd, func(ctx context.Context, c *client.Client, args []string) error {
		req := &kvpb.ListRequest{Policy: policy.policy, Digests: digests}
		if len(args) > 0 {
			req.Prefix = args[0]
		}
		return list(ctx, cmd, &f, c, req, int(limit))
	})
}

// list prints pages until there are no more.
func list(ctx context.Context, cmd *cobra.Command, f *clientFlags, c *client.Client, req *kvpb.ListRequest, limit int) error {
	columns := []string{"KEY", "BYTES"}
	if req.GetDigests() {
		columns = append(columns, "SHA256")
	}
	var t *table // none before the first page: what fails at once prints nothing
	for left := limit; ; {
		req.Limit = kv.DefaultPage
		if limit > 0 {
			req.Limit = uint32(min(left, kv.DefaultPage))
		}
		page, err := c.List(ctx, req)
		if err != nil && t != nil {
			err = errors.Join(t.flush(), err)
		}
		if err != nil {
			return err
		}
		if t == nil {
			t = f.table(cmd, columns...)
		}
		for _, item := range page.GetItems() {
			row := lsResult{Key: item.GetKey(), Bytes: item.GetSize(), SHA256: hex.EncodeToString(item.GetSha256())}
			if err := t.row(row, []any{row.Key, row.Bytes, row.SHA256}[:len(columns)]...); err != nil {
				return err
			}
		}
		left -= len(page.GetItems())
		if req.After = page.GetNext(); req.After == "" || (limit > 0 && left <= 0) {
			return t.flush()
		}
	}
}
