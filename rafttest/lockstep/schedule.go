// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/raft"
)

// schedule is one random run of a group of members, each of which exists twice: as a node of
// upstream's library and as a node of Weft's. Every call is made on both nodes, with equal
// arguments, and all results are compared at once. So the two nodes are in the same state before
// each call, and the schedule can choose the next step of the host and the network by the state of
// one side.
type schedule struct {
	chance
	seed    uint64
	bare    bool
	strange bool // see ops_strange.go
	libs    [2]library
	plan    plan
	members []*member
	net     network
	// island is the set of members that the rest cannot reach.
	island map[uint64]bool
	ledger ledger
	loud   [2]loud // nil for Nodes
	safety safety
	tally  tally

	// call counts the calls made on both sides.
	call  uint64
	trace trace
	// odd is set while a message is stepped that no correct node sends: Weft may refuse such a
	// message, whatever upstream does.
	odd bool
	// doomed is a member to crash before the next step: see doom.
	doomed *member
}

// options configure run.
type options struct {
	// Bare leaves out what schedules did not have when the oldest listed seeds were found.
	Bare bool
	// Steps is the number of steps of a schedule; each step makes a call or a few calls.
	Steps int
	// tally, if not nil, counts the covered cases.
	Tally tally
	// swap replaces the libraries, for tests of the harness.
	swap *[2]library
}

// result is the outcome of a schedule.
type result struct {
	// Calls is the number of calls that were made on both sides and compared.
	Calls uint64
	// difference is the first difference, or nil.
	Difference *difference
}

// run runs the schedule of a seed. Two calls of run must not overlap, because both libraries draw
// from crypto/rand.Reader, which run replaces for the process.
func run(seed uint64, o options) (result result) {
	installEntropy()
	s := &schedule{
		chance:  newChance(seed),
		seed:    seed,
		bare:    o.Bare,
		strange: !o.Bare && seed%4 == 2,
		libs:    [2]library{upstream, weft},
		tally:   o.Tally,
	}
	if o.swap != nil {
		s.libs = *o.swap
	}
	if s.tally == nil {
		s.tally = tally{}
	}
	for side, lib := range s.libs {
		s.loud[side] = loud{}
		lib.setLogger(s.loud[side].logger())
	}
	defer func() {
		result.Calls = s.call
		if p := recover(); p != nil {
			d, ok := p.(*difference)
			if !ok {
				panic(p) // a mistake of the harness
			}
			result.Difference = d
		}
	}()
	s.plan = s.drawPlan()
	s.assemble()
	for range o.Steps {
		s.step()
	}
	s.finish()
	return result
}

// step makes a random step.
func (s *schedule) step() {
	if m := s.doomed; m != nil {
		s.doomed = nil
		s.note(m, "crash with reads waiting")
		m.halt()
		return
	}
	m := s.members[s.IntN(len(s.members))]
	if m.broken {
		return
	}
	if !m.running() {
		s.start(m)
		return
	}
	op := &ops[s.plan.draw(s.chance)]
	s.tally.Hit(op.row)
	op.run(s, m)
	if s.call%128 == 0 {
		s.audit()
	}
}

// finish compares everything once more.
func (s *schedule) finish() {
	s.audit()
	for _, m := range s.members {
		s.compareDisks(m, 0)
	}
}

// audit checks that no value changed after it was handed out.
func (s *schedule) audit() {
	if side, changed := s.ledger.audit(); changed != "" {
		s.fail(s.libs[side].name+" changed what it handed out", changed)
	}
}

// watch makes the ledger watch the values that a call handed out, on both sides.
func (s *schedule) watch(m *member, what string, now func(side int) func() fingerprint) {
	for side := range 2 {
		f := now(side)
		side, changed := s.ledger.add(handout{side: side, member: m.id, call: s.call, what: what, then: f(), now: f})
		if changed != "" {
			s.fail(s.libs[side].name+" changed what it handed out", changed)
		}
	}
}

