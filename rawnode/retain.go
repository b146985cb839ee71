// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"slices"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"
)

// retention decides how much of the log is kept. What lies beyond the durable
// state is always kept: the log is the state's write-ahead log. Behind it a
// bounded number of entries and bytes stays, for followers that lag, as sending
// those is cheaper than sending a snapshot. It does not wait for followers: one
// that is gone must not fill the others' disks.
type retention struct {
	maxEntries, maxBytes uint64

	durable   uint64
	compacted uint64 // the last index that was given up
	total     uint64 // bytes appended in this process
	// marks are indexes and the total behind them, ascending, a few for each
	// maxBytes.
	marks []sizeMark
	// confs are configurations and the index from which each holds, ascending;
	// the first holds at durable.
	confs []confMark
}

type sizeMark struct{ index, total uint64 }

type confMark struct {
	at   logMark
	conf *pb.ConfState
}

// marksPerBudget is how finely the bytes are known.
const marksPerBudget = 16

func newRetention(cfg ReplicaConfig, h *hostState) retention {
	k := retention{maxEntries: cfg.RetainEntries, maxBytes: cfg.RetainBytes, durable: h.at.index}
	k.configured(h)
	if first, err := cfg.Log.FirstIndex(); err == nil {
		k.compacted = first - 1
	}
	return k
}

// appended notes new entries and returns their bytes.
func (k *retention) appended(entries []*pb.Entry) (bytes uint64) {
	for _, e := range entries {
		bytes += uint64(proto.Size(e))
	}
	last := entries[len(entries)-1].GetIndex()
	for n := len(k.marks); n > 0 && k.marks[n-1].index >= entries[0].GetIndex(); n-- {
		k.marks = k.marks[:n-1] // replaced by another leader
	}
	k.total += bytes
	if n := len(k.marks); n == 0 || k.total-k.marks[n-1].total >= k.maxBytes/marksPerBudget {
		k.marks = append(k.marks, sizeMark{index: last, total: k.total})
	}
	return bytes
}

// reset notes that the log begins anew behind an index.
func (k *retention) reset(index uint64) {
	k.marks, k.compacted = nil, max(k.compacted, index)
}

// configured notes the configuration as of the host state.
func (k *retention) configured(h *hostState) {
	if n := len(k.confs); n == 0 || k.confs[n-1].conf != h.conf {
		k.confs = append(k.confs, confMark{at: h.at, conf: h.conf})
	}
}

// Durable says up to which index the state machine's state is durable. The
// replica answers with a Compact when enough of the log can go.
func (r *Replica) Durable(index uint64) {
	k := &r.keep
	// Entries of the snapshot that the log itself does not have yet cannot be
	// dropped from it.
	index = min(index, r.emitted.index)
	if index <= k.durable || index <= k.compacted {
		return
	}
	k.durable = index
	for len(k.confs) > 1 && k.confs[1].at.index <= index {
		k.confs = k.confs[1:]
	}
	to := k.target()
	// A record for each entry would cost more than it frees.
	if to <= k.compacted || to-k.compacted < k.maxEntries/marksPerBudget && !k.tooManyBytes() {
		return
	}
	k.compacted = to
	for len(k.marks) > 1 && k.marks[1].index <= to {
		k.marks = slices.Delete(k.marks, 0, 1)
	}
	r.out.Compact = &Compact{
		Snapshot: &pb.SnapshotMetadata{Index: new(index), ConfState: k.confs[0].conf},
		Index:    to,
	}
}

// target returns the last index that is not worth keeping.
func (k *retention) target() uint64 {
	to := uint64(0)
	if k.durable > k.maxEntries {
		to = k.durable - k.maxEntries
	}
	for _, m := range k.marks {
		if m.index <= k.durable && k.total-m.total >= k.maxBytes {
			to = max(to, m.index)
		}
	}
	return to
}

// tooManyBytes reports whether a whole mark's worth of bytes can go.
func (k *retention) tooManyBytes() bool {
	return len(k.marks) > 1 && k.total-k.marks[1].total >= k.maxBytes
}
