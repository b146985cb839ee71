// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package electorate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.etcd.io/raft/v3/quorum"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// node is an electorate with its log, which a script writes.
type node struct {
	*Electorate
	log    map[uint64]*pb.Entry
	last   uint64
	handed uint64
}

func (n *node) Entry(index uint64) (*pb.Entry, error) {
	if e := n.log[index]; e != nil {
		return e, nil
	}
	return nil, errors.New("there is none")
}

func (n *node) HandedOut() uint64 { return n.handed }

// TestQuestions runs the scripts. After each step that changes anything the sets that count are
// drawn, a line a set, with a column for each node.
//
//	start voters=(1 2 3) [outgoing=(..)] [learners=(..)] [autoleave] [plain|leases] [first]
//	append v4 [r3 ...] [joint|explicit]   a change is appended; "leave" ends a joint configuration
//	cut at=N       the log is dropped from N on
//	hand to=N      the host is handed entries up to N
//	report to=N [leads]    and says that they are applied, at a leader perhaps
//	apply v4 ...   ApplyConfChange; "none" refuses, as etcd does
//	restore voters=(1 2) [learners=(..)]  a snapshot takes the place of the log
//	learn at=N voters=(1 2) [outgoing=(..)] [learners=(..)]  another has these members in force at N
//	settled to=N   what this node tells others, if it has applied its log up to N
//	coming         the sets by which leases count beside those in force
//	follow by=N    a leader follows whom it has to
//	vote yes=(..) [no=(..)], acks a=(id/index ..), heard from=(..)
func TestQuestions(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var n *node
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "start" {
				n = start(t, d)
				return n.draw()
			}
			return n.do(t, d)
		})
	})
}

func start(t *testing.T, d *datadriven.TestData) *node {
	n := &node{log: map[uint64]*pb.Entry{}, last: 1, handed: 1}
	n.Electorate = New(8, 0, n, Rules{Tracks: !d.HasArg("plain"), Foresees: !d.HasArg("plain") && !d.HasArg("leases"), AppliedFirst: d.HasArg("first")})
	m, err := n.members(t, d)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	n.Take(m, n.last)
	return n
}

// members are those of a line.
func (n *node) members(t *testing.T, d *datadriven.TestData) (Members, error) {
	return n.Restored(&pb.ConfState{
		Voters: ids(t, d, "voters"), VotersOutgoing: ids(t, d, "outgoing"), Learners: ids(t, d, "learners"), AutoLeave: new(d.HasArg("autoleave")),
	}, n.last)
}

func (n *node) do(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "append":
		n.last++
		data, err := proto.Marshal(changeOf(t, d))
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		n.log[n.last] = &pb.Entry{Type: pb.EntryConfChangeV2.Enum(), Index: new(n.last), Data: data}
		n.Appended([]*pb.Entry{n.log[n.last]})
	case "cut":
		at := number(t, d, "at")
		n.Cut(at)
		n.last = at - 1
	case "hand":
		n.handed = number(t, d, "to")
		return fmt.Sprintln("a snapshot must wait:", n.HoldsChange())
	case "report":
		n.handed = max(n.handed, number(t, d, "to"))
		n.Reported(number(t, d, "to"), d.HasArg("leads"))
	case "repeats":
		n.Repeats(number(t, d, "committed"), n.last)
	case "apply":
		if _, err := n.Apply(changeOf(t, d), n.last); err != nil {
			return fmt.Sprintln(err)
		}
	case "restore":
		m, err := n.members(t, d)
		if err != nil {
			return fmt.Sprintln(err)
		}
		n.handed = n.last
		n.Take(m, n.last)
	case "learn":
		m, err := n.members(t, d)
		if err != nil {
			return fmt.Sprintln(err)
		}
		if !n.Learn(m, number(t, d, "at")) {
			return "nothing new\n"
		}
	case "coming":
		return fmt.Sprintln(n.Coming())
	case "settled":
		cs, index, ok := n.Settled(number(t, d, "to"))
		if !ok {
			return "nothing\n"
		}
		return fmt.Sprintf("voters %v, outgoing %v, learners %v at %d\n", cs.GetVoters(), cs.GetVotersOutgoing(), cs.GetLearners(), index)
	case "follow":
		n.Follow(number(t, d, "by"), n.last+1)
		return fmt.Sprintln("followed:", slices.Sorted(maps.Keys(n.All())))
	case "vote":
		votes := map[uint64]bool{}
		for _, id := range ids(t, d, "yes") {
			votes[id] = true
		}
		for _, id := range ids(t, d, "no") {
			votes[id] = false
		}
		return fmt.Sprintln(n.Tally(votes))
	case "acks":
		said := numbers{}
		for _, a := range text(t, d, "a") {
			var id, index uint64
			if _, err := fmt.Sscanf(a, "%d/%d", &id, &index); err != nil {
				d.Fatalf(t, "%q: %v", a, err)
			}
			said[id] = quorum.Index(index)
			if pr := n.Progress(id); pr != nil {
				pr.Match = index
			}
		}
		return fmt.Sprintf("committable %d, a read of round %d\n", n.Committable(), n.Confirmed(said))
	case "heard":
		for id, pr := range n.All() {
			pr.RecentActive = slices.Contains(ids(t, d, "from"), id)
		}
		return fmt.Sprintln("a majority of each set:", n.Active())
	default:
		d.Fatalf(t, "no command %q", d.Cmd)
	}
	return n.draw()
}

