// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// roster returns the roster of group 1, as the nodes that answer say.
func (s *servers) roster(args ...string) (r groupRoster, ok bool) {
	s.t.Helper()
	out := s.do(s.all(), append(append([]string{"roster"}, args...), "--json", "--timeout", "20s")...)
	first, _, _ := strings.Cut(out.out, "\n")
	return r, out.code == 0 && json.Unmarshal([]byte(first), &r) == nil
}

// readAlong reads a key at a node until a roster is right: what the tuner counts is
// forgotten by and by. If an election has made the node the leader, which needs no responder, another is to lead.
func (s *servers) readAlong(i int, key, what string, right func(groupRoster) bool) (r groupRoster) {
	s.t.Helper()
	looked := time.Now()
	eventually(s.t, what, func() bool {
		s.read(i, key)
		if time.Since(looked) < 300*time.Millisecond {
			return false
		}
		looked = time.Now()
		var ok bool
		r, ok = s.roster("show")
		if ok && !right(r) && r.Leader == uint64(i+1) {
			s.leadElsewhere(i)
		}
		return ok && right(r)
	})
	return r
}

// The tuner is switched while a cluster runs: it watches and names nobody, is on and names
// the node where a key is read, also after its leader is gone and after all nodes were
// restarted, and is off, with nobody left but those named by hand.
func TestTunerIsSwitchedWhileTheClusterRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	s := startServers(t, "--leases", "--tick", "50ms")
	reader := (s.leader() + 1) % 3
	id := uint64(reader + 1)
	s.put(s.all(), "hot", "v")
	tuned := func(r groupRoster) bool {
		return r.Tuner.mode() == "on" && len(r.named(assignmentResult{From: "hot", To: "hot\x00", Nodes: []uint64{id}})) == 1
	}
	turn := func(word string) (r groupRoster) {
		eventually(t, "the tuner to be "+word, func() bool {
			var ok bool
			r, ok = s.roster("tuner", word)
			return ok
		})
		require.Equal(t, word, r.Tuner.Mode)
		return r
	}
	r, ok := s.roster("show")
	require.True(t, ok)
	require.Equal(t, "off", r.Tuner.Mode)

	turn("watch")
	r = s.readAlong(reader, "hot", "the tuner to find the reader", func(r groupRoster) bool {
		return len(r.Tuner.Choices) > 0 && r.Tuner.Choices[0].Why == "read there"
	})
	require.Equal(t, "hot", r.Tuner.Choices[0].From)
	require.Equal(t, []uint64{id}, r.Tuner.Choices[0].Nodes)
	require.Empty(t, r.Named, "nobody has switched the tuner on")
	require.Empty(t, r.Wanted)
	shown := s.do(s.all(), "roster", "show").out
	require.Regexp(t, `GROUP +TUNER +SPAN +READS +WRITES +READ AT +CHOOSES +WHY`, shown)
	require.Contains(t, shown, "read there")

	turn("on")
	s.readAlong(reader, "hot", "the tuner's responder", tuned)
	eventually(t, "a read at the responder", func() bool {
		s.leadElsewhere(reader)
		return s.read(reader, "hot").Served.By == "roster"
	})

	s.kill((reader + 2) % 3) // the leader, unless there was an election
	s.readAlong(reader, "hot", "the tuner's responder, or its lead, with one node dead", func(r groupRoster) bool {
		return tuned(r) || r.Leader == id && r.Tuner.mode() == "on"
	})
	for i := range s.cmds {
		if i != (reader+2)%3 {
			s.kill(i)
		}
	}
	for i := range s.cmds {
		s.start(i)
	}
	s.readAlong(reader, "hot", "the tuner's responder after a restart of all", func(r groupRoster) bool {
		return tuned(r) || r.Leader == id && len(r.Tuner.Choices) > 0 && r.Tuner.Choices[0].Why == "read there"
	})

	s.name("1", "--span", "a:b")
	turn("off")
	eventually(t, "only the node named by hand", func() bool {
		r, ok := s.roster("show")
		return ok && r.Tuner.mode() == "off" && len(r.Wanted) == 1 && r.Wanted[0].From == "a" && len(r.named(r.Wanted[0])) == 1 && len(r.Named) <= 1
	})
	s.stop()
}

// Most nodes are started without leases before leases were retired. Leadership can be handed
// to one of them, which writes do not wait for.
func TestLeadershipIsHandedOverWhereMostNodesLostTheirLeases(t *testing.T) {
	s := startResponders(t)
	s.put(s.all(), "k", "v")
	with := s.leader()
	for i := range s.cmds {
		if i != with { // one after the other, so that the leader goes on
			s.kill(i)
			s.args[i] = append(s.args[i], "--leases=false")
			s.start(i)
			s.allBack()
		}
	}
	heir := (with + 1) % 3
	eventually(t, "a leader without leases", func() bool {
		s.do(s.all(), "transfer", strconv.Itoa(heir+1), "--timeout", "20s")
		return s.leader() == heir
	})
	s.kill(with)
	s.put(s.all(), "k", "w")
	require.Equal(t, "w", string(s.read((with+2)%3, "k").Value))
	s.start(with)
	s.allBack()
	s.stop()
}

// allBack waits until all nodes answer and one of them leads.
func (s *servers) allBack() {
	s.t.Helper()
	eventually(s.t, "all nodes", func() bool { return len(s.groups()) == 3 && s.leader() >= 0 })
}
