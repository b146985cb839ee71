// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

// table is the bugs. Each takes out one rule of coded replication, or one that
// somebody might think he can do without. When code moves or changes its words, its
// mutants change too.
var table = []bug{
	// The commit rule.
	{"commits on Raft's majority alone", "raft/internal/coding/cover.go",
		edit("	if rec.covered {\n		return true\n	}\n	for _, v", "	if rec.covered || len(l.members.Voters[0]) > 0 {\n		return true\n	}\n	for _, v"), "03-one-unit-each", 0},
	{"commits on enough units without a majority", "raft/electorate.go",
		edit("	k := e.members.Committed()\n	for _, v := range e.coming {", "	k := e.log.tail.base.index\n	for _, v := range e.coming {"), "", 100},
	{"a majority in place of any half, at an even number", "raft/internal/coding/cover.go",
		edit("return ecraft.Covered(rec.hdr.D, (len(v)+1)/2, held)", "return ecraft.Covered(rec.hdr.D, len(v)/2+1, held)"), "12c-removal-from-even", 0},
	{"learners' units count for a commit", "raft/internal/coding/cover.go",
		edit("	return ecraft.Covered(rec.hdr.D, (len(v)+1)/2, held)\n", "	need := rec.hdr.D\n	for id := range l.members.Learners {\n		need -= rec.holds(id, l.members.Progress[id].Match, upTo)\n	}\n	return ecraft.Covered(max(need, 0), (len(v)+1)/2, held)\n"), "15-learners-hold-nothing-for-commits", 0},
	{"the leader's copy counts before it is durable", "raft/propose.go",
		edit("	l.log.appendAfter(l.log.last(), ents)\n", "	l.log.appendAfter(l.log.last(), ents)\n	if pr := l.members.Progress[l.id]; pr != nil {\n		pr.MaybeUpdate(l.log.last().index)\n	}\n"), "14-own-copy-not-durable", 0},

	// Riders.
	{"riders count below their carrier", "raft/internal/coding/ledger.go",
		edit("if ra.at > upTo || ra.at > match {", "if ra.at > match {"), "12b-rider-counted-early", 0},
	{"riders count before their carrier is acknowledged", "raft/internal/coding/ledger.go",
		edit("if ra.at > upTo || ra.at > match {", "if ra.at > upTo {"), "02b-carrier-not-yet-stored", 0},
	{"riders count as soon as they are appended", "raft/internal/coding/ledger.go",
		edit("if ra.at > upTo || ra.at > match {", "if ra.at > noLimit-1 {"), "02-late-acknowledgement", 0},
	{"each rider counts on top of the ones before", "raft/internal/coding/ledger.go",
		edit("		units = max(units, ra.totals[s])\n", "		units += max(ra.totals[s], rec.hdr.Units[s]) - rec.hdr.Units[s]\n"), "02c-carriers-do-not-add-up", 0},
	{"only the first late entry is raised", "raft/internal/coding/raise.go",
		edit("	l.appendCarriers(late, level, alive)\n	return len(late)\n", "	late = late[:min(len(late), 1)]\n	l.appendCarriers(late, level, alive)\n	return len(late)\n"), "05-old-entries", 0},
	{"nothing is raised at any time", "raft/internal/coding/raise.go",
		edit("	if level < 1 {\n		return 0\n	}\n", "	if level < 1 || len(l.members.Voters) > 0 {\n		return 0\n	}\n"), "04-two-die-after-commit-fixed3", 0},
	{"a level below 1 is no obstacle", "raft/internal/coding/raise.go",
		[][2]string{
			{"	if level < 1 {\n		return 0\n	}\n", ""},
			{"		if l.levelOf(alive) < 1 || ", "		if "},
		}, "08-few-alive", 0},
	{"entries are coded for two voters", "ecraft/layout.go",
		edit("	if voters < 3 || slots < 1 {", "	if voters < 2 || slots < 1 {"), "08-no-failure-allowed", 0},
	{"a carrier waits for units that nobody can make", "raft/internal/coding/forms.go",
		edit("		case errors.Is(err, errReleased), l.account(to)", "		case errors.Is(err, errReleased) && to == 0, l.account(to)"), "12e-carrier-nobody-can-send", 0},

	// What a node holds is a function of its log.
	{"units are assigned anew when an entry is sent again", "raft/internal/coding/forms.go",
		edit("			return ecraft.Seal(nil, rec.hdr, to, c.cfg.ClearPrefix, rec.word, nil), 0, nil\n", "			hdr := rec.hdr.Clone()\n			if s := hdr.SlotOf(to); s >= 0 && l.raft.Members().Progress[to].Match == 0 {\n				hdr.Units[s] = min(hdr.Units[s], 1)\n			}\n			return ecraft.Seal(nil, hdr, to, c.cfg.ClearPrefix, rec.word, nil), 0, nil\n"), "", 200},
	{"a later leader sends fewer units than were assigned", "raft/internal/coding/forms.go",
		edit("	return ecraft.Seal(nil, &env.Header, to, c.cfg.ClearPrefix, word, riders), nil\n", "	hdr := env.Header.Clone()\n	if s := hdr.SlotOf(to); s >= 0 && hdr.Units[s] > 0 {\n		hdr.Units[s]--\n	}\n	return ecraft.Seal(nil, hdr, to, c.cfg.ClearPrefix, word, riders), nil\n"), "01-narrowed-window", 0},
	{"a follower writes again what it has", "raft/follower.go",
		edit("	n, after := f.log.firstNew(base, ents)\n", "	n, after := f.log.firstNew(base, ents)\n	if f.coded != nil && base.index >= f.log.committed {\n		n, after = 0, base\n	}\n"), "12a-torn-append", 0},
	{"units of an entry with another term are given out", "raft/internal/coding/forms.go",
		edit("err == nil && term == id.Term && id.Index", "err == nil && term > 0 && id.Index"), "16-entry-of-another-term", 0},

	// A new leader.
	{"answers to a new leader do not move the term", "raft/recover.go",
		edit("	case term > r.term:\n		r.becomeFollower(term, from)\n		return true, nil\n", "	case term > r.term:\n		return true, nil\n"), "17-recovery-moves-the-term", 0},
	{"answers to a new leader leave before the term is durable", "raft/internal/coding/recovery.go",
		edit("	c.vouch(answer)\n", "	c.send(answer)\n"), "17-recovery-moves-the-term", 0},
	{"the log is cut on too few answers", "raft/internal/coding/recovery.go",
		edit("<= len(v)/2 {", "< len(v)/2 {"), "22-two-answers-of-five", 0},
	{"a new leader asks for as many units as it lacks, not for all", "raft/internal/coding/recovery.go",
		[][2]string{
			{"		_, own := rc.store.Missing(rec.id)\n", "		lacks, own := rc.store.Missing(rec.id)\n"},
			{"Need: rec.hdr.D, OwnHeld: own", "Need: lacks, OwnHeld: own"},
		}, "21-answers-repeat", 0},
	{"the commit index of the answers is ignored", "raft/internal/coding/recovery.go",
		edit("	rc.learn(m.GetCommit())\n", ""), "18-commit-index-of-answers", 0},
	{"the log is cut behind the leader's own entries", "raft/recover.go",
		edit("		rc.log.cut(cut)\n", "		defer rc.log.cut(cut)\n"), "03-one-unit-each", 0},
	{"answers count although a lie has spoilt them", "raft/internal/coding/recovery.go",
		edit(" || c.store.Doubted(first) {", " {"), "TestLiesAreNoReasonToCut", 0},
	{"a winner gives up although answers come", "raft/internal/coding/recovery.go",
		edit("		rc.Ask(extend.Effect{Do: extend.Bear})\n", ""), "TestLongTailIsRecovered", 0},
	{"what a former member said counts for who has its id now", "raft/internal/coding/members.go",
		edit("return before[id] == nil || c.raft.Members().Progress[id] == nil", "return c.raft.Members().Progress[id] == nil"), "TestAccountEndsWhenItsMemberLeaves", 0},
	{"a recovered tail is written again", "raft/recover.go",
		edit("	rc.becomeLeader()\n", "	if lo := rc.log.committed; lo < rc.log.last().index {\n		term, _ := rc.log.term(lo)\n		ents, _ := rc.log.slice(lo+1, rc.log.last().index+1, noLimit)\n		rc.log.tail.append(entryID{term: term, index: lo}, ents)\n	}\n	rc.becomeLeader()\n"), "19-recovered-tail-stays", 0},
	{"votes compare last terms, and not lengths", "raft/entry.go",
		edit("id.term == other.term && id.index >= other.index", "id.term == other.term"), "09-votes-compare-lengths", 0},
	{"who lacks a payload below a change may not campaign", "raft/internal/coding/members.go",
		edit("	return rec != nil && rec.id.Index < changes[0]\n", "	return rec != nil && rec.id.Index < changes[0] && false\n"), "12g-only-possible-leader", 0},
	{"old lies stand against new answers", "raft/internal/coding/recovery.go",
		edit("		c.store.Forgive(rec.id) //", "		_ = rec //"), "TestOldLiesAreForgiven", 0},
	{"who lied once is not heard any more", "raft/internal/coding/coder.go",
		edit("		c.store.ForgiveAll()\n", "		_ = c.store\n"), "TestWhoCeasesToLieIsHeard", 0},
	{"who refuses a vote is not heard out", "raft/internal/coding/messages.go",
		edit("	case pb.MsgVoteResp, pb.MsgPreVoteResp:\n		if m.GetReject() && c.raft", "	case pb.MsgPreVoteResp:\n		if m.GetReject() && c.raft"), "23-demoted-with-the-longest-log", 0},
	{"who refuses a pre-vote in an earlier term is not heard out", "raft/internal/coding/messages.go",
		edit("		if m.GetReject() && c.raft", "		if m.GetReject() && m.GetTerm() >= c.raft.Term() && c.raft"), "TestRefusalOfAnEarlierTerm", 0},

	// Configuration changes.
	{"members change without a look at coded entries", "raft/internal/coding/members.go",
		edit("	return voters == nil || c.leads.verdict(voters).ok()\n", "	return voters == nil || c.leads.verdict(voters).ok() || len(voters) > 0\n"), "13-shrink-by-two", 0},
	{"coded entries are looked at on entering a joint configuration, not on leaving it", "raft/held.go",
		edit("	if _, joint := cc.EnterJoint(); joint {\n		return nil\n	}\n	if cc.LeaveJoint() {\n		return l.members.Voters[0]\n	}\n", "	if cc.LeaveJoint() {\n		return nil\n	}\n"), "12f-replace-two-of-three", 0},
	{"a change does not wait until the one before is in force", "raft/internal/coding/members.go",
		edit("	if second || len(c.raft.Electorate().Changes()) > 0 {\n", "	if second || len(c.raft.Electorate().Changes()) > 1<<30 {\n"), "TestChangesInARow", 0},
	{"a change does not wait if it enters a joint configuration", "raft/internal/coding/members.go",
		edit("	if second || len(c.raft.Electorate().Changes()) > 0 {\n", "	if second || voters != nil && len(c.raft.Electorate().Changes()) > 0 {\n"), "TestChangesInARowWithFreshMembers", 0},
	{"a change does not wait if the leader has cut all coded entries", "raft/internal/coding/members.go",
		edit("	if second || len(c.raft.Electorate().Changes()) > 0 {\n", "	if second || len(c.raft.Electorate().Changes()) > 0 && !c.dense() {\n"), "TestChangesInARow", 0},
	{"a change overtakes one that waits", "raft/held.go",
		edit("l.held == nil && l.coder.MayChange", "l.coder.MayChange"), "TestChangesInARowKeepTheirOrder", 0},
	{"a change that waits is dropped during a transfer", "raft/held.go",
		edit("		l.held = e\n", ""), "TestChangesInARowKeepTheirOrder", 0},
	{"units that a carrier went without count for a change of the members", "raft/internal/coding/members.go",
		edit("		return slices.Contains(ra.without, id)\n", "		return false\n"), "20-units-left-out", 0},
	{"members of configurations to come count when a change is applied", "raft/conf.go",
		edit("		if !isMember(t.Config, id) {\n			only", "		if !isMember(t.Config, id) && len(t.Progress) < 0 {\n			only"), "TestPendingMembersAreNone", 0},
	{"what is applied in memory counts as released", "raft/shown.go",
		edit("	k := l.firstIndex() - 1\n", "	k := l.applied\n"), "13-shrink-by-two", 0},
	{"unapplied configurations do not count", "raft/electorate.go",
		edit("		if len(e.changes) < 2 {\n", "		if len(e.changes) < 1<<30 {\n"), "12h-two-unapplied-changes", 0},

	// Who can read envelopes.
	{"who read envelopes before Densify is taken to read them after it", "raft/internal/coding/status.go",
		edit("	if again && c.dense() {\n", "	if again && c.dense() && !on && c == nil {\n"), "TestPlainMemberAfterDensify", 0},
	{"a member with damaged units answers a new leader", "raft/internal/coding/exchange.go",
		edit("if !sound && m.GetContext()[0] == forRecover {", "if !sound && m.GetContext()[0] == 0 {"), "TestDamagedAnswerIsNone", 0},

	// Followers.
	{"a payload is asked for once", "gossip/puller.go",
		edit("		if peer != nil && !peer.due(o, now) {\n", "		if peer != nil {\n"), "06-asked-once", 0},
	{"who is stuck gets no snapshot", "raft/internal/coding/stuck.go",
		edit("		case a.stuck:\n			l.stuck[id]++\n", "		case a.stuck && beyond && false:\n			l.stuck[id]++\n"), "07-compacted-by-others", 0},
	{"a snapshot for the stuck drops what was acknowledged", "raft/internal/coding/stuck.go",
		edit(" && id.Index > c.log.Applied() && c.log.Last().Index <= id.Index\n", " && id.Index > c.log.Applied()\n"), "12d-stuck-takes-old-snapshot", 0},
	{"incomplete entries are handed out", "raft/internal/coding/unwrap.go",
		[][2]string{
			{"{ return min(k, c.completeTo()) }", "{ return k }"},
			{"	return p, p != nil\n", "	return p, true\n"},
		}, "06-asked-once", 0},
	{"a payload is not compared with its checksum", "ecraft/assembly.go",
		edit("	if sum := Checksum(out); sum != a.h.PayloadCRC {\n", "	if sum := Checksum(out); sum != a.h.PayloadCRC && len(out) < 0 {\n"), "", 300},
}

// edit is the one edit of most mutants.
func edit(old, now string) [][2]string { return [][2]string{{old, now}} }
