// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Files in which bugs of names stand.
const (
	namesFile   = "internal/names/doc.go"
	giverFile   = "internal/names/giver.go"
	takerFile   = "internal/names/taker.go"
	replicaFile = "internal/replica/names.go"
)

// named is the bugs of names in the place of data.
var named = []bug{
	{"bytes are joined by their number", namesFile,
		edit("return uint64(len(data)) == n.Length && Sum(data) == n.Sum", "return len(data) > 0 || n.Sum == 0"), "TestOtherBytesOfABatchAreNotJoined", 0},
	{"the checksum is not compared", namesFile,
		edit("return uint64(len(data)) == n.Length && Sum(data) == n.Sum", "return uint64(len(data)) == n.Length"), "TestOtherBytesOfABatchAreNotJoined", 0},
	{"the data that a lack brings is not compared", takerFile,
		edit("if !fits(name, f.Data[i]) {", "if len(f.Data[i]) == 0 {"), "TestMessageIsLostIfItsDataDoesNotComeOrDoesNotFit", 0},
	{"names go to peers that have not announced them", giverFile,
		edit(" || !g.Announced(m.To)", ""), "TestOnlyPeersThatAnnouncedNamesGetTheirOwnLargeBatchesNamed", 0},
	{"all followers get names", replicaFile,
		edit("err != nil || env.id.Origin != node", "err != nil"), "TestLeaderSendsNamesOfTheBatchesOfItsFollowers", 0},
	{"changes of members get names", giverFile,
		edit(" || e.GetType() != pb.EntryNormal", ""), "TestOnlyPeersThatAnnouncedNamesGetTheirOwnLargeBatchesNamed", 0},
	{"small batches get names", giverFile,
		edit("len(e.Data) < minBytes || ", ""), "TestOnlyPeersThatAnnouncedNamesGetTheirOwnLargeBatchesNamed", 0},
	{"a name stands for the entry before its own", giverFile,
		edit("Entry: uint64(i),", "Entry: uint64(max(i, 1) - 1),"), "TestJoinedMessageEqualsItsOriginal", 0},
	{"a name may stand for an entry that is not there", takerFile,
		edit("name.Entry < next || name.Entry >= uint64(len(n.Entries))", "name.Entry < next"), "TestNamesThatStandForNoEntryAreRefused", 0},
	{"two names may stand for one entry", takerFile,
		edit("name.Entry < next || ", ""), "TestNamesThatStandForNoEntryAreRefused", 0},
	{"a lack is not answered", replicaFile,
		edit("		r.post(from, fill)\n", ""), "TestMessagesBehindALackKeepTheirOrder", 0},
	{"a message that can be joined passes those that wait", replicaFile,
		edit("		m.Body = joined\n	}\n", "		m.Body = joined\n		return r.arrived(m)\n	}\n"), "TestMessagesBehindALackKeepTheirOrder", 0},
	{"a message that lacks its data is lost", replicaFile,
		edit("		return m, asUnresolved\n", "		return m, asDropped\n"), "TestMessagesBehindALackKeepTheirOrder", 0},
	{"data may be another message's", takerFile,
		edit("w != nil && !slices.Equal(w.names, n.Names)", "w != nil && slices.Equal(w.names, nil)"), "TestMessageThatHasTheNumberOfAnotherIsLost", 0},
	{"a message waits for its data without end", takerFile,
		edit("!w.over && tick < w.until", "!w.over"), "TestMessageIsLostIfItsDataDoesNotComeOrDoesNotFit", 0},
	{"a batch that is kept is acknowledged", replicaFile,
		edit("		r.cfg.Names.joined(m, joined)\n		m.Body = joined\n	}\n", "		r.cfg.Names.joined(m, joined)\n		m.Body = joined\n		r.post(m.From, wire.Raft{Message: &pb.Message{Type: pb.MsgAppResp.Enum(), From: &r.cfg.ID, To: &m.From, Term: joined.Term, Index: joined.Entries[len(joined.Entries)-1].Index}})\n	}\n"), "TestJoinedBatchIsNotAcknowledgedBeforeItIsDurable", 0},
	{"originals are kept without a bound", giverFile,
		edit("for p.bytes > keepBytes {", "for p.bytes > keepBytes<<30 {"), "TestOriginalsAreKeptUntilAcknowledgedOrReplacedAndWithinABound", 0},
	{"originals are kept when they are acknowledged", giverFile,
		edit("return o.last <= index", "return o.last < index"), "TestOriginalsAreKeptUntilAcknowledgedOrReplacedAndWithinABound", 0},
	{"an acknowledgement of an earlier term counts", giverFile,
		edit("p != nil && term == g.term", "p != nil"), "TestOriginalsAreKeptUntilAcknowledgedOrReplacedAndWithinABound", 0},
	{"a lack that repeats gets the data again", giverFile,
		edit("		return o.number == l.Number\n", "		return false\n"), "TestLackIsAnsweredWithTheDataAndOnce", 0},
	{"the core does not hear that an original is gone", replicaFile,
		edit("			r.Unreachable(from)\n", ""), "TestCoreHearsOfALackWhoseOriginalIsGone", 0},
	{"lacks pause nothing", giverFile,
		edit("t.credit >= 0 {", "t.credit >= -1<<40 {"), "TestLacksAboveOnePercentPauseNames", 0},
	{"pauses do not grow", giverFile,
		edit("min(max(2*t.pause, firstPause), longestPause)", "min(firstPause, longestPause)"), "TestLacksAboveOnePercentPauseNames", 0},
	{"lacks in a pause make it longer", giverFile,
		edit("	if !t.permits(tick) {\n		return false\n	}\n	if t.credit", "	if t.credit"), "TestLacksAboveOnePercentPauseNames", 0},
}
