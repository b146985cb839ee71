// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"fmt"
	"slices"
	"strings"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/raft"
)

// difference is a point at which the two libraries behaved differently, or at which a library
// changed a value after handing it out.
type difference struct {
	// Seed reproduces the schedule; Call is the number of the call that showed the difference.
	Seed, Call uint64
	// What names the difference in a few words.
	What string
	// Detail shows both sides.
	Detail string
	// Trace has the last calls, one call a line.
	Trace []string
}

// Error returns all fields, over many lines.
func (d *difference) Error() string {
	return fmt.Sprintf("seed %d, call %d: %s\n%s\nlast calls:\n  %s",
		d.Seed, d.Call, d.What, d.Detail, strings.Join(d.Trace, "\n  "))
}

// sides shows two renderings under each other or, for renderings of many lines, the lines that only
// one of the sides has.
func sides(libs [2]library, a, b string) string {
	if a == b {
		a, b = fmt.Sprintf("%q", a), "(renders the same: it differs in nil-ness or in an unknown field)"
	}
	la, lb := strings.Split(a, "\n"), strings.Split(b, "\n")
	if len(la)+len(lb) > 8 {
		la, lb = only(la, lb), only(lb, la)
	}
	return fmt.Sprintf("  %s:\n    %s\n  %s:\n    %s", libs[0].name, strings.Join(la, "\n    "), libs[1].name, strings.Join(lb, "\n    "))
}

// only returns the lines of a that b does not have, with their numbers.
func only(a, b []string) []string {
	var out []string
	for i, line := range a {
		if !slices.Contains(b, line) {
			out = append(out, fmt.Sprintf("%3d: %s", i+1, line))
		}
	}
	return out
}

// render writes every field, and distinguishes absent fields from zero fields.
func render(v any) string {
	switch v := v.(type) {
	case raft.Ready:
		return renderReady(v)
	case raft.Status:
		return renderStatus(v)
	case []*pb.Entry:
		return renderList(v)
	case []*pb.Message:
		return renderList(v)
	case proto.Message:
		// prototext varies its spaces on purpose, from build to build.
		return strings.ReplaceAll(prototext.MarshalOptions{Multiline: false}.Format(v), "  ", " ")
	}
	return fmt.Sprintf("%+v", v)
}

func renderList[M proto.Message](list []M) string {
	if list == nil {
		return "nil"
	}
	lines := []string{fmt.Sprintf("%d:", len(list))}
	for _, m := range list {
		lines = append(lines, "  "+render(m))
	}
	return strings.Join(lines, "\n")
}

func renderReady(rd raft.Ready) string {
	hs, snap := "nil", "nil"
	if rd.HardState != nil {
		hs = "{" + render(rd.HardState) + "}"
	}
	if rd.Snapshot != nil {
		snap = "{" + render(rd.Snapshot) + "}"
	}
	soft := "nil"
	if rd.SoftState != nil {
		soft = fmt.Sprintf("%+v", *rd.SoftState)
	}
	return fmt.Sprintf("SoftState %s\nHardState %s\nReadStates %#v\nEntries %s\nSnapshot %s\nCommittedEntries %s\nMessages %s\nMustSync %t",
		soft, hs, rd.ReadStates, render(rd.Entries), snap, render(rd.CommittedEntries), render(rd.Messages), rd.MustSync)
}

func renderStatus(s raft.Status) string {
	lines := []string{
		fmt.Sprintf("ID %x HardState {%s} SoftState %+v Applied %d LeadTransferee %x", s.ID, render(s.HardState), s.SoftState, s.Applied, s.LeadTransferee),
		fmt.Sprintf("Config %#v", s.Config),
		fmt.Sprintf("Progress nil: %t", s.Progress == nil),
	}
	ids := make([]uint64, 0, len(s.Progress))
	for id := range s.Progress {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		pr := s.Progress[id]
		in := pr.Inflights
		pr.Inflights = nil
		lines = append(lines, fmt.Sprintf("  %x: %+v, inflights %+v", id, pr, in))
	}
	return strings.Join(lines, "\n")
}
