// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Two election timeouts, on a quiet machine: go test ./cmd/kvdemo -run TestMembership -v -args -gap 1s
var maxGap = flag.Duration("gap", 20*time.Second, "fail TestMembership if no write is acknowledged for so long")

// Members come and go while clients write: all three are replaced one by one,
// three become five, five become three without their leader, a learner gets a
// vote and leads. Every write is acknowledged in the end and none is lost.
func TestMembership(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	for _, groups := range []int{1, 3} {
		t.Run(fmt.Sprintf("groups=%d", groups), func(t *testing.T) { testMembership(t, groups) })
	}
}

func testMembership(t *testing.T, groups int) {
	f := newFleet(t, 3, 9, "--groups", fmt.Sprint(groups))
	f.do("put", "first", "write")
	w := f.load(4)
	var worst time.Duration
	step := func(what string, do func()) {
		_ = w.gap()
		begin := time.Now()
		do()
		gap := w.gap()
		worst = max(worst, gap)
		t.Logf("%-28s %8v, longest without a write %v", what, time.Since(begin).Round(time.Millisecond), gap.Round(time.Millisecond))
	}
	for old := 1; old <= 3; old++ {
		step(fmt.Sprintf("replace %d by %d", old, old+3), func() {
			f.add(old + 3)
			f.remove(old)
		})
	}
	require.Equal(t, map[uint64]string{4: "voter", 5: "voter", 6: "voter"}, f.members())
	step("grow to five", func() {
		f.add(7)
		f.add(8)
	})
	step("a learner", func() { f.add(9, "--learner") })
	step("promote the learner, which it is asked itself", func() { // and which may not know any member yet
		r := kvdemo(t.Context(), "", "member", "promote", "9", "--endpoints", f.sure[9], "--timeout", limit.String())
		require.Zero(t, r.code, r.err)
	})
	require.Len(t, f.members(), 6)
	step("lead", func() { f.do("transfer", "9", "--group", "1") })
	step("remove the leader", func() { f.remove(f.leader()) })
	step("shrink to three", func() {
		f.remove(7)
		f.remove(8)
	})
	require.Len(t, f.members(), 3)
	t.Logf("%d writes, longest without one: %v", w.stop(), worst.Round(time.Millisecond))
	require.Less(t, worst, *maxGap)
	f.stop()
}

// Changes of the members that make no sense, or would do harm, are refused, and
// say why; and nobody comes back who was removed.
func TestMemberMistakes(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	f := newFleet(t, 3, 5, "--groups", "2", "--tick", "20ms")
	f.do("put", "k", "v")
	refusedWith := func(code int, want string, args ...string) {
		t.Helper()
		r := kvdemo(t.Context(), "", append(args, "--endpoints", f.endpoints(), "--timeout", limit.String())...)
		require.Equal(t, code, r.code, r.err)
		require.Contains(t, r.err, want)
	}
	refused := func(want string, args ...string) { t.Helper(); refusedWith(exitFailure, want, args...) }
	refusedWith(exitNotFound, "node 9 is no member: the members are [1 2 3]", "member", "remove", "9")
	refusedWith(exitNotFound, "node 9 is no member", "member", "promote", "9")
	refused("no such member of the group: 9; the voters are [1 2 3]", "transfer", "9")
	refusedWith(exitUsage, "group 3: want 1 to 2", "transfer", "1", "--group", "3")
	refused(f.nodes[2].peer+" is the address of node 2", "member", "add", "4", f.nodes[2].peer)
	refused("node 2 is there already, at "+f.nodes[2].peer, "member", "add", "2", freePort(t))

	// A node that does not come up gets no vote, and a second attempt goes on.
	f.nodes[4] = &ship{peer: freePort(t)}
	var r result
	eventually(t, "node 4 to be a learner", func() bool { // which may take the whole time of a call
		r = kvdemo(t.Context(), "", "member", "add", "4", f.nodes[4].peer, "--endpoints", f.endpoints(), "--timeout", "2s")
		return strings.Contains(r.err, "node 4 stays a learner of group 1")
	})
	require.Equal(t, exitFailure, r.code)
	require.Equal(t, "learner", f.members()[4])
	f.start(4, "--join")
	f.do("member", "add", "4", f.nodes[4].peer)
	require.Equal(t, "voter", f.members()[4])
	f.remove(4)
	refused("node 4 was removed, and nobody may come back under its id", "member", "add", "4", f.nodes[4].peer)
	f.do("member", "remove", "4") // as it is

	// With one of three dead, another cannot be spared, although the leader of a group may have heard from
	// the dead one a moment ago.
	f.kill(3)
	refused("the group might not go on after it", "member", "remove", "2")
	f.do("member", "remove", "3")
	require.Equal(t, map[uint64]string{1: "voter", 2: "voter"}, f.members())

	// A minority changes nothing, and says so in time.
	f.kill(2)
	begin := time.Now()
	r = kvdemo(t.Context(), "", "member", "add", "5", freePort(t), "--endpoints", f.endpoints(), "--timeout", "2s")
	require.Equal(t, exitUnreachable, r.code)
	require.Contains(t, r.err, "no node could take the request in time")
	require.Less(t, time.Since(begin), limit)
	f.start(2)
	require.Equal(t, "v", f.do("get", "k"))
	f.stop()
}

