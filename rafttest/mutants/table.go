// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

// table is the bugs. Each takes out one rule of coded replication, or one that
// somebody might think he can do without. When code moves or changes its words, its
// mutants change too.
var table = []bug{
	// The commit rule.
	{"commits on Raft's majority alone", "raft/coded_commit.go",
		edit("	if rec.covered {\n		return true\n	}\n	for _, v", "	if rec.covered || len(l.members.Voters[0]) > 0 {\n		return true\n	}\n	for _, v"), "03-one-unit-each", 0},
	{"commits on enough units without a majority", "raft/electorate.go",
		edit("	k := e.members.Committed()\n	for _, v := range e.coming {", "	k := e.log.tail.base.index\n	for _, v := range e.coming {"), "", 100},
	{"a majority in place of any half, at an even number", "raft/coded_commit.go",
		edit("return ecraft.Covered(rec.hdr.D, (len(v)+1)/2, held)", "return ecraft.Covered(rec.hdr.D, len(v)/2+1, held)"), "12c-removal-from-even", 0},
	{"learners' units count for a commit", "raft/coded_commit.go",
		edit("	return ecraft.Covered(rec.hdr.D, (len(v)+1)/2, held)\n", "	need := rec.hdr.D\n	for id := range l.members.Learners {\n		need -= rec.holds(id, l.members.Progress[id].Match, upTo)\n	}\n	return ecraft.Covered(max(need, 0), (len(v)+1)/2, held)\n"), "15-learners-hold-nothing-for-commits", 0},
	{"the leader's copy counts before it is durable", "raft/propose.go",
		edit("	l.changesAppended(ents)\n", "	l.changesAppended(ents)\n	if pr := l.members.Progress[l.id]; pr != nil {\n		pr.MaybeUpdate(l.log.last().index)\n	}\n"), "14-own-copy-not-durable", 0},

	// Riders.
	{"riders count below their carrier", "raft/coded_ledger.go",
		edit("if ra.at > upTo || ra.at > match {", "if ra.at > match {"), "12b-rider-counted-early", 0},
	{"riders count before their carrier is acknowledged", "raft/coded_ledger.go",
		edit("if ra.at > upTo || ra.at > match {", "if ra.at > upTo {"), "02b-carrier-not-yet-stored", 0},
	{"riders count as soon as they are appended", "raft/coded_ledger.go",
		edit("if ra.at > upTo || ra.at > match {", "if ra.at > noLimit-1 {"), "02-late-acknowledgement", 0},
	{"each rider counts on top of the ones before", "raft/coded_ledger.go",
		edit("		units = max(units, ra.totals[s])\n", "		units += max(ra.totals[s], rec.hdr.Units[s]) - rec.hdr.Units[s]\n"), "02c-carriers-do-not-add-up", 0},
	{"only the first late entry is raised", "raft/coded_raise.go",
		edit("	l.appendCarriers(late, level, alive)\n	return len(late)\n", "	late = late[:min(len(late), 1)]\n	l.appendCarriers(late, level, alive)\n	return len(late)\n"), "05-old-entries", 0},
	{"nothing is raised at any time", "raft/coded_raise.go",
		edit("	if level < 1 {\n		return 0\n	}\n", "	if level < 1 || len(l.members.Voters) > 0 {\n		return 0\n	}\n"), "04-two-die-after-commit-fixed3", 0},
	{"a level below 1 is no obstacle", "raft/coded_raise.go",
		[][2]string{
			{"	if level < 1 {\n		return 0\n	}\n", ""},
			{"		if l.levelOf(alive) < 1 || ", "		if "},
		}, "08-few-alive", 0},
	{"entries are coded for two voters", "ecraft/layout.go",
		edit("	if voters < 3 || slots < 1 {", "	if voters < 2 || slots < 1 {"), "08-no-failure-allowed", 0},
	{"a carrier waits for units that nobody can make", "raft/coded_send.go",
		edit("		case errors.Is(err, errReleased), l.coded.account(to)", "		case errors.Is(err, errReleased) && to == 0, l.coded.account(to)"), "12e-carrier-nobody-can-send", 0},

	// What a node holds is a function of its log.
	{"units are assigned anew when an entry is sent again", "raft/coded_send.go",
		edit("			return ecraft.Seal(nil, rec.hdr, to, c.opt.ClearPrefix, rec.word, nil), 0, nil\n", "			hdr := rec.hdr.Clone()\n			if s := hdr.SlotOf(to); s >= 0 && l.members.Progress[to].Match == 0 {\n				hdr.Units[s] = min(hdr.Units[s], 1)\n			}\n			return ecraft.Seal(nil, hdr, to, c.opt.ClearPrefix, rec.word, nil), 0, nil\n"), "", 200},
	{"a later leader sends fewer units than were assigned", "raft/coded_send.go",
		edit("	return ecraft.Seal(nil, &env.Header, to, c.opt.ClearPrefix, word, riders), nil\n", "	hdr := env.Header.Clone()\n	if s := hdr.SlotOf(to); s >= 0 && hdr.Units[s] > 0 {\n		hdr.Units[s]--\n	}\n	return ecraft.Seal(nil, hdr, to, c.opt.ClearPrefix, word, riders), nil\n"), "01-narrowed-window", 0},
	{"a follower writes again what it has", "raft/follower.go",
		edit("	n, after := f.log.firstNew(base, ents)\n", "	n, after := f.log.firstNew(base, ents)\n	if f.coded != nil && base.index >= f.log.committed {\n		n, after = 0, base\n	}\n"), "12a-torn-append", 0},
	{"units of an entry with another term are given out", "raft/coded_send.go",
		edit("id.index >= l.firstIndex() && l.holds(id)", "id.index >= l.firstIndex()"), "16-entry-of-another-term", 0},

	// A new leader.
	{"answers to a new leader do not move the term", "raft/coded_recover.go",
		edit("	case term > r.term:\n		r.becomeFollower(term, m.GetFrom())\n", "	case term > r.term:\n"), "17-recovery-moves-the-term", 0},
	{"answers to a new leader leave before the term is durable", "raft/coded_recover.go",
		edit("		r.vouch(e)\n	}\n	return nil\n}\n\n// answered", "		r.send(e)\n	}\n	return nil\n}\n\n// answered"), "17-recovery-moves-the-term", 0},
	{"the log is cut on too few answers", "raft/coded_recover.go",
		edit("<= len(v)/2 {", "< len(v)/2 {"), "22-two-answers-of-five", 0},
	{"a new leader asks for as many units as it lacks, not for all", "raft/coded_recover.go",
		[][2]string{
			{"		_, own := c.store.Missing(id)\n", "		lacks, own := c.store.Missing(id)\n"},
			{"Need: rec.hdr.D, OwnHeld: own", "Need: lacks, OwnHeld: own"},
		}, "21-answers-repeat", 0},
	{"the commit index of the answers is ignored", "raft/coded_recover.go",
		edit("	rc.log.commitTo(m.GetCommit())\n", ""), "18-commit-index-of-answers", 0},
	{"the log is cut behind the leader's own entries", "raft/coded_recover.go",
		edit("		rc.cut(first)\n", "		defer rc.cut(first)\n"), "03-one-unit-each", 0},
	{"answers count although a lie has spoilt them", "raft/coded_recover.go",
		edit(" || rc.coded.store.Doubted(coID(lacking[0].id)) {", " {"), "TestLiesAreNoReasonToCut", 0},
	{"a winner gives up although answers come", "raft/coded_recover.go",
		edit("		rc.quietTicks = 0 // it gets on\n", ""), "TestLongTailIsRecovered", 0},
	{"what a former member said counts for who has its id now", "raft/coded_members.go",
		edit("return before[id] == nil || c.r.members.Progress[id] == nil", "return c.r.members.Progress[id] == nil"), "TestWordsOfFormerMembers", 0},
	{"a recovered tail is written again", "raft/coded_recover.go",
		edit("	rc.coded.record(CodingEvent{Kind: CodingRecovered, Count: rc.ticks})\n", "	if lo := rc.log.committed; lo < rc.log.last().index {\n		term, _ := rc.log.term(lo)\n		ents, _ := rc.log.slice(lo+1, rc.log.last().index+1, noLimit)\n		rc.log.tail.append(entryID{term: term, index: lo}, ents)\n	}\n	rc.coded.record(CodingEvent{Kind: CodingRecovered, Count: rc.ticks})\n"), "19-recovered-tail-stays", 0},
	{"votes compare last terms, and not lengths", "raft/entry.go",
		edit("id.term == other.term && id.index >= other.index", "id.term == other.term"), "09-votes-compare-lengths", 0},
	{"who lacks a payload below a change may not campaign", "raft/coded_members.go",
		edit("	return rec != nil && rec.id.index < c.r.electorate.changes[0]\n", "	return rec != nil && rec.id.index < c.r.electorate.changes[0] && false\n"), "12g-only-possible-leader", 0},
	{"old lies stand against new answers", "raft/coded_recover.go",
		edit("		c.store.Forgive(coID(rec.id)) //", "		_ = rec //"), "TestOldLiesAreForgiven", 0},
	{"who lied once is not heard any more", "raft/coded.go",
		edit("		c.store.ForgiveAll()\n", "		_ = c.store\n"), "TestWhoCeasesToLieIsHeard", 0},
	{"who refuses a vote is not heard out", "raft/candidate.go",
		edit("	c.coded.learnFromRefusal(m)\n", ""), "23-demoted-with-the-longest-log", 0},
	{"who refuses a pre-vote in an earlier term is not heard out", "raft/step.go",
		edit("			r.coded.learnFromRefusal(m)\n", "			_ = m\n"), "TestRefusalOfAnEarlierTerm", 0},

	// Configuration changes.
	{"members change without a look at coded entries", "raft/coded_members.go",
		edit("func (l *leader) mayBecome(voters quorum.MajorityConfig) bool {\n", "func (l *leader) mayBecome(voters quorum.MajorityConfig) bool {\n	if len(voters) > 0 {\n		return true\n	}\n"), "13-shrink-by-two", 0},
	{"coded entries are looked at on entering a joint configuration, not on leaving it", "raft/coded_members.go",
		edit("	if _, joint := cc.EnterJoint(); joint {\n		return true\n	}\n", "	if _, joint := cc.EnterJoint(); joint {\n		t := l.members\n		t.Config, t.Progress = l.members.Clone(), cloneProgress(l.members.Progress)\n		cfg, _, err := changed(t, cc)\n		return err != nil || l.mayBecome(cfg.Voters[0])\n	}\n"), "12f-replace-two-of-three", 0},
	{"a change does not wait until the one before is in force", "raft/coded_members.go",
		edit("	if len(l.coded.pending.changes) > 0 {\n", "	if len(l.coded.pending.changes) > 1<<30 {\n"), "TestChangesInARow", 0},
	{"a change does not wait if it enters a joint configuration", "raft/coded_members.go",
		edit("	if len(l.coded.pending.changes) > 0 {\n", "	if _, joint := cc.EnterJoint(); !joint && len(l.coded.pending.changes) > 0 {\n"), "TestChangesInARowWithFreshMembers", 0},
	{"a change does not wait if the leader has cut all coded entries", "raft/coded_members.go",
		edit("	if len(l.coded.pending.changes) > 0 {\n", "	if len(l.coded.pending.changes) > 0 && !l.coded.dense() {\n"), "TestChangesInARow", 0},
	{"a change overtakes one that waits", "raft/coded_members.go",
		edit("waits := l.enc.waiting != nil || ", "waits := "), "TestChangesInARowKeepTheirOrder", 0},
	{"a change that waits is dropped during a transfer", "raft/coded_members.go",
		edit("		l.enc.waiting = e\n", ""), "TestChangesInARowKeepTheirOrder", 0},
	{"units that a carrier went without count for a change of the members", "raft/coded_members.go",
		edit("		return slices.Contains(ra.without, id)\n", "		return false\n"), "20-units-left-out", 0},
	{"members of configurations to come count when a change is applied", "raft/conf.go",
		edit("		if !isMember(t.Config, id) {\n			only", "		if !isMember(t.Config, id) && len(t.Progress) < 0 {\n			only"), "TestPendingMembersAreNone", 0},
	{"what is applied in memory counts as released", "raft/coded_report.go",
		edit("	r := c.r.log.firstIndex() - 1\n", "	r := c.r.log.applied\n"), "13-shrink-by-two", 0},
	{"unapplied configurations do not count", "raft/electorate.go",
		edit("		if len(e.changes) < 2 {\n", "		if len(e.changes) < 1<<30 {\n"), "12h-two-unapplied-changes", 0},

	// Who can read envelopes.
	{"who read envelopes before Densify is taken to read them after it", "raft/coded_status.go",
		edit("		if again && c.dense() {\n", "		if again && c.dense() && !on && c == nil {\n"), "TestPlainMemberAfterDensify", 0},
	{"a member with damaged units answers a new leader", "raft/coded_gossip.go",
		edit("if !sound && m.GetContext()[0] == forRecover {", "if !sound && m.GetContext()[0] == 0 {"), "TestDamagedAnswerIsNone", 0},

	// Followers.
	{"a payload is asked for once", "gossip/puller.go",
		edit("		if peer != nil && !peer.due(o, now) {\n", "		if peer != nil {\n"), "06-asked-once", 0},
	{"who is stuck gets no snapshot", "raft/coded_stuck.go",
		edit("		case a.stuck:\n			l.enc.stuck[id]++\n", "		case a.stuck && beyond && false:\n			l.enc.stuck[id]++\n"), "07-compacted-by-others", 0},
	{"a snapshot for the stuck drops what was acknowledged", "raft/coded_stuck.go",
		edit(" && id.index > c.r.log.applied && c.r.log.last().index <= id.index\n", " && id.index > c.r.log.applied\n"), "12d-stuck-takes-old-snapshot", 0},
	{"incomplete entries are handed out", "raft/coded_release.go",
		[][2]string{
			{"	to := min(index, c.completeTo())\n", "	to := index\n"},
			{"	if rec := c.ledger.find(id.index); rec != nil {\n		c.ledger.lose(rec)", "	if env.Payload == nil {\n		return nil, true\n	}\n	if rec := c.ledger.find(id.index); rec != nil {\n		c.ledger.lose(rec)"},
		}, "06-asked-once", 0},
	{"a payload is not compared with its checksum", "ecraft/assembly.go",
		edit("	if sum := Checksum(out); sum != a.h.PayloadCRC {\n", "	if sum := Checksum(out); sum != a.h.PayloadCRC && len(out) < 0 {\n"), "", 300},
}

// edit is the one edit of most mutants.
func edit(old, now string) [][2]string { return [][2]string{{old, now}} }
