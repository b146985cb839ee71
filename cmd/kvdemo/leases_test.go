// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// startResponders starts three nodes with leases, all of which answer reads.
func startResponders(t *testing.T) *servers {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes")
	}
	s := startServers(t, "--leases", "--tick", "50ms")
	s.leader()
	s.name("1", "2", "3")
	return s
}

// name names responders, and waits until they are named.
func (s *servers) name(args ...string) {
	s.t.Helper()
	eventually(s.t, "a roster", func() bool {
		return s.do(s.all(), append([]string{"roster", "name", "--timeout", "20s"}, args...)...).code == 0
	})
}

// read reads a key at one node.
func (s *servers) read(i int, key string, extra ...string) (r getResult) {
	s.t.Helper()
	eventually(s.t, "a read", func() bool {
		out := s.do(s.endpoints[i], append([]string{"get", key, "--json", "--timeout", "20s"}, extra...)...)
		return out.code == 0 && json.Unmarshal([]byte(out.out), &r) == nil
	})
	return r
}

// groups returns the status of group 1 at each node that answers.
func (s *servers) groups() map[int]groupResult {
	all := map[int]groupResult{}
	for line := range strings.Lines(s.do(s.all(), "status", "--json").out) {
		var st statusResult
		require.NoError(s.t, json.Unmarshal([]byte(line), &st))
		if len(st.Groups) > 0 {
			all[int(st.GetId())-1] = st.Groups[0]
		}
	}
	return all
}

// leadElsewhere returns the leader. A node that is to read as a follower hands leadership on, where an election, or the wish for
// the fastest leader, has brought it.
func (s *servers) leadElsewhere(follower int) (lead int) {
	eventually(s.t, "another leader", func() bool {
		if lead = s.leader(); lead == follower {
			s.do(s.all(), "transfer", strconv.Itoa((follower+1)%3+1), "--timeout", "20s")
		}
		return lead != follower
	})
	return lead
}

// Reads at a node that the roster names are answered there: no node asks the leader,
// and the leader answers nothing.
func TestReadsAreServedAtTheResponderThatTheyReach(t *testing.T) {
	s := startResponders(t)
	follower := (s.leader() + 1) % 3
	s.put(s.all(), "k", "v")
	const reads = 20
	eventually(t, "reads that are served by the roster, without an election in between", func() bool {
		lead := s.leadElsewhere(follower)
		before := s.groups()
		for range reads {
			if r := s.read(follower, "k"); r.Served.By != "roster" {
				return false
			}
		}
		after := s.groups()
		if len(before) < 3 || len(after) < 3 || before[lead].Term != after[lead].Term {
			return false
		}
		require.EqualValues(t, before[follower].Reads.Roster+reads, after[follower].Reads.Roster)
		require.Equal(t, before[follower].Leases.AsResponder+reads, after[follower].Leases.AsResponder)
		require.Equal(t, before[follower].Reads.Leader, after[follower].Reads.Leader)
		require.Equal(t, before[lead].Leases.AsLeader, after[lead].Leases.AsLeader, "the leader was asked")
		return true
	})
	for policy, by := range map[string]string{"default": "roster", "local": "roster", "leader": "leader", "quorum": "quorum", "stale": "stale", "stale:10/": "roster"} {
		eventually(t, policy+" to be served by "+by, func() bool {
			s.leadElsewhere(follower)
			r := s.read(follower, "k", "--policy", policy)
			require.EqualValues(t, follower+1, r.Served.Node)
			require.Equal(t, "v", string(r.Value))
			return r.Served.By == by
		})
	}
	r := s.do(s.endpoints[follower], "get", "k", "-v")
	require.Equal(t, "v", r.out)
	require.Regexp(t, fmt.Sprintf("served at node %d, by ", follower+1), r.err)
	r = s.do(s.all(), "status")
	require.Regexp(t, `NODE +GROUP +ROSTER +NAMED`, r.out)
	s.checkRosterVerbs()
	s.stop()
}

