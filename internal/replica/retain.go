// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"cmp"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/encoded"
)

// retention decides how much of the log is kept. The entries beyond the durable state are
// always kept: the log is the state's write-ahead log. Behind the durable state a bounded
// number of entries and bytes stays for lagging followers, because sending entries is
// cheaper than sending a snapshot. The bound does not wait for followers: a dead follower
// must not fill the others' disks.
//
// A follower that gets a snapshot is the exception. If the writes during the transfer
// exceed the kept entries, the follower needs another snapshot at once, and after each
// later snapshot again. So a leader holds the entries behind the snapshot until the
// follower has them, too, or is gone: up to holdFactor times the usual amount, and only
// with room to write.
type retention struct {
	*facts

	// reported is the index up to which the state is durable, as the state machine says; durable is what
	// counts of that.
	//
	// Invariant: durable <= reported, and both log and state have everything up to durable.
	reported  uint64
	durable   uint64
	compacted uint64 // the last index given up
	total     uint64 // bytes appended in this process
	// marks are indexes and the total behind them, ascending, a few for each
	// cfg.RetainBytes.
	marks []sizeMark
	// confs are configurations and the index from which each holds, ascending;
	// the first holds at durable.
	confs []stateMark
	holds map[uint64]hold // by follower
}

// hold is the part of the log that a follower needs behind its snapshot.
type hold struct {
	index uint64 // of the snapshot, or an earlier one
	total uint64 // of bytes, when the hold began
	sent  bool   // the follower has the snapshot
}

// holdFactor bounds the held part.
const holdFactor = 16

type sizeMark struct{ index, total uint64 }

// marksPerBudget is how finely the bytes are known.
const marksPerBudget = 16

// newRetention takes what the state machine came up with for durable: so
// StateMachine.Load promises.
func newRetention(f *facts) retention {
	cfg, h := &f.cfg, f.host
	k := retention{facts: f, reported: h.at.index, durable: h.at.index, holds: map[uint64]hold{}}
	k.configured()
	if first, err := cfg.Log.FirstIndex(); err == nil {
		k.compacted = first - 1
	}
	return k
}

// appended notes new entries and returns their bytes.
func (k *retention) appended(entries []*pb.Entry) (bytes uint64) {
	for _, e := range entries {
		bytes += uint64(encoded.Size(e))
	}
	last := entries[len(entries)-1].GetIndex()
	for n := len(k.marks); n > 0 && k.marks[n-1].index >= entries[0].GetIndex(); n-- {
		k.marks = k.marks[:n-1] // replaced by another leader
	}
	k.total += bytes
	if n := len(k.marks); n == 0 || k.total-k.marks[n-1].total >= k.cfg.RetainBytes/marksPerBudget {
		k.marks = append(k.marks, sizeMark{index: last, total: k.total})
	}
	return bytes
}

// behind returns about how many bytes of entries follow an index, at least 1, as far as this process has appended them.
func (k *retention) behind(index uint64) int64 {
	i, _ := slices.BinarySearchFunc(k.marks, index, func(m sizeMark, index uint64) int { return cmp.Compare(m.index, index) })
	if i == len(k.marks) {
		return 1
	}
	return int64(k.total-k.marks[i].total) + 1
}

// reset notes that the log begins anew behind an index.
func (k *retention) reset(index uint64) {
	k.marks, k.compacted = nil, max(k.compacted, index)
}

// configured notes the configuration as of the host state.
func (k *retention) configured() {
	if n := len(k.confs); n == 0 || k.confs[n-1].conf != k.host.conf {
		k.confs = append(k.confs, k.host.mark())
	}
}

// count counts what the state machine has reported, up to where the log is durable, too: stored is the end of that. The
// state may be ahead, by a snapshot, or because entries were applied before this node's log had them
// (MaxEarlyApplyBytes). The log cannot drop entries before it has them; and the members of a coding
// group count on what is not released here (rule E4 in raft/early.go). count reports whether more is durable.
func (k *retention) count(stored uint64) (more bool) {
	if k.reported <= k.durable {
		return false
	}
	index := min(k.reported, k.emitted.index, stored)
	if index <= k.durable || index <= k.compacted {
		return false
	}
	k.durable = index
	for len(k.confs) > 1 && k.confs[1].at.index <= index {
		k.confs = k.confs[1:]
	}
	return true
}

// compact returns a Compact if enough of the log can go, or nil.
func (k *retention) compact() *Compact {
	to := k.held(k.target())
	// A record for each entry would cost more than it frees.
	if to <= k.compacted || to-k.compacted < k.cfg.RetainEntries/marksPerBudget && !k.tooManyBytes() {
		return nil
	}
	k.compacted = to
	for len(k.marks) > 1 && k.marks[1].index <= to {
		k.marks = slices.Delete(k.marks, 0, 1)
	}
	return &Compact{
		Snapshot: &pb.SnapshotMetadata{Index: new(k.durable), ConfState: k.confs[0].conf},
		Index:    to,
	}
}

// arrived notes how sending a snapshot ended.
func (k *retention) arrived(to uint64, ok bool) {
	h, held := k.holds[to]
	delete(k.holds, to)
	if h.sent = true; held && ok {
		k.holds[to] = h
	}
}

// held returns up to where the log may go, of what is not worth keeping otherwise.
func (k *retention) held(to uint64) uint64 {
	if len(k.holds) == 0 {
		return to
	}
	_, progress := k.core.Members()
	held := to // each hold is compared with to alone, so their order does not matter
	for id, h := range k.holds {
		p, member := progress[id]
		needs := max(h.index, p.Match)
		switch {
		case !k.leads(), k.stalled != nil, !member, h.sent && (needs >= to || !k.reachable(id)),
			to > h.index && (to-h.index)/holdFactor >= k.cfg.RetainEntries, (k.total-h.total)/holdFactor >= k.cfg.RetainBytes:
			delete(k.holds, id)
		default:
			held = min(held, needs)
		}
	}
	return held
}

// target returns the last index that is not worth keeping.
func (k *retention) target() uint64 {
	to := uint64(0)
	if k.durable > k.cfg.RetainEntries {
		to = k.durable - k.cfg.RetainEntries
	}
	for _, m := range k.marks {
		if m.index <= k.durable && k.total-m.total >= k.cfg.RetainBytes {
			to = max(to, m.index)
		}
	}
	return to
}

// tooManyBytes reports whether a whole mark's worth of bytes can go.
func (k *retention) tooManyBytes() bool {
	return len(k.marks) > 1 && k.total-k.marks[1].total >= k.cfg.RetainBytes
}
