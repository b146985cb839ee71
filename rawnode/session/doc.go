// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package session lets the clients of a replicated state machine try a command
// again, at any node and as often as they like, and have it applied once.
//
// A host applies what it was given once. A client that lost its node does not
// know what became of its command, and gives it to another node: to the hosts
// that is a second command. So the state machine itself has to tell. A client
// opens a session, by a command that calls [Table.Open] at every replica, and
// numbers its commands 1, 2, 3, ... Before it applies one, the state machine
// asks [Table.Admit]; afterwards it calls [Table.Applied] with the result:
//
//	switch verdict, result := table.Admit(id, sequence); verdict {
//	case session.Fresh:
//		result = apply(command)
//		err = table.Applied(id, sequence, acknowledged, result)
//	case session.Repeated:
//		// result is what the first time returned
//	default:
//		// refuse: verdict says why
//	}
//
// Commands of a session are applied in the order of their numbers: one that
// arrives behind a later one is refused, for good. A client with several
// commands under way at a time therefore opens as many sessions.
//
// A table is a function of the calls made to it, so all replicas have the same.
// It is part of the state: what [Table.Changes] yields is written together with
// the commands' effects, goes into snapshots, and is what [Load] reads.
//
// The idea is from section 6.3 of Ongaro's dissertation on Raft.
package session