// checkRosterVerbs tries what operators may say.
func (s *servers) checkRosterVerbs() {
	t := s.t
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"roster", "name", "9"}, exitNotFound, "node 9 is no member"},
		{[]string{"roster", "name", "1", "--span", "a:b"}, exitUsage, "unname one of them first"},
		{[]string{"roster", "name", "x"}, exitUsage, `name: node id "x", want a number of 1 or more`},
		{[]string{"roster", "name", "1", "--span", "b:a"}, exitUsage, `--span: "b:a", want from:to`},
		{[]string{"roster", "name"}, exitUsage, "name: requires at least 1 arg(s)"},
		{[]string{"roster", "unname", "--span", "x:y"}, exitNotFound, "nobody of these"},
		{[]string{"roster", "tuner", "auto"}, exitUsage, `tuner: "auto", want on, watch or off`},
		{[]string{"roster", "tuner"}, exitUsage, "tuner: accepts 1 arg(s), received 0"},
	} {
		r := s.do(s.all(), append(c.args, "--timeout", "30s")...)
		require.Equal(t, c.code, r.code, "%v: %s", c.args, r.err)
		require.Contains(t, r.err, c.want)
	}
	done := func(args ...string) string {
		var r result
		eventually(t, "a roster", func() bool {
			r = s.do(s.all(), append(args, "--timeout", "20s")...)
			return r.code == 0
		})
		return r.out
	}
	require.Regexp(t, `all +1 2 +1 2 `, done("roster", "unname", "3"))
	require.Regexp(t, `all +- +- `, done("roster", "unname"))
	require.Regexp(t, `a:b +2 3 +2 3 `, done("roster", "name", "3", "2", "--span", "a:b"))
	require.Regexp(t, `a:b +2 3 +- +retired`, done("roster", "retire"))
	require.Regexp(t, `a:b +2 3 +2 3 `, done("roster", "resume"))
	require.Regexp(t, `a:b +2 3 `, done("roster", "show"))
}

// Processes are paused for longer than leases last, or killed. Afterwards no answer to a read
// lacks a write that was acknowledged meanwhile, not even the answer to a read that arrived
// during the pause.
func TestReadsAreFreshAfterPausesAndKills(t *testing.T) {
	s := startResponders(t)
	for round := range 2 {
		for i := range s.cmds {
			before, after := fmt.Sprint("before ", round, i), fmt.Sprint("after ", round, i)
			s.put(s.all(), "k", before)
			require.Equal(t, before, string(s.read(i, "k").Value))
			others := strings.Join(append(append([]string{}, s.endpoints[:i]...), s.endpoints[i+1:]...), ",")
			if round == 0 {
				require.NoError(t, s.cmds[i].Process.Signal(syscall.SIGSTOP))
				time.Sleep(1500 * time.Millisecond) // it is what this test is about
			} else {
				s.kill(i)
			}
			s.put(others, "k", after)
			if round == 1 {
				s.start(i)
				require.Equal(t, after, string(s.read(i, "k").Value))
				continue
			}
			read := make(chan getResult, 1)
			go func() { read <- s.read(i, "k", "--policy", "local") }()
			time.Sleep(100 * time.Millisecond) // for the read to get there, mostly
			require.NoError(t, s.cmds[i].Process.Signal(syscall.SIGCONT))
			require.Equal(t, after, string((<-read).Value))
		}
	}
	s.stop()
}

// A cluster keeps its roster when all nodes are restarted, and goes on without leases
// when they are retired.
func TestRosterOutlivesARestartAndLeasesCanBeRetired(t *testing.T) {
	s := startResponders(t)
	s.put(s.all(), "k", "v")
	for i := range s.cmds {
		s.kill(i)
	}
	for i := range s.cmds {
		s.start(i)
	}
	eventually(t, "reads at both nodes that do not lead", func() bool { // another may lead by the next look
		lead := s.leader()
		return s.read((lead+1)%3, "k").Served.By == "roster" && s.read((lead+2)%3, "k").Served.By == "roster"
	})
	eventually(t, "leases to be retired", func() bool { return s.do(s.all(), "roster", "retire").code == 0 })
	s.stop()
	for i := range s.cmds {
		s.args[i] = append(s.args[i], "--leases=false")
		s.start(i)
	}
	require.Equal(t, "leader", s.read(s.leader(), "k").Served.By)
	r := s.do(s.all(), "roster", "name", "1")
	require.Equal(t, exitFailure, r.code)
	require.Contains(t, r.err, "this node runs without roster leases: start all nodes with --leases")
	r = s.do(s.all(), "roster", "show")
	require.Equal(t, exitFailure, r.code)
	require.Contains(t, s.log(0), "it waits until what it promised has ended")
	s.stop()
}