// A node that comes back at another address is found there, although the others have the old one in their
// flags; and so are all that move at a time.
func TestMembersMoveToOtherAddresses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	f := newFleet(t, 3, 3, "--groups", "2", "--tick", "20ms")
	f.do("put", "k", "v")
	move := func(ids ...int) {
		for _, id := range ids {
			s := f.nodes[id]
			require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
			require.NoError(t, s.cmd.Wait())
			f.nodes[id] = &ship{peer: freePort(t)}
		}
		for _, id := range ids {
			f.start(id)
		}
		f.healthy()
		eventually(t, "all to say where they are", func() bool {
			out := f.do("member", "list", "--json")
			for id, s := range f.nodes {
				if !strings.Contains(out, fmt.Sprintf(`{"id":%d,"address":"%s"`, id, s.peer)) {
					return false
				}
			}
			return true
		})
	}
	move(3)
	f.kill(2) // so that nothing is done without the node that has moved
	f.do("put", "k", "w")
	f.start(2)
	f.healthy()
	move(1, 2, 3)
	require.Equal(t, "w", f.do("get", "k"))
	f.stop()
}

// A node that was removed while it was away does not come back into the cluster.
func TestRemovedNodeStaysAway(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	f := newFleet(t, 3, 3, "--tick", "20ms")
	f.do("put", "k", "v")
	// A node that hears of its removal stops, and gives the reason at the next start.
	f.remove(3)
	ctx, cancel := context.WithTimeout(t.Context(), limit/20)
	defer cancel()
	r := kvdemo(ctx, "", f.nodes[3].cmd.Args[1:]...)
	if ctx.Err() != nil { // it had not heard, and was stopped
		t.Skip("the node did not hear of its removal")
	}
	require.Equal(t, exitFailure, r.code)
	require.Contains(t, r.err, "node 3 was removed from its cluster")
	f.stop()
}

// A node whose directory was lost is started under its old id all the same. The node stops
// and names the remedy, also at later starts. The other nodes show the member's log as lost
// until the member is replaced.
func TestNodeThatLostItsDirectoryStops(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	// The leader must stay, however slow the machine is, because a later leader does not
	// know the entries that the node has acknowledged.
	f := newFleet(t, 3, 4, "--groups", "2", "--tick", "20ms", "--election-ticks", "100")
	f.do("put", "k", "v")
	f.do("transfer", "1")
	f.do("put", "k", "v")
	eventually(t, "node 3 to have all", func() bool {
		out := f.do("member", "list", "--json")
		return strings.Contains(out, `{"id":3,"address":"`+f.nodes[3].peer+`","role":"voter","behind":0}`)
	})
	f.kill(3)
	require.NoError(t, os.RemoveAll(filepath.Join(f.dir, "3")))
	f.start(3)
	ended := make(chan error, 1)
	go func() { ended <- f.nodes[3].cmd.Wait() }()
	select {
	case err := <-ended:
		require.Error(t, err)
	case <-time.After(limit):
		require.Fail(t, "it does not stop")
	}
	text, err := os.ReadFile(f.nodes[3].log)
	require.NoError(t, err)
	require.Contains(t, string(text), "this node has lost its log: node 1 leads, and knows that node 3 has acknowledged index")
	require.Contains(t, string(text), "kvdemo member remove 3")
	require.Less(t, strings.Count(string(text), "message refused"), 10)

	r := kvdemo(t.Context(), "", f.nodes[3].cmd.Args[1:]...)
	require.Equal(t, exitFailure, r.code)
	require.Contains(t, r.err, "this node has lost its log")
	require.Contains(t, r.err, "kvdemo member remove 3")

	eventually(t, "the leader to hear nothing of it", func() bool {
		return strings.Contains(f.do("member", "list"), "silent")
	})
	require.Regexp(t, `(?m)^3 .* voter, log lost `, f.do("member", "list"))
	require.NotRegexp(t, `(?m)^[12] .*log lost`, f.do("member", "list"))
	f.add(4)
	f.do("member", "remove", "3")
	require.Equal(t, map[uint64]string{1: "voter", 2: "voter", 4: "voter"}, f.members())
	f.stop()
}
