// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Files in which bugs of placement stand.
const (
	judgeFile   = "internal/placement/judge.go"
	healthFile  = "internal/placement/node.go"
	linksFile   = "internal/placement/links.go"
	figureFile  = "internal/placement/figure.go"
	stillsFile  = "internal/placement/stills.go"
	turnFile    = "internal/placement/turn.go"
	coreFile    = "raft/placement.go"
	rivalsFile  = "internal/replica/rivals.go"
	placingFile = "internal/replica/placing.go"
)

// placing is the bugs of leaders that hand over because of slowness or weights.
var placing = []bug{
	{"a leader hands over at the first look", judgeFile,
		edit("if j.found <= j.patience(v, timeout) {", "if j.found < 0 {"), "TestShortSlownessMovesNothing", 0},
	{"the patience of leaders does not grow", judgeFile,
		edit("return patience * timeout << j.level\n", "return patience * timeout\n"), "TestJudgesBoundTheChangesOfLeader", 0},
	{"a member that led as slowly is tried again", judgeFile,
		edit("	j.past[former] = ledWith{was.pace(), was.Reach, now}\n", ""), "TestHandOversThatDoNotHelpEnd", 0},
	{"a slow leader hands over to a slow member", judgeFile,
		edit("			return j.expected(now, timeout, m).slower(best)\n", "			return false\n"), "TestSlowLeaderHandsOverToTheLargestWeightAmongTheFast", 0},
	{"a slow leader hands over to a member of weight 0", judgeFile,
		edit("m.Fit && (m.Weight > 0 || leader.Weight == 0)", "m.Fit"), "TestLeaderStaysIfNobodyIsKnownToBeBetter", 0},
	{"ticks may be as late as they like", healthFile,
		edit("func (n *Node) Ticked(late time.Duration) { n.waited(late) }", "func (n *Node) Ticked(time.Duration) {}"), "TestLateTicksAreWaits", 0},
	{"a leader that is far from the others stays", judgeFile,
		edit("reach > 0 && worse(own.Figure.Reach, reach)", "reach < 0 && worse(own.Figure.Reach, reach)"), "TestLinksCountBetweenMembersOfTheSameWeight", 0},
	{"a leader that is preferred leaves for its links", judgeFile,
		edit("far := near[0].Weight == own.Weight && reach > 0", "far := reach > 0"), "TestLinksCountBetweenMembersOfTheSameWeight", 0},
	{"leadership goes to and fro for queues on links", judgeFile,
		edit("		is.reach = max(is.reach, was.reach)\n", ""), "TestQueuesOfEveryLeaderMoveLeadershipOnce", 0},
	{"an answer's time at the other node counts as its way", linksFile,
		edit("took := now - r.Answers - max(r.Held, 0)", "took := now - r.Answers"), "TestNodesKnowHowLongEachTakesToReachAMajority", 0},
	{"nodes that are no voters count for a majority", linksFile,
		edit("l.Node == id || !slices.Contains(voters, l.Node)", "l.Node == id"), "TestReachIsToAMajorityOfTheVoters", 0},
	{"an answer of any age counts", linksFile,
		edit("now-r.Answers > roundsLast*timeout || took < 0", "took < 0"), "TestRoundTripsAreOfAnswersThatCanBe", 0},
	{"voters with small weights campaign like others", turnFile,
		edit("	t.heavier = t.heavier || weight > t.weight\n", ""), "TestVotersCampaignInTheOrderOfTheirWeights", 0},
	{"voters with small weights wait at each campaign", coreFile,
		edit("p == nil || r.lead == None", "p == nil"), "TestWeightsBlockNoElection", 0},
	{"a core hands over to a member that is away", coreFile,
		edit("return pr.RecentActive && pr.State", "return pr.State"), "TestLeaderDoesNotHandOverToMemberThatIsAway", 0},
	{"a core hands over to a member whose disk hangs", coreFile,
		edit("pr.Match >= l.cfg.Placement.old && ", ""), "TestLeaderHandsOverToMembersThatCouldLead", 0},
	{"a core forgets that its leader has changed", coreFile,
		edit("		p.judge.Changed(p.ticks, time.Duration(electionTick), None, placement.Figure{})\n", "		_ = electionTick\n"), "TestPreferredMemberThatComesAndGoesIsWaitedFor", 0},
	{"a core takes its host's weights for its own", coreFile,
		edit("	return &Placement{Weights: maps.Clone(p.Weights)}", "	_ = maps.Clone(p.Weights)\n	return &Placement{Weights: p.Weights}"), "TestPlacementIsCopied", 0},
	{"a leader that has always been far hands over at once", judgeFile,
		edit("long := far && j.near && ", "long := far && "), "TestLeaderWhoseLinksBecomeLongHandsOverAtOnce", 0},
	{"leadership that has moved lately moves at once", judgeFile,
		edit("case j.level > 0 || v.Reason", "case v.Reason"), "TestLeaderWhoseLinksBecomeLongHandsOverAtOnce", 0},
	{"a queue counts as a long way", judgeFile,
		edit("j.near && own.Figure.Send < worth && ", "j.near && "), "TestLeaderWhoseLinksBecomeLongHandsOverAtOnce", 0},
	{"long links are waited for as slow disks are", judgeFile,
		edit("sudden: long || ", "sudden: long && "), "TestLeaderWhoseLinksBecomeLongHandsOverAtOnce", 0},
	{"two long round trips are sure", linksFile,
		edit("return max(slices.Min(t.last[:]), time.Microsecond)", "return t.round(now, timeout)"), "TestJitterIsNoReasonToHandOver", 0},
	{"a process that limps is hidden by its disk", figureFile,
		edit("worse(p.delay, than.delay) || p.limps(than)", "worse(p.delay, than.delay)"), "TestSlowProcessIsNoticedBehindSlowDisks", 0},
	{"a leader that limps is waited for as slow disks are", judgeFile,
		edit("long || own.Limps && is.limps(best)", "long"), "TestLeaderThatLimpsHandsOverAtOnce", 0},
	{"a leader that limps as the others do hands over at once", judgeFile,
		edit("own.Limps && is.limps(best)", "own.Limps"), "TestLeaderThatLimpsHandsOverAtOnce", 0},
	{"a pause in which many groups wait is many", stillsFile,
		edit("if now-waited < s.ended {", "if now < s.ended {"), "TestProcessThatStandsStillAgainAndAgainLimps", 0},
	{"pauses of any age count", stillsFile,
		edit("now-s.began[s.next] <= within", "now-s.began[s.next] >= 0"), "TestProcessThatStandsStillAgainAndAgainLimps", 0},
	{"a node alarms its groups for as long as it is slow", healthFile,
		edit("n.alarm > 0 && now-n.alarm <= n.cfg.Timeout", "n.alarm > 0"), "TestLongLinksAlarmTheirNode", 0},
	{"a leader that is alarmed looks as seldom as others", placingFile,
		edit(" || p.leads() && n.Alarmed()", ""), "TestLeaderLooksAtEachTickWhenAlarmed", 0},
	{"a process that limped as a leader is tried again", judgeFile,
		edit(", max(is.process, was.process)", ", is.process"), "TestSlowProcessIsNoticedBehindSlowDisks", 0},
	{"idle nodes report at each tick", healthFile,
		edit("if n.ownLocked(now).Sync > 0 {", "if n.ownLocked(now).Sync >= 0 {"), "TestReportsBelongToNodesNotToGroups", 0},
	{"nodes under load report as idle nodes do", healthFile,
		edit("if n.ownLocked(now).Sync > 0 {", "if n.ownLocked(now).Sync < 0 {"), "TestReportsAreOftenUnderLoad", 0},
	{"a leader takes full links for long ones", placingFile,
		edit("bytes >= fullBytes", "bytes < 0"), "TestFullLinksAreNotLongOnes", 0},
	{"members that ask each other for votes both go on", rivalsFile,
		edit("m.GetFrom() < v.cfg.ID", "m.GetFrom() == v.cfg.ID"), "TestRivalsGoOneAfterTheOther", 0},
	{"a member that is asked for its vote campaigns meanwhile", rivalsFile,
		edit("return v.ticks < v.waitTo && ", "return v.ticks < 0 && "), "TestRivalsGoOneAfterTheOther", 0},
	{"a member that yielded does not ask anew", rivalsFile,
		edit("v.yields = false\n	return v.state.Role == raft.StatePreCandidate", "v.yields = false\n	return v.state.Role == raft.StateLeader"), "TestRivalsGoOneAfterTheOther", 0},
	{"a member yields each time", rivalsFile,
		edit(" && s.Term != v.yieldedIn", ""), "TestRivalsGoOneAfterTheOther", 0},
	{"each group sends a report", healthFile,
		edit("if o.sent && now-o.sentAt < every {", "if o.sent && now < 0 {"), "TestReportsBelongToNodesNotToGroups", 0},
}
