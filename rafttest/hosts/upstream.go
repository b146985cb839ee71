// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	cryptorand "crypto/rand"
	"encoding/binary"

	upstream "go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"

	weftcore "github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/theirs"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// upstreamLibrary is go.etcd.io/raft.
//
// Upstream draws election timeouts from crypto/rand, so its runs set the reader
// of crypto/rand, and go singly.
func upstreamLibrary() library {
	return library{Name: "upstream", Types: upstreamTypes, New: newUpstream}
}

func newUpstream(_ *reach, cfg raft.Config) (core, error) {
	rn, err := upstream.NewRawNode(theirs.Config(&cfg))
	if err != nil {
		return nil, err
	}
	return upstreamCore{rn}, nil
}

type upstreamCore struct{ *upstream.RawNode }

var _ core = upstreamCore{}

// Ready implements Core.
func (c upstreamCore) Ready() raft.Ready {
	rd := c.RawNode.Ready()
	out := raft.Ready{
		HardState: rd.HardState, Entries: rd.Entries, Snapshot: rd.Snapshot,
		CommittedEntries: rd.CommittedEntries, Messages: rd.Messages, MustSync: rd.MustSync,
		ReadStates: theirs.ReadStates(rd.ReadStates),
	}
	if rd.SoftState != nil {
		out.SoftState = &raft.SoftState{Lead: rd.Lead, RaftState: raft.StateType(rd.RaftState)}
	}
	return out
}

// Advance implements Core.
func (c upstreamCore) Advance() { c.RawNode.Advance(upstream.Ready{}) }

// ReportSnapshot implements Core.
func (c upstreamCore) ReportSnapshot(id uint64, ok bool) {
	c.RawNode.ReportSnapshot(id, theirs.SnapshotStatus(ok))
}

// State implements Core.
func (c upstreamCore) State() weftcore.CoreState {
	s := c.BasicStatus()
	return weftcore.CoreState{Term: s.GetTerm(), Commit: s.GetCommit(), Applied: s.Applied, Lead: s.Lead, Role: raft.StateType(s.RaftState)}
}

// Visit implements Core.
func (c upstreamCore) Visit(see func(id uint64, learner bool, pr tracker.Progress)) {
	c.WithProgress(func(id uint64, typ upstream.ProgressType, pr tracker.Progress) {
		see(id, typ == upstream.ProgressTypeLearner, pr)
	})
}

// entropy stands in for crypto/rand's reader during a run.
type entropy struct{ world.Draws }

// Read fills b with draws of the seed.
func (e entropy) Read(b []byte) (int, error) {
	for i := 0; i < len(b); i += 8 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], e.Uint64())
		copy(b[i:], word[:])
	}
	return len(b), nil
}

// seedEntropy makes crypto/rand draw from the run's randomness, until the
// returned function is called.
func seedEntropy(d world.Draws) (restore func()) {
	before := cryptorand.Reader
	cryptorand.Reader = entropy{d}
	return func() { cryptorand.Reader = before }
}
