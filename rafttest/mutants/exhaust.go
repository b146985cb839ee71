// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"regexp"
	"strings"

	"github.com/weftraft/weft/rafttest/internal/mutate"
)

var deviations = flag.Int("deviations", 1, "of exhaust: how often in a path something may happen that need not")

// explored is the bugs that the exploration of small groups finds. Each takes out a rule.
var explored = []struct {
	what, file string
	edit       [2]string
}{
	{"votes compare terms alone", "raft/vote.go", [2]string{"!atLeast(theirs, ours)", "theirs.Term < ours.Term"}},
	{"a vote is forgotten", "raft/vote.go", [2]string{"r.vote = m.GetFrom()", "r.vote = None"}},
	{"a commit needs units of a majority, not of what failures leave", "raft/internal/coding/cover.go",
		[2]string{"ecraft.Covered(rec.hdr.D, (len(v)+1)/2, held)", "ecraft.Covered(rec.hdr.D, len(v)/2+1+(len(v)+1)%2, held)"}},
	{"coded entries commit as plain ones do", "raft/internal/coding/cover.go",
		[2]string{"if !coveredIn(v, rec, upTo, by) {", "if !coveredIn(v, rec, upTo, by) && false {"}},
	{"riders count before their carrier is committed", "raft/internal/coding/cover.go",
		[2]string{"rec.holds(id, by.match(id), upTo)", "rec.holds(id, noLimit, noLimit)"}},
	{"a change is not checked against committed entries", "raft/internal/coding/members.go",
		[2]string{"case change.To != nil && !ch.check.verdict(change.To).ok():", "case false:"}},
	{"commits do not wait for responders", "raft/extension_both.go",
		[2]string{"x.extension.Committable(x.leases.Committable(k))", "x.extension.Committable(k)"}},
	{"every node starts as if it were new", "raft/leases_config.go", [2]string{"r.term == 0 && r.vote == None", "true"}},
	{"leases count the voters in force alone", "raft/internal/leasing/leasing.go",
		[2]string{"m.Coming = append(m.Coming, idsOf(v))", "_ = v"}},
	{"a change may follow a pending one", "raft/internal/electorate/electorate.go",
		[2]string{"if len(e.pending) > 0 {\n\t\treturn fmt.Errorf(\"%w: entry", "if len(e.pending) > 9 {\n\t\treturn fmt.Errorf(\"%w: entry"}},
	{"a reported change counts as in force", "raft/internal/electorate/changes.go",
		[2]string{"(e.rules.AppliedFirst || i < held)", "held >= 0"}},
	{"the leader's own copy counts before it is durable", "raft/propose.go",
		[2]string{"	l.vouch(l.message(pb.MsgAppResp, l.id).withIndex(l.log.last().Index))\n", "	l.members.Progress(l.id).MaybeUpdate(l.log.last().Index)\n"}},
	{"reads are answered without a quorum", "raft/reads.go", [2]string{"l.members.IsAlone(l.id)", "l.id != 0"}},
	{"notes of a majority are enough for a responder", "leases/notes.go", [2]string{"		to = n.heldTo(r, to, held)\n", "		_ = r\n"}},
	{"a member whose reports are lost never coded", "raft/internal/coding/accounts.go",
		[2]string{"	a.codes = a.codes || err != nil && saysThatItCodes(m)\n", ""}},
	{"the configurations in the log do not count", "raft/internal/electorate/changes.go",
		[2]string{"if len(later) < 2 {\n\t\t\treturn true", "if len(later) < 9 {\n\t\t\treturn true"}},
}

var foundScenario = regexp.MustCompile(`InAnyScenario/(\S+) \((?s:.*?)VIOLATION (.*)`)

func exhaustMutants() (list []mutate.Mutant) {
	for _, b := range explored {
		list = append(list, mutate.Mutant{What: b.what, File: b.file, Edits: [][2]string{b.edit}, Tests: "rafttest/exhaust", Verdict: exploredVerdict,
			Stages: [][]string{{"-test.run=^TestNothingIsWrongInAnyScenario$", "-test.failfast", "-test.timeout=60m", fmt.Sprintf("-deviations=%d", *deviations)}}})
	}
	return list
}

// exploredVerdict reads from the output of a failed run what found the bug.
func exploredVerdict(out string, _ []string) mutate.Finding {
	f := mutate.Finding{By: "a panic outside of a core"}
	if m := foundScenario.FindStringSubmatch(out); m != nil {
		f.By = m[1]
	}
	if detail, ok := violated(out); ok {
		f.Detail = detail
	} else if strings.Contains(out, "test timed out") {
		f.Err = errors.New("the exploration takes too long")
	}
	return f
}
