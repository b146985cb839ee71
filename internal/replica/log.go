// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/storage"
)

// Batch is a step of the state machine; rawnode.Batch says what each field means.
type Batch struct {
	Index    uint64
	Commands [][]byte
	Host     []byte
}

// SnapshotMeta describes a snapshot; rawnode.SnapshotMeta says what each field means.
type SnapshotMeta struct {
	Index uint64
	Host  []byte
}

// Log is the durable log of one group. *storage.Group is one.
//
// A replica's core reads the log while another stage writes to the log.
type Log interface {
	raft.Storage
	// Append queues w; done is called when w is durable, or with the reason why w's durability
	// is not known. The calls of done come in the order of Append.
	Append(w storage.Write, done func(error)) error
	// SetSnapshot says that the host holds a durable state at meta.Index.
	SetSnapshot(meta *pb.SnapshotMetadata, data []byte) error
	// Compact drops the entries up to index.
	Compact(index uint64) error
}

var _ Log = (*storage.Group)(nil)

// FindCoded returns the first coded entry of a log, or 0 if there is none. A node without
// coding must not be started on a log with a coded entry, because the node would take units
// for commands: first call Densify, and wait until the node's log is dense. clear is
// raft.Coding.ClearPrefix. FindCoded reads the whole log.
func FindCoded(log raft.Storage, clear int) (uint64, error) {
	first, err := log.FirstIndex()
	if err != nil {
		return 0, err
	}
	last, err := log.LastIndex()
	for err == nil && first <= last {
		var entries []*pb.Entry
		if entries, err = log.Entries(first, last+1, findCodedBytes); err != nil || len(entries) == 0 {
			break
		}
		for _, e := range entries {
			if e.GetType() == pb.EntryNormal && ecraft.IsEnvelope(e.GetData(), clear) {
				return e.GetIndex(), nil
			}
		}
		first += uint64(len(entries))
	}
	return 0, err
}

// findCodedBytes is how much of the log FindCoded reads at a time.
const findCodedBytes = 1 << 20
