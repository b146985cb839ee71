// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package leasing is roster leases: an extension of Raft, behind the seam that
// raft/extension.go describes. The rules stand in package leases, which knows nothing of
// Raft. Package leasing reports Raft's events to leases.Node, asks leases.Node for
// Raft's limits, and carries the messages of leases.
//
//	leasing.go    news of the log, of roles and of members, and the brakes
//	messages.go   messages of leases, and the news in Raft's own messages
//	changes.go    which changes of the configuration are in force
//	leading.go    a leader's work: changes of the configuration, transfers
//	notes.go      early accept notes
//	reads.go      reads answered or held by this node
package leasing
