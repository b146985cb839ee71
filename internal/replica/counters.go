// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

// Counters count since the start of a replica.
type Counters struct {
	Ticks, MessagesIn, MessagesOut   uint64
	BadMessages                      uint64 // dropped, see ErrBadMessage
	AppendBytesOut                   uint64 // of entries, sent as a leader
	Appends, AppendedEntries         uint64
	AppendedBytes                    uint64
	AppliedEntries, AppliedCommands  uint64
	EarlyEntries                     uint64 // of AppliedEntries: not durable in this node's log
	DuplicateBatches                 uint64 // applied before, so skipped
	Proposals, Batches, ForwardedOut uint64
	ForwardedIn, RefusedIn, Resent   uint64
	HeldIn                           uint64 // times that batches of others waited for the round under way
	Reads, ReadRounds                uint64
	ReadsWithoutRound                uint64 // answered by their policy alone
	// The next fields count reads without an error, by voucher; see [ServedBy].
	ReadsByLeader, ReadsByLease       uint64
	ReadsByRoster, ReadsByQuorum      uint64
	ReadsStale                        uint64
	ReadsByPermit                     uint64 // of ReadsByLease and ReadsByRoster: without a turn of the replica
	QuorumRounds                      uint64 // questions to a majority where their logs end
	QuorumFallbacks                   uint64 // quorum reads that had to ask the leader
	QuorumTurns                       uint64 // reads that asked a majority, as no leader answered
	QuorumRestarts                    uint64 // quorum reads that met a change of members
	SnapshotsSent, SnapshotsInstalled uint64
	SnapshotsFailed                   uint64 // to be sent, at this end or the other
	RestoresFailed                    uint64 // by this node's state machine
	Refused, Unknown                  uint64 // calls that ended so
	RefusedLate                       uint64 // of these: too near to their deadline to be sent
	Repeats                           uint64 // appends sent again, without entries
	LateAcks                          uint64 // acknowledgements without news, which waited
	// The next fields count what names and relays have saved, in bytes of data: left out of appends, of these for relays
	// to pass on, and passed on by this node; and questions of members that lacked such data, to this node as their leader.
	NamedBytes, RelayedBytes uint64
	PassedBytes, NamesLacked uint64
	JoinedAppends            uint64 // to readers: left with the append before
	Elections                uint64 // terms in which this node led
	Yields                   uint64 // campaigns begun anew, because a rival went first
	Stalls                   uint64 // times this node could not write
	AppendsLost              uint64 // appends to this node meanwhile that found no room: the leader sends them again
	// The next fields count attempts of this node, as a leader, to hand leadership over, by reason:
	// a call asked for it, the node loses its vote, it has no room, its log's disk is late. Nobody
	// took over in time from a late leader, so it fell silent: Silences.
	HandOversAsked, HandOversLeaving uint64
	HandOversFull, HandOversLate     uint64
	// HandOversSlow counts those because another member was faster, HandOversPreferred those because
	// another member has a larger weight.
	HandOversSlow, HandOversPreferred uint64
	Silences                          uint64
	GatewaysAttached                  uint64 // streams begun, as the home of gateways
	GatewayBatches                    uint64 // whose results were for gateways
	ReportsAgain                      uint64 // to gateways, because they may be lost
	Queries                           uint64 // of gateways
	Strangers                         uint64 // messages of nodes whose group began with other first members, not looked at
}
