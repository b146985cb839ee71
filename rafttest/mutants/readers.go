// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Files in which bugs of appends to readers stand.
const (
	holdingFile = "internal/replica/holding.go"
	readersFile = "internal/replica/readers.go"
)

// readers is the bugs of appends that wait for others, and of one name for many entries.
var readers = []bug{
	{"appends are joined across a gap", holdingFile,
		edit("app.GetIndex() == row.end && app.GetLogTerm() == row.term", "app.GetIndex() >= row.end"), "TestHeldAppendsLeaveInOrderAndInTime", 0},
	{"a joined append has the commit index of the first", holdingFile,
		[][2]string{{"	row.app.Commit = app.Commit\n", ""}, {"Index: m.Index,\n			Entries", "Index: m.Index, Commit: m.Commit,\n			Entries"}}, "TestHeldAppendsLeaveInOrderAndInTime", 0},
	{"appends of two terms are joined", holdingFile,
		edit("app.GetTerm() == h.GetTerm() && ", ""), "TestHeldAppendsLeaveInOrderAndInTime", 0},
	{"a heartbeat overtakes what is held", holdingFile,
		edit("out = append(row.leave(out), m)", "out = row.leave(append(out, m))"), "TestHeldAppendsLeaveInOrderAndInTime", 0},
	{"joined appends have no bound", holdingFile,
		edit("row.bytes+dataOf(app) <= h.maxBytes && ", ""), "TestHeldAppendsLeaveInOrderAndInTime", 0},
	{"an append waits without end", holdingFile,
		edit(" || now-row.since >= h.longest", ""), "TestHeldAppendsLeaveInOrderAndInTime", 0},
	{"the wait begins anew with each append", holdingFile,
		edit("	row.app.Saves += app.Saves\n", "	row.app.Saves += app.Saves\n	row.since += 1000000\n"), "TestHeldAppendsLeaveInOrderAndInTime", 0},
	{"a member that catches up waits", holdingFile,
		edit("row.ended || row.end != last || ", "row.ended || "), "TestHeldAppendsLeaveInOrderAndInTime", 0},
	{"a change of members is held", holdingFile,
		edit("h.change, row.ended = max(h.change, change), true", "h.change = max(h.change, change)"), "TestHeldAppendsLeaveInOrderAndInTime", 0},
	{"a read does not let go of what is held", readersFile,
		edit("	a.holding.letGo(id)\n", ""), "TestReadLetsGoOfWhatIsHeld", 0},
	{"a quorum read does not let go of what is held", "internal/replica/reads.go",
		edit("		r.audience.asks(from)\n", ""), "TestReadLetsGoOfWhatIsHeld", 0},
	{"a write of a reader's client does not let go of what is held", receiveFile,
		edit("		r.audience.asks(m.From)\n		return r.inbox", "		return r.inbox"), "TestWritesOfClientsAtAReaderWaitForNothingThatIsHeld", 0},
	{"a gateway's results at a reader wait", "internal/replica/replica.go",
		edit("	r.attend()\n", ""), "TestWritesOfClientsAtAReaderWaitForNothingThatIsHeld", 0},
	{"a read of late is forgotten", readersFile,
		edit("	a.askedAt[id] = a.ticks\n", ""), "TestReadLetsGoOfWhatIsHeld", 0},
	{"voters' appends are held", readersFile,
		[][2]string{{"p.IsLearner && ", ""}, {" && members.Learns(a.host.conf, id) {\n\t\t\tids", " && id != a.cfg.ID {\n\t\t\tids"}}, "TestReadersAreSentJoinedAppends", 0},
	{"appends to responders are held", readersFile,
		edit("!answers(roster, id) && ", "(!answers(roster, id) || p.IsLearner) && "), "TestRespondersAreSentAllAtOnce", 0},
	{"a run is taken for its length", namesFile,
		edit(" && length == r.Length && sumOf(data) == r.Sum", " && length == r.Length"), "TestRunIsJoinedWithTheRelaysDataOrTheLeaders", 0},
	{"voters get runs", giverFile,
		edit("s.g.Zones.Voter(s.peer) || ", ""), "TestLearnersGetOneNameForManySmallEntries", 0},
	{"runs go to peers that do not know them", giverFile,
		edit(" || !s.g.Runs(s.peer) || ", " || "), "TestLearnersGetOneNameForManySmallEntries", 0},
	{"relays that do not know runs are named for them", giverFile,
		edit(" || !s.g.Runs(s.relay)", ""), "TestLearnersGetOneNameForManySmallEntries", 0},
	{"a run has entries of other terms", giverFile,
		edit("e.GetTerm() != b.GetTerm() || ", ""), "TestOneNameStandsForPlainEntriesAlone", 0},
	{"a relay is named for a run that it was not sent", giverFile,
		edit("!relay.has(from+1) || !relay.has(last)", "!relay.has(from + 1)"), "TestOneNameStandsForPlainEntriesAlone", 0},
}
