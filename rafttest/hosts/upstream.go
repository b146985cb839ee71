// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	upstream "go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"

	weftcore "github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/theirs"
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

func (c upstreamCore) Ready() raft.Ready { return theirs.Ready(c.RawNode.Ready()) }

func (c upstreamCore) Advance() { c.RawNode.Advance(upstream.Ready{}) }

func (c upstreamCore) ReportSnapshot(id uint64, ok bool) {
	c.RawNode.ReportSnapshot(id, theirs.SnapshotStatus(ok))
}

func (c upstreamCore) State() weftcore.CoreState {
	s := c.BasicStatus()
	return weftcore.CoreState{Term: s.GetTerm(), Commit: s.GetCommit(), Applied: s.Applied, Lead: s.Lead, Role: raft.StateType(s.RaftState)}
}

func (c upstreamCore) Visit(see func(id uint64, learner bool, pr tracker.Progress)) {
	c.WithProgress(func(id uint64, typ upstream.ProgressType, pr tracker.Progress) {
		see(id, typ == upstream.ProgressTypeLearner, pr)
	})
}
