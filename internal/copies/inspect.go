// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/book"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/raft"
)

// Inspection is what a directory has of a group: see package weft.
type Inspection struct {
	LastIndex, LastTerm uint64
	Addresses           map[uint64]string
	Members             *pb.ConfState // nil: not known
}

// Inspect is weft.Inspect.
func Inspect(c Config) (Inspection, error) {
	d, err := openSurvivor(c)
	if err != nil {
		return Inspection{}, fmt.Errorf("inspect: %w", err)
	}
	i, err := d.inspect()
	if err = errors.Join(err, d.engine.Close()); err != nil {
		return i, fmt.Errorf("inspect group %d at node %d: %w", c.Group, c.ID, err)
	}
	return i, nil
}

func (d *directory) inspect() (i Inspection, err error) {
	b, err := book.Load(d.Book)
	if err != nil {
		return i, err
	}
	i.Addresses = b.All()
	if i.LastIndex, err = d.log.LastIndex(); err != nil {
		return i, err
	}
	if i.LastTerm, err = d.log.Term(i.LastIndex); err != nil {
		return i, err
	}
	i.Members, err = d.members()
	return i, err
}

// inspectTime bounds how long Inspect reads the log for the members.
const inspectTime = time.Minute

// members returns the members that the log shows, or nil.
func (d *directory) members() (*pb.ConfState, error) {
	snapshot, err := d.log.Snapshot()
	if errors.Is(err, raft.ErrSnapshotTemporarilyUnavailable) {
		return nil, nil // an empty log
	}
	if err != nil {
		return nil, err
	}
	meta := snapshot.GetMetadata()
	tail, err := replica.NewLogTail(d.log, meta.GetIndex(), nil, 0)
	if errors.Is(err, replica.ErrCodedTail) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), inspectTime)
	defer cancel()
	conf, err := d.membersBehind(ctx, tail, &stateless{
		blank: blank{applied: meta.GetIndex()}, host: replica.HostBytes(meta.GetTerm(), meta.GetIndex(), meta.GetConfState()),
	})
	if errors.Is(err, raft.ErrCodedEntries) {
		return nil, nil // with a clear prefix, of which NewLogTail does not know
	}
	return conf, err
}

// stateless is a state machine of which only the members are known.
type stateless struct {
	blank
	host []byte
}

func (s *stateless) Load() (uint64, []byte, error) { return s.applied, s.host, nil }
