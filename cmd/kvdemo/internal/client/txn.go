// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// Txn does a transaction, once, however often it has to be sent. Its keys must be of one
// group; the session in req is the client's business.
func (c *Client) Txn(ctx context.Context, req *kvpb.TxnRequest) (*kvpb.TxnResponse, error) {
	key := ""
	for _, compare := range req.GetCompares() {
		key = compare.GetKey()
	}
	for _, list := range [][]*kvpb.Action{req.GetThen(), req.GetOtherwise()} {
		for _, a := range list {
			key = a.GetKey()
		}
	}
	return write(ctx, c, key, func(ctx context.Context, kv kvpb.KVClient, s *kvpb.Session) (*kvpb.TxnResponse, error) {
		return kv.Txn(ctx, &kvpb.TxnRequest{Compares: req.GetCompares(), Then: req.GetThen(), Otherwise: req.GetOtherwise(), Session: s})
	})
}

// PutTTL sets a key to a value of at most 1 MiB that goes away after so many
// milliseconds, 1 or more.
func (c *Client) PutTTL(ctx context.Context, key string, value []byte, ms uint64) (Written, error) {
	if ms == 0 {
		return Written{}, fmt.Errorf("%w time to live: 0 ms, want 1 or more", kv.ErrInvalid)
	}
	resp, err := c.Txn(ctx, &kvpb.TxnRequest{Then: []*kvpb.Action{{Kind: kvpb.Action_PUT, Key: key, Value: value, TtlMs: ms}}})
	return Written{resp.GetIndex(), resp.GetPosition()}, err
}

// Expire has a key go away after so many milliseconds; 0: not any more.
func (c *Client) Expire(ctx context.Context, key string, ms uint64) error {
	_, err := c.Txn(ctx, &kvpb.TxnRequest{Then: []*kvpb.Action{{Kind: kvpb.Action_DEADLINE, Key: key, TtlMs: ms}}})
	return err
}

// Backup calls each with the chunks of a backup from one node, after a call of begin. If the
// node fails, Backup begins again at another node, with another call of begin.
func (c *Client) Backup(ctx context.Context, begin func() error, each func(*kvpb.BackupChunk) error) error {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	return c.doAt(context.WithValue(ctx, wholeTime{}, true), false, func(ctx context.Context, conn *grpc.ClientConn) error {
		if err := begin(); err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(ctx) // ends the stream
		defer cancel()
		stream, err := kvpb.NewAdminClient(conn).Backup(ctx, &kvpb.BackupRequest{})
		if err != nil {
			return err
		}
		for {
			chunk, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := each(chunk); err != nil {
				return err
			}
		}
	})
}

// Watch calls each with the changes of all keys that begin with the prefix, behind the
// positions or from now on, until it returns an error. If a node fails, the watch goes
// on at another, behind what was seen.
func (c *Client) Watch(ctx context.Context, prefix string, after []*kvpb.Position, each func(*kvpb.WatchResponse) error) error {
	seen := map[uint64]uint64{}
	for _, p := range after {
		seen[p.GetGroup()] = p.GetRevision()
	}
	return c.doAt(context.WithValue(ctx, wholeTime{}, true), false, func(ctx context.Context, conn *grpc.ClientConn) error {
		ctx, cancel := context.WithCancel(ctx) // ends the stream
		defer cancel()
		req := &kvpb.WatchRequest{Keys: &kvpb.WatchRequest_Prefix{Prefix: prefix}}
		for group, revision := range seen {
			req.After = append(req.After, &kvpb.Position{Group: group, Revision: revision})
		}
		stream, err := kvpb.NewKVClient(conn).Watch(ctx, req)
		if err != nil {
			return err
		}
		for {
			r, err := stream.Recv()
			if err != nil {
				return err
			}
			if err := each(r); err != nil {
				return err
			}
			seen[r.GetPosition().GetGroup()] = r.GetPosition().GetRevision()
		}
	})
}
