// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

// trials is the bugs of the trials by which the adaptive policy finds whether coding pays where
// processors are busy, and of followers' delays. Each takes out one rule.
var trials = []bug{
	{"a single trial decides", "ecraft/adaptive/processors.go",
		edit("	p.ratio += (ratio - p.ratio) / p.trials\n", "	p.ratio = ratio\n"), "TestNoiseDecidesLittle", 0},
	{"coding needs no proof", "ecraft/adaptive/processors.go",
		edit("> doubtCoding\n", "> 0\n"), "TestProofGrowsWithTrials", 0},
	{"doubt does not shrink with the number of trials", "ecraft/adaptive/processors.go",
		edit("	return -lead*math.Sqrt(p.trials) >", "	return -lead >"), "TestProofGrowsWithTrials", 0},
	{"full copies are not the first guess", "ecraft/adaptive/processors.go",
		edit("ratio: firstRatio, trials: 1, ", ""), "TestWhereBothAreAboutAsGoodFullCopiesWin", 0},
	{"a trial against what is in force is repeated as late as any", "ecraft/adaptive/processors.go",
		edit("		p.full, p.wait = !p.full, repeatGap\n", "		p.full, p.wait = !p.full, p.gap\n"), "TestTrialAgainstWhatIsInForceIsRepeatedSoon", 0},
	{"a pause counts as time", "ecraft/adaptive/processors.go",
		edit("		p.rested = max(p.rested, now-p.now)\n", "		p.rested = 0\n"), "TestPauseIsNoPartOfATrial", 0},
	{"what processors do in a pause counts", "ecraft/adaptive/processors.go",
		edit("	p.share.add(busy, p.now, busyMemory)\n", "	p.share.add(busy, now, busyMemory)\n"), "TestTrialGoesOnAfterAPause", 0},
	{"coded entries on their way when full copies are back are of the first turn", "ecraft/adaptive/processors.go",
		edit("	if p.done >= p.last {\n		p.turn.from", "	if p.done >= 0 {\n		p.turn.from"), "TestEntriesOnTheirWayAtAChangeOfFormAreOfNoTurn", 0},
	{"trials are frequent again whenever processors count", "ecraft/adaptive/processors.go",
		edit("if p.count, p.full = true, p.won; p.full {", "if p.count, p.full, p.gap = true, p.won, firstGap; p.full {"), "TestTrialsStayRareWhenProcessorsCountAgain", 0},
	{"full copies that are back are measured with coded entries", "ecraft/adaptive/processors.go",
		edit("true, p.won; p.full {\n			p.begin()", "true, p.won; p.full {"), "TestEntriesOnTheirWayAtAChangeOfFormAreOfNoTurn", 0},
	{"coding that is back is measured with full copies", "ecraft/adaptive/processors.go",
		edit("p.count, p.full, p.trying = false, false, false\n		p.begin()", "p.count, p.full, p.trying = false, false, false"), "TestEntriesOnTheirWayAtAChangeOfFormAreOfNoTurn", 0},
	{"the first trial waits until processors have counted for a turn", "ecraft/adaptive/processors.go",
		edit("true, p.won; p.full {\n			p.begin()\n		}", "true, p.won; true {\n			p.begin()\n		}"), "TestFirstTrialBeginsAsSoonAsProcessorsCount", 0},
	{"a burst of answers ends a trial", "ecraft/adaptive/processors.go",
		edit("max(turnTime, than.mean())", "turnTime"), "TestBurstOfAnswersEndsNoTrial", 0},
	{"a turn ends before an entry could take its time", "ecraft/adaptive/processors.go",
		edit("max(longestTurn, t.mean())", "longestTurn"), "TestTurnLastsAsLongAsAnEntryTakes", 0},
	{"another load is tried as late as any", "ecraft/adaptive/processors.go",
		edit("		p.gap, p.next, p.trials = firstGap, p.now, min(p.trials, otherTrials)\n", ""), "TestAnotherLoadIsTriedAtOnce", 0},
	{"followers share one delay", "ecraft/adaptive/jitter.go",
		edit("	a.links[i].delays(set.took[i], now)\n", ""), "TestFollowersThatStandStillAreNotCountedOn", 0},
	{"a stall is taken for the delay of a follower", "ecraft/adaptive/jitter.go",
		edit("delayClip   = 0.5", "delayClip   = 1e9"), "TestStallIsNoDelayOfAFollower", 0},
	{"each answer that a stall made late counts", "ecraft/adaptive/jitter.go",
		edit("min(alphaJitter, 1-math.Exp((l.delayedAt-now)/delayMemory))", "alphaJitter + 0*math.Exp(delayMemory)"), "TestStallIsNoDelayOfAFollower", 0},
}
