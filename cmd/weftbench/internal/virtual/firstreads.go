// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"encoding/binary"
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/vnet"
)

// FirstReads is reads at a new leader, of values that the old one had acknowledged: with coded replication
// the new leader was sent a part of each by the old one.
type FirstReads struct {
	Voters, Entries, Size int
	Rest                  time.Duration // between the last answer and the loss of the leader
	Reads                 int
	Seed                  uint64
}

// reader is reads at a cluster: a read is over when the node has applied all up to the index of the read.
type reader struct {
	c     *vnet.Cluster
	asked uint64
	index uint64 // of the last read asked; 0: not known yet
}

// Run returns the time of each read: the first is asked when the votes are in, and each of the others when
// the one before is over.
func (f FirstReads) Run(side Side) (took []time.Duration, err error) {
	o := lan(f.Voters, f.Seed)
	var (
		w lossWatch
		r reader
	)
	w.use(side, &o)
	applied := make([]int, f.Voters+1)
	o.OnApply = func(node uint64, e *pb.Entry) { applied[node] += len(e.GetData()) }
	o.OnRead = func(_ uint64, rs raft.ReadState) {
		if binary.BigEndian.Uint64(rs.RequestCtx) == r.asked {
			r.index = rs.Index
		}
	}
	c, err := elected(o, &w.c, &r.c)
	if err != nil {
		return nil, err
	}
	if err := warm(c, f.Size, f.Seed); err != nil {
		return nil, err
	}
	if done, err := put(c, f.Entries, f.Entries, f.Size, f.Seed); err != nil || !done {
		return nil, fmt.Errorf("%d entries of %d bytes do not all come back in %v: %w", f.Entries, f.Size, patient, err)
	}
	if err := c.Run(c.Now() + f.Rest); err != nil {
		return nil, err
	}
	c.Kill(leader)
	w = lossWatch{c: c}
	if done, err := c.RunUntil(c.Now()+patient, func() bool { return w.won > 0 && c.Leader() != 0 }); err != nil || !done {
		return nil, fmt.Errorf("nobody leads within %v: %w", patient, err)
	}
	for range f.Reads {
		begun := c.Now()
		if len(took) == 0 {
			begun = w.won
		}
		if err := r.read(c.Leader()); err != nil {
			return nil, err
		}
		took = append(took, c.Now()-begun)
	}
	if got, want := applied[c.Leader()], f.Entries*f.Size; got < want {
		return nil, fmt.Errorf("node %d answers with %d bytes applied, want %d", c.Leader(), got, want)
	}
	return took, nil
}

// read asks a node, and waits until it can answer from its state.
func (r *reader) read(node uint64) error {
	r.asked, r.index = r.asked+1, 0
	if err := r.c.Do(node, 0, func(rn *raft.RawNode) { rn.ReadIndex(binary.BigEndian.AppendUint64(nil, r.asked)) }); err != nil {
		return err
	}
	done, err := r.c.RunUntil(r.c.Now()+patient, func() bool { return r.index > 0 && r.c.Applied(node) >= r.index })
	if err == nil && !done {
		err = fmt.Errorf("read %d has no answer within %v", r.asked, patient)
	}
	return err
}
