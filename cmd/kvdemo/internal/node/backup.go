// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// Backup implements kvpb.AdminServer.
func (a *admin) Backup(_ *kvpb.BackupRequest, stream grpc.ServerStreamingServer[kvpb.BackupChunk]) error {
	exports, err := a.exports(stream.Context())
	defer func() {
		for _, e := range exports {
			_ = e.Close() // it was only read
		}
	}()
	if err != nil {
		return toStatus(err)
	}
	first := &kvpb.BackupChunk{Cluster: a.n.cfg.Cluster}
	for i, e := range exports {
		first.Positions = append(first.Positions, &kvpb.Position{Group: uint64(i + 1), Revision: e.Revision})
	}
	err = stream.Send(first)
	for _, e := range exports {
		if err == nil {
			err = e.Each(func(x *kv.Exported) error { return a.sendExported(x, stream) })
		}
	}
	return toStatus(err)
}

// exports opens the states of all groups, of one moment. An error may come with some.
func (a *admin) exports(ctx context.Context) (exports []*kv.Export, err error) {
	ctx, cancel := withMargin(ctx)
	defer cancel()
	if err := a.n.await(ctx); err != nil {
		return nil, err
	}
	open := func() error {
		for _, g := range a.n.groups {
			e, err := g.store.Export()
			if err != nil {
				return err
			}
			exports = append(exports, e)
		}
		return nil
	}
	if len(a.n.groups) == 1 { // its log is an order of all that clients do
		if _, err := a.n.groups[0].host.Read(ctx); err != nil {
			return nil, unseen("look at the state", err)
		}
		err := open()
		return exports, err
	}
	for _, g := range a.n.groups {
		if err := a.n.enable(ctx, g, 1); err != nil {
			return nil, err
		}
	}
	err = a.n.freeze(ctx, open)
	return exports, err
}

// sendExported sends a key and its value.
func (a *admin) sendExported(x *kv.Exported, stream grpc.ServerStreamingServer[kvpb.BackupChunk]) error {
	chunk := &kvpb.BackupChunk{Key: x.Key, Size: uint64(x.Size), DeadlineMs: x.Deadline}
	if x.Type > kv.TypeString {
		chunk.Type = x.Type.String()
	}
	for {
		piece, err := x.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-a.n.watches.ending:
			return errBackupEnded
		default:
		}
		chunk.Data = piece
		if err := stream.Send(chunk); err != nil {
			return err
		}
		chunk = &kvpb.BackupChunk{}
	}
}

// errBackupEnded ends the backups of a node that stops.
var errBackupEnded = refusal(codes.Unavailable, "the node stops: begin the backup again at another node")
