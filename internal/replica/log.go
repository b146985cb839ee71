// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	pb "go.etcd.io/raft/v3/raftpb"

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
