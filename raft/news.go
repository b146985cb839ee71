// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	pb "go.etcd.io/raft/v3/raftpb"
)

// News of the log, on the way to the extension and to the electorate: raft is the logOwner.

func (r *raft) appended(ents []*pb.Entry) {
	r.extension.Appended(ents)
	if r.members.Appended(ents) {
		r.votersChanged()
	}
}

func (r *raft) truncated(from uint64) {
	r.extension.Truncated(from)
	if r.members.Cut(from) {
		r.votersChanged()
	}
}

func (r *raft) roseCommit(from, to uint64) { r.extension.Committed(from, to) }
func (r *raft) restoring(index uint64)     { r.extension.Restored(index) }
func (r *raft) seam() extension            { return r.extension }
func (r *raft) unwritten() *early          { return r.early }
