// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Files in which bugs of placement stand.
const (
	judgeFile  = "internal/placement/judge.go"
	healthFile = "internal/placement/node.go"
)

// placing is the bugs of leaders that hand over because of slowness or weights.
var placing = []bug{
	{"a leader hands over at the first look", judgeFile,
		edit("if j.found <= patience*timeout<<j.level {", "if j.found < 0 {"), "TestShortSlownessMovesNothing", 0},
	{"the patience of leaders does not grow", judgeFile,
		edit("patience*timeout<<j.level {", "patience*timeout {"), "TestJudgesBoundTheChangesOfLeader", 0},
	{"a member that led as slowly is tried again", judgeFile,
		edit("	j.past[former] = ledWith{was.Delay(), now}\n", ""), "TestHandOversThatDoNotHelpEnd", 0},
	{"a slow leader hands over to a slow member", judgeFile,
		edit("			return worse(j.expected(now, timeout, m), best)\n", "			return false\n"), "TestSlowLeaderHandsOverToTheLargestWeightAmongTheFast", 0},
	{"a slow leader hands over to a member of weight 0", judgeFile,
		edit("m.Fit && (m.Weight > 0 || leader.Weight == 0)", "m.Fit"), "TestLeaderStaysIfNobodyIsKnownToBeBetter", 0},
	{"ticks may be as late as they like", healthFile,
		edit("func (n *Node) Ticked(late time.Duration) { n.wait.add(late) }", "func (n *Node) Ticked(time.Duration) {}"), "TestLateTicksAreWaits", 0},
	{"each group sends a report", healthFile,
		edit("if o.sent && now-o.sentAt < n.cfg.Timeout {", "if o.sent && now < 0 {"), "TestReportsBelongToNodesNotToGroups", 0},
}
