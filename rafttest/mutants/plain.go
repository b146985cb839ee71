// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"

	"github.com/weftraft/weft/rafttest/internal/mutate"
)

// plainBug is a replacement of a text that occurs once in one file of the raft package.
type plainBug struct {
	area, what string
	file       string
	old, now   string
}

// plainMutants returns the bugs of plain Raft, which the lockstep tests find.
func plainMutants() (all []mutate.Mutant) {
	for _, b := range plain {
		all = append(all, mutate.Mutant{
			What: b.area + ": " + b.what, File: "raft/" + b.file, Edits: [][2]string{{b.old, b.now}},
			Tests: "rafttest/lockstep", Stages: stages(b.area), Verdict: plainVerdict,
		})
	}
	return all
}

// stages returns the tests to run on a bug, the tests of the bug's own area first, to save time.
// The tests use fixed seeds only, so that the outcome does not depend on luck.
func stages(area string) [][]string {
	const hangs = "-test.timeout=100s"
	cores := []string{"-test.run=^TestLockstep$", hangs, "-first", "-fresh=0"}
	nodes := []string{"-test.run=^TestNode$", hangs, "-first", "-fresh=0"}
	rest := []string{"-test.run=^(TestMemoryStorage|TestUtil|TestConfig)$", hangs}
	switch area {
	case "Node":
		return [][]string{nodes, cores, rest}
	case "MemoryStorage":
		return [][]string{rest, cores, nodes}
	default:
		return [][]string{cores, nodes, rest}
	}
}

var (
	failedTest = regexp.MustCompile(`--- FAIL: (\w+)`)
	foundCall  = regexp.MustCompile(`seed (\d+), call \d+: (.*)`)
)

// plainVerdict reads the test that found the bug from the output of a failed run.
func plainVerdict(out string, flags []string) mutate.Finding {
	f := mutate.Finding{By: strings.Trim(strings.TrimPrefix(flags[0], "-test.run="), "^$")}
	if m := failedTest.FindStringSubmatch(out); m != nil {
		f.By = m[1]
	}
	switch m := foundCall.FindStringSubmatch(out); {
	case m != nil:
		f.By, f.Detail = f.By+", seed "+m[1], m[2]
	case strings.Contains(out, "test timed out"):
		f.Detail = "it hangs"
	case strings.Contains(out, "panic:"):
		f.Detail = "a goroutine of Node panicked"
	}
	return f
}