// fail ends the schedule with a difference.
func (s *schedule) fail(what, detail string) {
	panic(&difference{Seed: s.seed, Call: s.call, What: what, Detail: detail, Trace: s.trace.lines(s.libs[0])})
}

// differ ends the schedule with two values that differ.
func (s *schedule) differ(what string, a, b any) {
	s.fail(what, sides(s.libs, render(a), render(b)))
}

// outcome is the end of a call: a panic, an error, or neither.
type outcome struct {
	panicked any
	err      error
}

func (o outcome) String() string {
	if o.panicked != nil {
		return fmt.Sprintf("panic: %v", o.panicked)
	}
	return fmt.Sprintf("error: %v", o.err)
}

func attempt(side int, f func(side int) error) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			var d *difference
			if err, ok := p.(error); ok && errors.As(err, &d) {
				panic(p)
			}
			o.panicked = p
		}
	}()
	return outcome{err: f(side)}
}

// both makes a call on both sides and compares the outcomes. both returns the error, and whether
// the call returned at all; if not, the member is down.
func (s *schedule) both(m *member, what string, f func(side int) error) (error, bool) {
	s.call++
	var out [2]outcome
	for side := range out {
		theEntropy.reset(s.seed, s.call)
		clear(s.loud[side])
		out[side] = attempt(side, f)
	}
	a, b := out[0], out[1]
	switch {
	case (a.panicked != nil || s.odd || s.safety.lost) && b.panicked == nil && refused(b.err):
		s.tallyRefusal(a)
		m.halt()
		return b.err, false
	case a.panicked != nil && b == outcome{} && m.upstreamBug(a.panicked):
		s.tally.Hit("refusals: Weft goes on where a bug of upstream panics")
		m.halt()
		return nil, false
	case a.panicked != nil && b.panicked == nil && m.disk[0].fault != sound:
		s.outOfService(m)
		return nil, false
	case (a.panicked != nil) != (b.panicked != nil):
		s.fail(what+": only one side panicked", sides(s.libs, a.String(), b.String()))
	case a.panicked != nil && what == "Step" && s.libs[1].name == weft.name:
		s.fail("Step: both sides panicked", sides(s.libs, a.String(), b.String()))
	case a.panicked != nil:
		s.tally.Hit("panics: both in " + what)
		m.halt()
		return nil, false
	}
	s.sameError(what, a.err, b.err)
	s.sameLevels(what, b.err)
	if a.err != nil {
		s.tally.Hit("errors: " + a.err.Error())
	}
	return a.err, true
}

// upstreamBug reports whether upstream panicked although all members behaved correctly, in one of two
// places. A MsgTransferLeader that a follower forwards has a term; a receiver that has stepped down
// meanwhile should forward the message too. So should it a request with a term, of which no member
// makes one. And a candidate that has applied the change that removes it should not lead when it wins.
func (m *member) upstreamBug(panicked any) bool {
	text, _ := panicked.(string)
	_, nilPointer := panicked.(runtime.Error)
	_, voter := m.state.Config.Voters.IDs()[m.id]
	return strings.HasPrefix(text, "term should not be set when sending ") ||
		nilPointer && !voter && m.state.SoftState.RaftState == raft.StateCandidate
}

// sameError compares errors: their texts, and the sentinels that they are or wrap.
func (s *schedule) sameError(what string, a, b error) {
	if a == nil && b == nil {
		return
	}
	describe := func(lib library, err error) string {
		if err == nil {
			return "no error"
		}
		return fmt.Sprintf("%q (%s)", err, lib.sentinel(err))
	}
	if da, db := describe(s.libs[0], a), describe(s.libs[1], b); da != db {
		s.fail(what+": different errors", sides(s.libs, da, db))
	}
}

