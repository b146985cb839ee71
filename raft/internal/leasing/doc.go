// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package leasing is roster leases: an extension of Raft, behind the seam that
// raft/coder.go describes. The rules are those of package leases, which knows nothing
// of Raft. This package tells leases.Node what happens in Raft, asks it what Raft may
// do, and carries its messages.
//
//	leasing.go    news of the log, of roles and of members, and the brakes
//	messages.go   messages of leases, and what Raft's own messages tell
//	leading.go    what a leader does: changes of the configuration, transfers
//	notes.go      early accept notes
//	reads.go      reads that this node answers, or holds
package leasing
