// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import pb "go.etcd.io/raft/v3/raftpb"

// SnapshotStatus says how sending a snapshot went.
type SnapshotStatus int

const (
	// SnapshotFinish says that the snapshot was sent.
	SnapshotFinish SnapshotStatus = 1
	// SnapshotFailure says that the member does not have the snapshot.
	SnapshotFailure SnapshotStatus = 2
)

// IsLocalMsg reports whether messages of a type are between a node and its own
// host, and so never come from a network.
func IsLocalMsg(msgt pb.MessageType) bool {
	switch msgt {
	case pb.MsgHup, pb.MsgBeat, pb.MsgUnreachable, pb.MsgSnapStatus, pb.MsgCheckQuorum,
		pb.MsgStorageAppend, pb.MsgStorageAppendResp, pb.MsgStorageApply, pb.MsgStorageApplyResp:
		return true
	}
	return false
}

// IsResponseMsg reports whether messages of a type answer another message, or
// report on its fate.
func IsResponseMsg(msgt pb.MessageType) bool {
	switch msgt {
	case pb.MsgAppResp, pb.MsgVoteResp, pb.MsgHeartbeatResp, pb.MsgUnreachable, pb.MsgReadIndexResp,
		pb.MsgPreVoteResp, pb.MsgStorageAppendResp, pb.MsgStorageApplyResp:
		return true
	}
	return false
}

// IsLocalMsgTarget reports whether id addresses one of the host's storage
// threads.
func IsLocalMsgTarget(id uint64) bool { return id == LocalAppendThread || id == LocalApplyThread }