// numbers are what nodes have said.
type numbers map[uint64]quorum.Index

func (n numbers) AckedIndex(id uint64) (quorum.Index, bool) { i, ok := n[id]; return i, ok }

// draw draws the sets that count, and says who may do what.
func (n *node) draw() string {
	var b strings.Builder
	everyone := n.Everyone()
	for _, id := range n.newestOf() {
		if !slices.Contains(everyone, id) {
			everyone = ascending(append(everyone, id))
		}
	}
	line := func(what string, in func(id uint64) bool) {
		fmt.Fprintf(&b, "%-10s", what)
		for _, id := range everyone {
			mark := "."
			if in(id) {
				mark = fmt.Sprint(id)
			}
			fmt.Fprintf(&b, " %s", mark)
		}
		fmt.Fprintln(&b)
	}
	names := []string{"in force", "outgoing"}
	for i, set := range n.Sets() {
		name := "to come"
		if i < len(names) {
			name = names[i]
		}
		if len(set) > 0 {
			line(name, func(id uint64) bool { _, in := set[id]; return in })
		}
	}
	heirs, since := n.Heirs()
	line("heirs", func(id uint64) bool { return slices.Contains(heirs, id) })
	line("may win", func(id uint64) bool { return n.MayWin(id, false) })
	line("early", func(id uint64) bool { return n.MayWin(id, true) })
	line("expected", n.Expects)
	line("everyone", func(id uint64) bool { return slices.Contains(n.Everyone(), id) })
	fmt.Fprintf(&b, "asked for votes %v, heirs since %d, new voters %v, in force to %d of %d", n.Voters(), since, ascending(n.Brings()), n.InForceTo(n.last), n.last)
	if n.MustLeave() {
		b.WriteString(", to be left")
	}
	if err := n.MayFollow(); err != nil {
		fmt.Fprintf(&b, "\nno change may follow: %v", err)
	}
	fmt.Fprintln(&b)
	return b.String()
}

func (n *node) newestOf() []uint64 { heirs, _ := n.Heirs(); return heirs }

func changeOf(t *testing.T, d *datadriven.TestData) *pb.ConfChangeV2 {
	if d.HasArg("none") {
		return (&pb.ConfChange{NodeId: new(uint64)}).AsV2()
	}
	cc := &pb.ConfChangeV2{}
	var steps []string
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "leave":
		case "joint":
			cc.Transition = pb.ConfChangeTransitionJointImplicit.Enum()
		case "explicit":
			cc.Transition = pb.ConfChangeTransitionJointExplicit.Enum()
		default:
			steps = append(steps, a.Key)
		}
	}
	changes, err := pb.ConfChangesFromString(strings.Join(steps, " "))
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	cc.Changes = changes
	return cc
}

func text(t *testing.T, d *datadriven.TestData, name string) []string {
	for _, a := range d.CmdArgs {
		if a.Key == name {
			return strings.Fields(strings.Join(a.Vals, " "))
		}
	}
	return nil
}

func ids(t *testing.T, d *datadriven.TestData, name string) (all []uint64) {
	for _, s := range text(t, d, name) {
		var id uint64
		if _, err := fmt.Sscan(s, &id); err != nil {
			d.Fatalf(t, "%q: %v", s, err)
		}
		all = append(all, id)
	}
	return all
}

func number(t *testing.T, d *datadriven.TestData, name string) uint64 {
	if all := ids(t, d, name); len(all) == 1 {
		return all[0]
	}
	d.Fatalf(t, "%s needs a number", name)
	return 0
}
