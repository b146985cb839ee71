// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package members reads configurations of groups.
package members

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
)

// Has reports whether a node is a member.
func Has(conf *pb.ConfState, id uint64) bool { return Votes(conf, id) || Learns(conf, id) }

// Votes reports whether a node is a voter, also of the half that a joint configuration leaves.
func Votes(conf *pb.ConfState, id uint64) bool {
	return slices.Contains(conf.GetVoters(), id) || slices.Contains(conf.GetVotersOutgoing(), id)
}

// Learns reports whether a node is a learner, or becomes one.
func Learns(conf *pb.ConfState, id uint64) bool {
	return slices.Contains(conf.GetLearners(), id) || slices.Contains(conf.GetLearnersNext(), id)
}

// IDs returns all members, ascending.
func IDs(conf *pb.ConfState) []uint64 {
	return Sorted(slices.Concat(conf.GetVoters(), conf.GetVotersOutgoing(), conf.GetLearners(), conf.GetLearnersNext()))
}

// Voters returns all voters, ascending.
func Voters(conf *pb.ConfState) []uint64 {
	return Sorted(slices.Concat(conf.GetVoters(), conf.GetVotersOutgoing()))
}

// Sorted returns a copy of ids, ascending, each one once.
func Sorted(ids []uint64) []uint64 {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}