// on makes a call on a running member, and compares the member's state afterwards.
func (s *schedule) on(m *member, what string, f func(side int, c core) error) error {
	err, ok := s.both(m, what, func(side int) error { return f(side, m.core[side]) })
	if ok {
		if m.disk[0].fault != sound && isOut(m.core[1]) {
			s.fail(what+": Weft is out of service", "upstream goes on, with a disk on which this fails: "+string(m.disk[0].fault))
		}
		s.compare(m)
	}
	return err
}

// compare compares the state of a member as far as hosts can see the state. Texts and the cheaper
// views of the same state are compared after some calls only.
func (s *schedule) compare(m *member) {
	var has [2]bool
	var sum [2]fingerprint
	var st [2]raft.Status
	for side, c := range m.core {
		has[side] = c.HasReady()
		st[side] = c.Status()
		sum[side].status(&st[side])
	}
	if has[0] != has[1] {
		s.differ("HasReady", has[0], has[1])
	}
	if sum[0] != sum[1] {
		s.differ("Status", m.core[0].Status(), m.core[1].Status())
	}
	m.state = st[0]
	s.safety.observe(&st[0])
	s.doom(m)
	s.tallyStatus(&st[0])
	switch s.call % 16 {
	case 3:
		s.compareViews(m)
	case 7:
		s.compareStatusTexts(m)
	case 11:
		for _, c := range m.core {
			st := c.Status()
			scribble(&st)
		}
	}
}

// compareViews compares the other ways to see a member's state.
func (s *schedule) compareViews(m *member) {
	var sum [2]fingerprint
	var basic [2]raft.Status
	for side, c := range m.core {
		h := &sum[side]
		basic[side].BasicStatus = c.BasicStatus()
		h.status(&basic[side])
		c.WithProgress(func(id uint64, typ raft.ProgressType, pr tracker.Progress) {
			h.word(id)
			h.word(uint64(typ))
			h.progress(&pr)
			h.flag(pr.Inflights == nil)
		})
	}
	if sum[0] != sum[1] {
		s.differ("BasicStatus or WithProgress", basic[0], basic[1])
	}
}

// compareStatusTexts compares Status.String up to the order of members, which
// upstream leaves to chance.
func (s *schedule) compareStatusTexts(m *member) {
	a, b := m.core[0].statusText(), m.core[1].statusText()
	if a == b {
		return
	}
	if !slices.Equal(statusParts(a), statusParts(b)) {
		s.differ("Status.String", a, b)
	}
}

// scribble overwrites a status, because a host may change its raft.Status.
func scribble(st *raft.Status) {
	*st.HardState.Term, *st.HardState.Commit = 1<<40, 1<<41
	for _, set := range []map[uint64]struct{}{st.Config.Voters[0], st.Config.Voters[1], st.Config.Learners, st.Config.LearnersNext} {
		for id := range set {
			delete(set, id)
		}
	}
	for id := range st.Progress {
		delete(st.Progress, id)
	}
}

// compareDisks compares the disks of both sides; tail is as for disk.fingerprint.
func (s *schedule) compareDisks(m *member, tail uint64) {
	a, b := m.disk[0].fingerprint(tail), m.disk[1].fingerprint(tail)
	if a == b {
		return
	}
	var shown [2]string
	for side, d := range m.disk {
		hs, cs, _ := d.InitialState()
		base, last, snap := d.bounds()
		shown[side] = fmt.Sprintf("hard state %s\nconf state %s\nbase %d last %d snapshot %d", render(hs), render(cs), base, last, snap)
		if base < last {
			ents, _ := d.memory.Entries(base+1, last+1, ^uint64(0))
			shown[side] += "\n" + render(ents)
		}
	}
	s.fail("storage", sides(s.libs, shown[0], shown[1]))
}

// network holds messages on their way, each with its twin of the other side.
type network []packet

type packet struct {
	m [2]*pb.Message
}

func (p packet) to() uint64 { return p.m[0].GetTo() }