// plain lists the bugs, easy slips in all parts of the package. A change of the code at a bug also
// needs a change of the bug's text here.
var plain = []plainBug{
	// Elections.
	{"election", "a timeout comes a tick late", "candidate.go", "r.quietTicks >= r.patience &&", "r.quietTicks > r.patience &&"},
	{"election", "a candidate does not record its own vote", "candidate.go", "		r.vote = r.id\n", ""},
	{"election", "campaigns despite unapplied configuration changes", "candidate.go", "case r.log.anyUnappliedConfChange() && !r.extension.MayCampaign():", "case false:"},
	{"election", "campaigns with a snapshot to apply", "raft.go", "return r.log.tail.snapshot == nil && (", "return ("},
	{"election", "learners campaign", "internal/electorate/electorate.go", "votes := !pr.IsLearner", "votes := pr != nil"},
	{"election", "the first campaign vote can be changed by a second answer", "candidate.go", "_, again := c.votes[from]; !again", "_, again := c.votes[from]; !again || again"},
	{"election", "a pre-candidate keeps its leader", "candidate.go", "votes: map[uint64]bool{}}, None)\n	} else", "votes: map[uint64]bool{}}, r.lead)\n	} else"},
	{"election", "a new role keeps counting the old one's ticks", "raft.go", "	r.quietTicks = 0\n	r.patience", "	r.patience"},
	{"election", "a candidate that becomes a learner gives up", "candidate.go", "case c.members.Tracks() && !c.promotable():", "case !c.promotable():"},
	{"election", "a timeout that overflows is any timeout", "raft.go", "int32(min(max(r.cfg.ElectionTick+r.cfg.Rand.IntN(r.cfg.ElectionTick), 0), math.MaxInt32))", "int32(min(r.cfg.ElectionTick+r.cfg.Rand.IntN(r.cfg.ElectionTick), math.MaxInt32))"},

	// Votes.
	{"votes", "votes against a known leader", "vote.go", "case r.vote == None && r.lead == None:", "case r.vote == None:"},
	{"votes", "grants a pre-vote of its own term", "vote.go", "m.GetType() == pb.MsgPreVote && m.GetTerm() > r.term", "m.GetType() == pb.MsgPreVote && m.GetTerm() >= r.term"},
	{"votes", "a vote does not restart the timeout", "vote.go", "		r.quietTicks = 0\n", ""},
	{"votes", "stands by its leader a tick too long", "vote.go", "int(r.quietTicks) < r.cfg.ElectionTick", "int(r.quietTicks) <= r.cfg.ElectionTick"},
	{"votes", "compares last terms only, not lengths", "entry.go", "id.Term == other.Term && id.Index >= other.Index", "id.Term == other.Term"},
	{"votes", "a granted pre-vote names the wrong term", "vote.go", "r.vouch(r.message(answer, m.GetFrom()).withTerm(m.GetTerm()))", "r.vouch(r.message(answer, m.GetFrom()))"},
	{"votes", "ignores a leader that hands over", "vote.go", "string(m.GetContext()) == string(transfer)", "false"},

	// Appending to logs.
	{"append", "an append at the commit index is taken for an old one", "follower.go", "case base.Index < f.log.committed:", "case base.Index <= f.log.committed:"},
	{"append", "a rejection hints beyond the log", "follower.go", "Index: min(base.Index, f.log.last().Index)}", "Index: base.Index}"},
	{"append", "truncation forgets that entries were handed out", "tail.go", "			t.handed = min(t.handed, keep)\n", ""},
	{"append", "truncation overwrites entries that were handed out", "tail.go", "t.entries = slices.Clip(t.entries[:keep])", "t.entries = t.entries[:keep]"},
	{"append", "a rejection does not end pipelining", "replicate.go", "		if pr.State == tracker.StateReplicate {\n			pr.BecomeProbe()\n		}\n		l.sendAppend", "		l.sendAppend"},
	{"append", "the leader ignores the term of a hint", "replicate.go", "if term := m.GetLogTerm(); term > 0 {", "if term := m.GetLogTerm(); term > 1<<40 {"},
	{"append", "an answer without news does not end probing", "replicate.go", "!pr.MaybeUpdate(index) && (pr.Match != index || pr.State != tracker.StateProbe)", "!pr.MaybeUpdate(index)"},
	{"append", "the leader keeps the proposer's buffer", "extension_alone.go", "e.Data = bytes.Clone(e.Data)", "_ = bytes.Clone(e.Data)"},
	{"append", "a proposal with a nil entry panics", "step.go", "if slices.Contains(m.GetEntries(), nil) {", "if slices.Contains(m.GetEntries(), nil) && m == nil {"},
	{"append", "an empty payload becomes an absent one", "extension_alone.go", "e.Data = bytes.Clone(e.Data)", "if e.Data = bytes.Clone(e.Data); len(e.Data) == 0 {\n\t\t\te.Data = nil\n\t\t}"},

	// Committing.
	{"commit", "commits entries of earlier terms by counting", "commit.go", "k <= l.log.committed || !l.log.holds(ecraft.ID{Term: l.term, Index: k})", "k <= max(l.log.committed, ecraft.ID{}.Index)"},
	{"commit", "a follower commits beyond what the append covers", "follower.go", "f.log.commitTo(min(m.GetCommit(), last))", "f.log.commitTo(min(m.GetCommit(), f.log.last().Index))"},
	{"commit", "a heartbeat commits what may not agree", "replicate.go", "commit := min(pr.Match, l.log.committed)", "commit := l.log.committed"},
	{"commit", "followers are not told of a commit at once", "replicate.go", "case from != l.id && pr.CanBumpCommit(l.log.committed):", "case false:"},

	// Snapshots.
	{"snapshot", "sent to members that are away", "replicate.go", "if !pr.RecentActive {\n		return false", "if false {\n		return false"},
	{"snapshot", "a failed one is believed to have arrived", "replicate.go", "		pr.PendingSnapshot = 0 // so that probing starts at the known agreement\n", ""},
	{"snapshot", "replaces a log that leads to it", "follower.go", "case f.log.holds(id) && !f.extension.MayRestore(id):", "case false:"},
	{"snapshot", "the leader stays in snapshot mode one entry too long", "replicate.go", "if pr.Match+1 >= l.log.firstIndex() {", "if pr.Match >= l.log.firstIndex() {"},
	{"snapshot", "a report of an earlier term is ignored", "step.go", "		if s := m.GetSnapshot(); s != nil {\n			r.snapshotApplied(s)\n		}\n	}\n}", "	}\n}"},
	{"snapshot", "not sent if the log is compacted while it is read", "replicate.go", "	case err != nil:\n		return l.sendSnapshot(to, pr)\n	}\n	e :=", "	case err != nil:\n		return false\n	}\n	e :="},
	{"snapshot", "any report counts for the pending one", "tail.go", "t.snapshot != nil && t.snapshot.GetMetadata().GetIndex() == index", "t.snapshot != nil"},

	// ReadIndex.
	{"read index", "answered before an entry of the term is committed", "reads.go", "if l.log.holds(ecraft.ID{Term: l.term, Index: l.log.committed}) {", "if true {"},
	{"read index", "a late answer takes back a newer one", "reads.go", "q.acked[from] = max(q.acked[from], round)", "q.acked[from] = round"},
	{"read index", "names the end of the log, not the commit index", "reads.go", "	index := l.extension.LeaderIndex(m)\n", "	index := l.log.last().Index\n"},
	{"read index", "a single voter asks nobody and waits for ever", "reads.go", "ReadOnlyLeaseBased || l.members.IsAlone(l.id):", "ReadOnlyLeaseBased:"},
	{"read index", "an option that is none asks a quorum", "reads.go", "case l.cfg.ReadOnlyOption != ReadOnlySafe:", "case false:"},
	{"read index", "the leader does not count itself", "reads.go", "	l.reads.ack(l.id, l.reads.newest())\n", ""},
	{"read index", "early reads are forgotten", "reads.go", "	for _, m := range early {\n		l.startRead(m)\n	}\n", "	_ = early\n"},

	// Handing leadership over.
	{"transfer", "asking again starts again", "transfer.go", "pr.IsLearner || to == l.transferee", "pr.IsLearner"},
	{"transfer", "does not get a full election timeout", "transfer.go", "	l.quietTicks = 0\n", ""},
	{"transfer", "never given up", "leader.go", "		// A transfer has failed after an election timeout; go on leading.\n		l.transferee = None\n", ""},
	{"transfer", "proposals are taken meanwhile", "propose.go", "case l.transferee != None:", "case false:"},
	{"transfer", "to a member that is removed goes on", "conf.go", "	if !l.members.IsVoter(l.transferee) {\n		l.transferee = None\n	}\n", ""},
	{"transfer", "the campaign does not say that it is one", "candidate.go", "if why == transfer {", "if why == preElection {"},

	// Configurations.
	{"joint configuration", "a second change is taken while joint", "propose.go", "case joint && !leaves:", "case false:"},
	{"joint configuration", "a new leader does not reckon with unapplied changes", "leader.go", "	l.confChangeAt = last.Index\n", ""},
	{"joint configuration", "left an entry too late", "held.go", "l.log.applied >= l.confChangeAt\n", "l.log.applied > l.confChangeAt\n"},
	{"joint configuration", "a removed leader steps down unasked", "conf.go", "if l.cfg.StepDownOnRemoval {", "if true {"},
	{"joint configuration", "new members wait for a heartbeat", "conf.go", "				l.sendAppend(id, pr, false) // new ones need not wait for a heartbeat\n", ""},
	{"joint configuration", "a transfer to a voter on its way out ends", "internal/electorate/changes.go", "return incoming || outgoing", "return incoming || outgoing && false"},

	// Limits.
	{"limits", "empty entries are refused when the limit is reached", "propose.go", "l.uncommitted > 0 && size > 0 &&", "l.uncommitted > 0 &&"},
	{"limits", "what is applied still counts as uncommitted", "step.go", "		l.uncommitted -= min(payloadSize(ents), l.uncommitted)\n", "		_ = l\n"},
	{"limits", "a Ready that was cut short does not wait for a report", "applying.go", "l.full = l.outstanding >= l.limit || l.applying < l.releasable(allowUnwritten)", "l.full = l.outstanding >= l.limit"},
	{"limits", "entries are sent although the window is full", "replicate.go", "if pr.State != tracker.StateReplicate || !pr.Inflights.Full() {", "if true {"},
	{"limits", "a message that fits exactly is cut", "internal/extend/extend.go", "size > most && i > 0", "size >= most && i > 0"},

	// A storage that fails.
	{"failing storage", "there is still work for the host", "ready.go", "	if r.log.err != nil {\n		return false\n	}\n	hs", "	hs"},
	{"failing storage", "an empty snapshot is sent", "replicate.go", "if err == nil && IsEmptySnap(s) {", "if err == nil && s == nil {"},
	{"failing storage", "entries that cannot be read are none", "log.go", "		l.fail(err, \"Entries(%d, %d)\", lo, cut)\n", ""},

	// Asynchronous writes.
	{"async writes", "applies what is not written", "early.go", "return min(l.committed, t.base.Index)", "return l.committed"},
	{"async writes", "reports only its own entries as written", "async.go", "pending := len(r.log.tail.entries) > 0", "pending := len(rd.Entries) > 0"},
	{"async writes", "believes a report about entries that were replaced", "tail.go", "!ok || have != id.Term", "!ok || have == 0"},
	{"async writes", "a report of applied entries has a term", "async.go", "r.address(e, pb.MsgStorageApplyResp, r.id).withTerm(0)", "r.address(e, pb.MsgStorageApplyResp, r.id)"},
	{"async writes", "votes do not wait if nothing is written with them", "async.go", " && rd.Snapshot == nil && len(r.vouching) == 0 {", " && rd.Snapshot == nil {"},
	{"async writes", "MustSync forgets the vote", "ready.go", "hs.term != rn.toldHard.term || hs.vote != rn.toldHard.vote", "hs.term != rn.toldHard.term"},

	// Node.
	{"Node", "offers a Ready before Advance", "node.go", "l.advances == nil && l.rn.HasReady()", "l.rn.HasReady()"},
	{"Node", "takes no proposals after any change at a node that is no member", "node.go", "if before && !after {", "if (before || true) && !after {"},
	{"Node", "takes proposals without a leader", "node.go", "l.lead, l.proposals = r.lead, nil", "l.lead, l.proposals = r.lead, l.node.proposals"},
	{"Node", "does not say whose a proposal is", "node.go", "		p.m.From = new(rn.raft.id)\n", ""},
	{"Node", "listens to answers of strangers", "node.go", "if rn.expects(m) {", "if true {"},
	{"Node", "Propose does not say that it was dropped", "node.go", "	case err := <-p.result:\n		return err\n", "	case <-p.result:\n		return nil\n"},
	{"Node", "Step lets a proposal in without a leader", "node.go", "case m.GetType() == pb.MsgProp:\n		return n.propose", "case false:\n		return n.propose"},

	// MemoryStorage.
	{"MemoryStorage", "Entries returns what lies before the log", "memory.go", "case lo <= ms.base.Index:", "case lo < ms.base.Index:"},
	{"MemoryStorage", "forgets the term before the first entry", "memory.go", "case i < ms.base.Index:", "case i <= ms.base.Index:"},
	{"MemoryStorage", "truncation overwrites what readers hold", "memory.go", "ms.log = slices.Clip(ms.log[:keep]) // readers", "ms.log = ms.log[:keep] // readers"},
	{"MemoryStorage", "CreateSnapshot keeps the caller's ConfState", "memory.go", "meta.ConfState = proto.Clone(cs).(*pb.ConfState)", "meta.ConfState = cs"},
	{"MemoryStorage", "an old snapshot replaces a newer one", "memory.go", "have != 0 && have >= snap.GetMetadata().GetIndex()", "have != 0 && have > snap.GetMetadata().GetIndex()"},
	{"MemoryStorage", "Compact at its own index is no error", "memory.go", "if compactIndex <= ms.base.Index {", "if compactIndex < ms.base.Index {"},

	// The beginning.
	{"bootstrap", "a peer's context is lost", "bootstrap.go", "NodeId: new(p.ID), Context: p.Context}", "NodeId: new(p.ID)}"},
	{"bootstrap", "Applied is forgotten", "raft.go", "		l.appliedTo(applied, 0)\n", ""},
}
