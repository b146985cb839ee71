// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package session lets the clients of a replicated state machine repeat a command, at any node and
// any number of times, while the state machine applies the command once.
//
// A host applies each call of Propose at most once. A client that lost its node does not know
// whether its command was applied, and gives the command to another node; for the hosts, the
// repetition is a second command. So the state machine itself has to recognize the repetition. A
// client opens a session, by a command that calls [Table.Open] at every replica, and numbers its
// commands 1, 2, 3, ... Before the state machine applies a command, the state machine calls
// [Table.Admit]; afterwards [Table.Applied] with the result:
//
//	switch verdict, result := table.Admit(id, sequence); verdict {
//	case session.Fresh:
//		result = apply(command)
//		err = table.Applied(id, sequence, acknowledged, result)
//	case session.Repeated:
//		// result is the result of the first time
//	default:
//		// refuse: verdict gives the reason
//	}
//
// Commands of a session are applied in the order of their numbers: a command that arrives after a
// command with a larger number is refused, also at each repetition. A client with several commands
// under way at a time therefore opens as many sessions.
//
// A table depends only on the calls of its methods, so all replicas have the same table. The table
// is part of the state: the pairs of [Table.Changes] are written together with the effects of the
// commands, and go into snapshots; [Load] reads them.
//
// The idea is from section 6.3 of Ongaro's dissertation on Raft.
package session
