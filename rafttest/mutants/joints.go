// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Files in which bugs of the joints stand.
const (
	questions = "raft/internal/electorate/electorate.go"
	changes   = "raft/internal/electorate/changes.go"
)

// joints is the bugs where coding, leases and changes of the members meet: each answer of the
// electorate wrong in turn, and each rule that a schedule has taught. The script TestQuestions
// draws the answers; the other tests are the schedules.
var joints = []bug{
	// Who must agree.
	{"voters to come are not asked for their votes", questions,
		edit("	for _, v := range e.Sets() {\n		ids = append", "	for _, v := range e.counts().Voters {\n		ids = append"), "TestQuestions", 0},
	{"sets to come do not count for the commit rule of units", questions,
		edit("	return append(slices.Clone(now), e.coming...)\n", "	return now\n"), "TestReportDoesNotEndAChange", 0},
	{"a majority of each set is one that has lost none", questions,
		edit("		case vr == quorum.VotePending:\n			result = quorum.VotePending\n", ""), "TestQuestions", 0},
	{"a commit needs the sets in force only", questions,
		edit("		k = min(k, v.CommittedIndex(said))\n", "		_ = v\n"), "TestCommitsNeedAllSets", 0},
	{"a former leader is alone in the group that it left", questions,
		edit(" && !slices.ContainsFunc(e.Sets(), others)", " && (id > 0 || slices.ContainsFunc(e.Sets(), others))"), "TestReadAtFormerVoter", 0},
	{"a learner may lead as soon as it is to vote", questions,
		edit("comes && early", "comes"), "TestQuestions", 0},

	// Who takes part.
	{"members to come receive nothing", questions,
		edit("slices.AppendSeq(slices.Collect(maps.Keys(e.everybody)), maps.Keys(e.members.Progress))", "slices.Collect(maps.Keys(e.members.Progress))"), "TestQuestions", 0},
	{"answers of members to come are those of strangers", questions,
		edit("	_, comes := e.everybody[id]\n	return comes\n", "	return id == 0\n"), "TestQuestions", 0},
	{"voters who come are not known to come", questions,
		edit("		if e.members.Progress[id] == nil {\n			ids", "		if id == 0 {\n			ids"), "TestQuestions", 0},
	{"the heir is a voter in force", questions,
		edit("	if newest == nil {\n		newest", "	if newest == nil || len(newest) > 0 {\n		newest"), "TestQuestions", 0},
	{"an heir need not know that it is one", questions,
		edit("		since = e.pending[len(e.pending)-1]\n", "		since = 0\n"), "TestQuestions", 0},
	{"a change brings no votes", questions,
		edit("		if !e.IsVoter(id) {\n			brings", "		if id == 0 {\n			brings"), "TestVoteIsForMembersThatReadEnvelopes", 0},
	{"a leader goes on following who was to come", changes,
		edit("!isMember(t.Config, id) && !e.Expects(id) {", "!isMember(t.Config, id) && id == 0 {"), "TestLeaderForgetsMembersOfRefusedChanges", 0},
	{"a leader does not follow who is to come", changes,
		edit("	for id := range e.everybody {\n		if t.Progress", "	for id := range e.coming[:0] {\n		id := uint64(id)\n		if t.Progress"), "TestQuestions", 0},

	// When a change begins and ends to count.
	{"a report ends a change", changes,
		edit("(e.rules.AppliedFirst || e.past != nil && e.again(at))", "e.log != nil"), "TestChangeWaitsForOneThatIsReportedOnly", 0},
	{"with leases alone changes in the log are not followed", "raft/raft.go",
		edit("Tracks: cfg.Leases != nil, ", ""), "TestEndOfAJointConfigurationIsFoundInTheLog", 0},
	{"a refusal in silence is none", changes,
		edit("e.rules.AppliedFirst || ", ""), "TestLeaderForgetsMembersOfRefusedChanges", 0},
	{"a change that the host's state holds waits for a call", "raft/raft.go",
		edit("	if cfg.Applied == 0 {\n", "	if r.log == nil {\n"), "TestChangesHandedAgain", 0},
	{"a host that says what its state holds need not call", "raft/raft.go",
		edit("	if cfg.Applied == 0 {\n", "	if r.log != nil {\n"), "TestChangesHandedAgain", 0},
	{"a late call for a change that its report has ended ends the next one", changes,
		edit("	if p := e.past; p != nil {\n", "	if p := e.past; p != nil && n < 0 {\n"), "TestLateCallEndsNoOtherChange", 0},
	{"what is behind the commit index at the start is no part of the state", changes,
		edit("if at > e.past.committed && (at > e.past.last || !e.changesNothing(at)) {", "if at > e.past.committed {"), "TestChangesHandedAgain", 0},
	{"what is behind the commit index at the start is a part of the state", changes,
		edit("(at > e.past.last || !e.changesNothing(at))", "at > e.past.last"), "TestQuestions", 0},
	{"a call ends the first change that is pending, whatever it says", changes,
		edit("err == nil && proto.Equal(is, cc) {\n", "err == nil && proto.Equal(is, cc) && n < 2 {\n"), "TestQuestions", 0},
	{"a call ends a change that the host was not handed", changes,
		edit("e.pending[n] <= e.log.HandedOut() {", "e.log != nil {"), "TestBootstrapTwice", 0},
	{"a refusal by a change of node 0 ends nothing", changes,
		edit("	return min(n, 1)\n", "	return 0\n"), "TestLeaderForgetsMembersOfRefusedChanges", 0},
	{"a change that was cut goes on counting", changes,
		edit("	e.pending = e.pending[:n]\n	return e.derive()\n", "	return e.derive()\n"), "TestQuestions", 0},
	{"changes of the log that a snapshot replaces go on counting", changes,
		edit("	e.pending, e.since = nil, index\n", "	e.since = index\n"), "TestQuestions", 0},
	{"leases go by the host's report", questions,
		edit("	if first := e.FirstPending(); first > 0 && first <= applied {\n		return first - 1\n	}\n", ""), "TestLateChangeIsNoRefusedOne", 0},

	// Members learned from others.
	{"members that others have in force are not learned", changes,
		edit("	e.learned = &learned{m, index}\n", "	_ = m\n"), "TestVotersAreLearnedFromAnswers", 0},
	{"members learned do not count", questions,
		edit("	if e.learned != nil {\n		return &e.learned.config\n	}\n", ""), "TestVotersAreLearnedFromAnswers", 0},
	{"members are learned at an entry that is another one here", "raft/conf.go",
		edit("	if !r.log.holds(id) {\n		return\n	}\n", "	if id.Index > r.log.last().Index {\n		return\n	}\n"), "TestMembersOfOthersAreChecked", 0},
	{"where members are learned the log is not committed", "raft/conf.go",
		edit("	r.log.commitTo(id.Index)\n", ""), "TestMembersOfOthersAreChecked", 0},
	{"nobody is a majority of no members", "raft/internal/coding/settled.go",
		edit("len(cs.GetVoters()) == 0", "len(cs.GetVoters()) < 0"), "TestMembersOfOthersAreChecked", 0},
	{"a candidate that learns that it has no vote goes on", "raft/candidate.go",
		edit("	case c.members.Tracks() && !c.promotable(): ", "	case c.raft == nil: "), "TestMembersOfOthersAreChecked", 0},
	{"votes that came before the members are not counted", "raft/conf.go",
		edit("			c.decide()\n", "			_ = c\n"), "TestMembersOfOthersAreChecked", 0},
	{"members are told with an entry before they were in force", questions,
		edit("e.rules.Foresees && index >= e.since", "e.rules.Foresees"), "TestQuestions", 0},
	{"members learned are learned for good", changes,
		edit("		e.learned = nil\n", ""), "TestQuestions", 0},
	{"older members take the place of those learned", changes,
		edit(" || index <= e.LearnedAt() {", " {"), "TestQuestions", 0},
	{"changes up to the entry count beside the members learned there", changes,
		edit("	later, e.newest = later[n:], ", "	later, e.newest = later[min(n, 0):], "), "TestQuestions", 0},
	{"members learned are not followed", changes,
		edit("		e.expect(t.Progress)\n", ""), "TestQuestions", 0},
	{"leases do not count over the voters learned", questions,
		edit("	if e.learned != nil {\n		return e.Sets()\n	}\n", ""), "TestQuestions", 0},
	{"a node that has learned that it has no vote may lead", questions,
		edit("		votes = e.IsVoter(id)\n", ""), "TestQuestions", 0},

	// Effects.
	{"a carrier stands where the log ended when it was asked for", "raft/internal/coding/unplaced.go",
		edit("	u.made = append(u.made, made{ent: e, stands: stands})\n", "	guess := ecraft.ID{Term: u.raft.Term(), Index: u.log.Last().Index + 1 + uint64(len(u.made))}\n	u.made = append(u.made, made{ent: e, stands: func(ecraft.ID) { stands(guess) }})\n"), "TestEffectsMayBeCarriedOutInAnyOrder", 0},

	// Leases.
	{"a node that starts does not tell leases who is to come", "raft/start.go",
		edit("	if r.members.Torn() {\n		r.votersChanged()\n	}\n", ""), "TestLeadersLeaseNeedsEverySetThatCounts", 0},
	{"leases do not ask grantors who are to come", "leases/work.go",
		edit("	voter := n.members.counts(p.id)\n", "	voter := n.members.Voters.has(p.id)\n"), "TestLeaseCountsOverEverySetThatCounts", 0},
	{"grantors who are to come hear of no roster", "leases/work.go",
		edit("	if !n.members.has(p.id) && !n.members.counts(p.id) {\n", "	if !n.members.has(p.id) {\n"), "TestLeaseCountsOverEverySetThatCounts", 0},
	{"an heir that leases do not know is refused", "leases/control.go",
		edit("if p := n.peer(heir); !n.leading.must && adopts(p) &&", "if p := n.peer(heir); p == nil || !n.leading.must && adopts(p) &&"), "TestHeirThatLeasesDoNotKnowMayLead", 0},
	{"a leader that must hand over waits until leases are at rest", "leases/lead.go",
		edit("(l.must || n.isQuiet()", "(n.isQuiet()"), "TestLeaderThatMustHandOverWaitsForNobody", 0},
	{"a gap is a pause again after the next tick in time", "leases/detector.go",
		edit("l.ticked.since(l.gap) >= graceFails*n.cfg.Fail", "l.ticked != l.gap"), "TestDeadResponderIsRemovedByALeaderWithLateTicks", 0},
	{"a leader that stood still counts the silence as the others'", "leases/detector.go",
		edit("	return first\n", "	return first && now == 0\n"), "TestPauseOfTheLeaderRemovesNobody", 0},
	{"leases measured by an unfit clock count again", "leases/aside.go",
		edit("		n.GiveUp() //", "		if yes {\n			n.GiveUp()\n		} //"), "TestLeasesMeasuredByAnUnfitClockDoNotCount", 0},
	{"a clock below 0 stands still", "leases/permit.go",
		edit("min(max(reading, -century), century) + century + 1", "min(max(reading, 0), century) + 1"), "TestClockBelowZeroRuns", 0},
	{"a clock by which no lease can be renewed is taken", "leases/work.go",
		edit("	if ok {\n		return nil\n	}\n	if n.leading", "	if ok || d <= 0 {\n		return nil\n	}\n	if n.leading"), "TestNodesWhoseClocksAllowNoLeaseAreNamed", 0},
	{"a voter that has just joined is taken to have leases", "leases/lead.go",
		edit("		lacks = func(v NodeID) bool { return !has(v) }\n", "		_ = lacks\n"), "TestNobodyIsNamedUntilANewVoterHasShownItsLeases", 0},
	{"settings of leases are not checked against the tick", "raft/leases_config.go",
		edit("refuse(l.Fail > 0 && l.Fail < 4*l.Tick,", "refuse(l.Fail > 0 && l.Fail < 0,"), "TestSettingsThatTicksCannotKeepAreRefused", 0},
}
