// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// putConditions are the flags of put that make it a transaction.
type putConditions struct {
	absent  bool
	present bool
	value   string
	compare bool // with value
	// at and after are revisions of the group of the key; the flags are given or not.
	at, after           uint64
	atGiven, afterGiven bool
	ttl                 time.Duration
}

func (p *putConditions) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&p.absent, "if-absent", false, "put only if the key has no value")
	flags.BoolVar(&p.present, "if-present", false, "put only if the key has a value")
	flags.StringVar(&p.value, "if-value", "", "put only if the key has this value: compare and set")
	flags.Uint64Var(&p.at, "if-revision", 0, "put only if the key was changed last at this revision, such as put or get --revision prints (0: it has no value)")
	flags.Uint64Var(&p.after, "if-changed-after", 0, "put only if the key has a value and was changed behind this revision")
	flags.DurationVar(&p.ttl, "ttl", 0, "remove the key after this time, 1ms or more (0: never)")
}

// errCondition says that a put did nothing.
var errCondition = errors.New("the condition does not hold; nothing was changed")

// check returns what is wrong with the flags, and whether there are any.
func (p *putConditions) check(cmd *cobra.Command, size int64) (any bool, err error) {
	flags := cmd.Flags()
	p.compare, p.atGiven, p.afterGiven = flags.Changed("if-value"), flags.Changed("if-revision"), flags.Changed("if-changed-after")
	conditions := 0
	for _, given := range []bool{p.absent, p.present, p.compare, p.atGiven, p.afterGiven} {
		if given {
			conditions++
		}
	}
	switch {
	case conditions > 1:
		return true, fmt.Errorf("put: --if-absent, --if-present, --if-value, --if-revision, --if-changed-after: %d of them, want one at most; %w", conditions, errUsage)
	case p.ttl < 0 || p.ttl > 0 && p.ttl < time.Millisecond:
		return true, fmt.Errorf("--ttl: %v, want 1ms or more, or 0 for no end; %w", p.ttl, errUsage)
	case conditions == 0 && p.ttl == 0:
		return false, nil
	case size > kv.MaxInlineBytes:
		return true, fmt.Errorf("put: a value of %d bytes with a condition or a time to live, want at most %d; %w", size, kv.MaxInlineBytes, errUsage)
	}
	return true, nil
}

// put sets the key if the condition holds.
func (p *putConditions) put(ctx context.Context, c *client.Client, key string, in io.Reader, size int64) (client.Written, error) {
	value := make([]byte, size)
	if _, err := io.ReadFull(in, value); err != nil {
		return client.Written{}, fmt.Errorf("read the value: %w", err)
	}
	req := &kvpb.TxnRequest{Then: []*kvpb.Action{{Kind: kvpb.Action_PUT, Key: key, Value: value, TtlMs: uint64(p.ttl.Milliseconds())}}}
	switch {
	case p.absent:
		req.Compares = []*kvpb.Compare{{Key: key, Want: &kvpb.Compare_Exists{}}}
	case p.present:
		req.Compares = []*kvpb.Compare{{Key: key, Want: &kvpb.Compare_Exists{Exists: true}}}
	case p.compare:
		req.Compares = []*kvpb.Compare{{Key: key, Want: &kvpb.Compare_Value{Value: []byte(p.value)}}}
	case p.atGiven:
		req.Compares = []*kvpb.Compare{{Key: key, Want: &kvpb.Compare_Revision{Revision: p.at}}}
	case p.afterGiven:
		req.Compares = []*kvpb.Compare{{Key: key, Want: &kvpb.Compare_ChangedAfter{ChangedAfter: p.after}}}
	}
	resp, err := c.Txn(ctx, req)
	if err == nil && !resp.GetSucceeded() {
		err = fmt.Errorf("put %s: %w", printable(key), errCondition)
	}
	return client.Written{Index: resp.GetIndex(), Position: resp.GetPosition()}, err
}

// watchResult is an event, as --json prints it.
type watchResult struct {
	Kind  string `json:"kind"` // put, delete, expire or deadline
	Key   string `json:"key"`
	Value []byte `json:"value,omitempty"` // base64; absent above 64 KiB
	Bytes uint64 `json:"bytes"`
	place
}

func (r watchResult) String() string {
	text := fmt.Sprintf("%s %s", r.Kind, printable(r.Key))
	if r.Kind == "put" && uint64(len(r.Value)) == r.Bytes {
		text += " = " + printable(string(r.Value))
	} else if r.Kind == "put" {
		text += fmt.Sprintf(" (%d bytes)", r.Bytes)
	}
	return fmt.Sprintf("%s%v", text, r.place)
}

func newWatch() *cobra.Command {
	f := clientFlags{timeout: time.Hour}
	var after uint64
	var count uint
	cmd := &cobra.Command{
		Use:   "watch PREFIX",
		Short: "Print changes of the keys that begin with PREFIX",
		Long: "watch prints each change of keys that begin with PREFIX, from now on or from a revision on, and\n" +
			"goes on at another node if one fails. A node remembers the last changes only; if it has\n" +
			"forgotten those that are asked for, watch says so and ends.",
		Example: "  kvdemo watch config/ --json",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().Uint64Var(&after, "after", 0, "begin behind this revision, such as put prints, of a cluster with one group (0: now)")
	cmd.Flags().UintVar(&count, "count", 0, "end after so many changes (0: go on until --timeout)")
	return f.runs(cmd, func(ctx context.Context, c *client.Client, args []string) error {
		return watchKeys(ctx, cmd, &f, c, args[0], after, count)
	})
}

// errEnough ends a watch that has printed what it was to print.
var errEnough = errors.New("enough")

// watchKeys prints events until there are enough, or the time is up.
func watchKeys(ctx context.Context, cmd *cobra.Command, f *clientFlags, c *client.Client, prefix string, after uint64, count uint) error {
	var from []*kvpb.Position
	if after > 0 {
		from = []*kvpb.Position{{Group: 1, Revision: after}}
	}
	left := count
	err := c.Watch(ctx, prefix, from, func(r *kvpb.WatchResponse) error {
		for _, e := range r.GetEvents() {
			result := watchResult{
				Kind: map[kvpb.WatchResponse_Event_Kind]string{
					kvpb.WatchResponse_Event_PUT: "put", kvpb.WatchResponse_Event_DELETE: "delete", kvpb.WatchResponse_Event_EXPIRE: "expire", kvpb.WatchResponse_Event_DEADLINE: "deadline",
				}[e.GetKind()],
				Key: e.GetKey(), Value: e.GetValue(), Bytes: e.GetSize(), place: place{r.GetPosition().GetGroup(), e.GetRevision()},
			}
			if err := f.print(cmd, result); err != nil {
				return err
			}
			if left--; left == 0 {
				return errEnough
			}
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
