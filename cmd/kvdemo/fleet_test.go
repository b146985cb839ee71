// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/internal/page"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// fleet is a cluster of processes whose members come and go.
type fleet struct {
	t     *testing.T
	dir   string
	args  []string       // of every node
	nodes map[int]*ship  // that were ever started, by id
	sure  map[int]string // addresses for clients, of all nodes that there will be
	held  map[int]func() // gives the address up to the node that starts

	programs map[int]string // of the nodes that run another kvdemo than this one
}

// ship is a node of a fleet.
type ship struct {
	peer string
	cmd  *exec.Cmd
	log  string
}

// newFleet starts the first members. There will be no ids above last.
func newFleet(t *testing.T, first, last int, args ...string) *fleet {
	return makeFleet(t, first, last, nil, args...)
}

// newFleetOf starts a fleet whose members, all of them, run other programs.
func newFleetOf(t *testing.T, programs map[int]string, args ...string) *fleet {
	return makeFleet(t, len(programs), len(programs), programs, args...)
}

func makeFleet(t *testing.T, first, last int, programs map[int]string, args ...string) *fleet {
	f := &fleet{t: t, dir: t.TempDir(), args: args, nodes: map[int]*ship{}, sure: map[int]string{}, held: map[int]func(){}, programs: programs}
	for id := 1; id <= last; id++ {
		f.sure[id], f.held[id] = hold(t)
	}
	for id := 1; id <= first; id++ {
		f.nodes[id] = &ship{peer: freePort(t)}
	}
	for id := 1; id <= first; id++ {
		f.start(id)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for id, s := range f.nodes {
				text, _ := os.ReadFile(s.log)
				t.Logf("log of node %d:\n%s", id, text)
			}
		}
	})
	return f
}

// hold reserves a free address, and returns the address with a function that gives it up.
// Until then connections to the address fail, and no other program can take it: tests of other
// packages look for free ports, too. A port without a listener may still be taken for
// a while, until the kernel has forgotten old connections.
func hold(t *testing.T) (address string, giveUp func()) {
	t.Helper()
	for range 100 {
		address = freePort(t)
		if s, ok := bind(t, address); ok {
			giveUp = sync.OnceFunc(func() { _ = syscall.Close(s) }) // nothing was ever sent
			t.Cleanup(giveUp)
			return address, giveUp
		}
	}
	require.Fail(t, "no free port can be held")
	return "", nil
}

// bind returns a socket that has an address, or false if the address is in use.
func bind(t *testing.T, address string) (s int, ok bool) {
	at, err := net.ResolveTCPAddr("tcp4", address)
	require.NoError(t, err)
	syscall.ForkLock.RLock() // no process may inherit it
	s, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(s)
	}
	syscall.ForkLock.RUnlock()
	require.NoError(t, err)
	if err = syscall.Bind(s, &syscall.SockaddrInet4{Port: at.Port, Addr: [4]byte(at.IP.To4())}); err == nil {
		return s, true
	}
	_ = syscall.Close(s)
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	return 0, false
}

// start starts a node, with the members there are now as its peers.
func (f *fleet) start(id int, extra ...string) {
	var peers []string
	for other, s := range f.nodes {
		if other == id || s.cmd == nil || s.cmd.ProcessState == nil {
			peers = append(peers, fmt.Sprintf("%d=%s", other, s.peer))
		}
	}
	slices.Sort(peers)
	s := f.nodes[id]
	args := append([]string{
		"serve", "--id", fmt.Sprint(id), "--cluster", "9", "--peers", strings.Join(peers, ","),
		"--client-listen", f.sure[id], "--data", filepath.Join(f.dir, fmt.Sprint(id)),
	}, append(f.args, extra...)...)
	s.cmd, s.log = program(f.t, args...), filepath.Join(f.dir, fmt.Sprintf("%d.log", id))
	if path := f.programs[id]; path != "" {
		s.cmd.Path, s.cmd.Args[0] = path, path
	}
	if slices.Contains(f.args, "--orders") {
		in, orders, err := os.Pipe() // the node runs until orders is closed
		require.NoError(f.t, err)
		f.t.Cleanup(func() { _, _ = in.Close(), orders.Close() }) // the node is killed
		_, err = fmt.Fprintln(orders, page.Order{Policy: page.PolicyFewest})
		require.NoError(f.t, err)
		s.cmd.Stdin = in
	}
	f.held[id]()
	startLogged(f.t, s.cmd, s.log)
}

// endpoints are those of the nodes that run.
func (f *fleet) endpoints() string {
	var all []string
	for id, s := range f.nodes {
		if s.cmd != nil && s.cmd.ProcessState == nil {
			all = append(all, f.sure[id])
		}
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

// do runs a verb, which must succeed.
func (f *fleet) do(args ...string) string {
	f.t.Helper()
	r := kvdemo(f.t.Context(), "", append(args, "--endpoints", f.endpoints(), "--timeout", limit.String())...)
	require.Zero(f.t, r.code, "%v: %s", args, r.err)
	return r.out
}

// add starts a new node and adds it.
func (f *fleet) add(id int, extra ...string) {
	f.nodes[id] = &ship{peer: freePort(f.t)}
	f.start(id, "--join")
	f.do(append([]string{"member", "add", fmt.Sprint(id), f.nodes[id].peer}, extra...)...)
}

// remove removes a node, and waits until it has stopped.
func (f *fleet) remove(id int) {
	others := f.endpoints()
	s := f.nodes[id]
	r := kvdemo(f.t.Context(), "", "member", "remove", fmt.Sprint(id), "--endpoints", others, "--timeout", limit.String())
	require.Zero(f.t, r.code, r.err)
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	select {
	case err := <-ended: // it heard of it
		require.NoError(f.t, err)
	case <-time.After(limit / 20): // it did not, as happens; it has no say any more
		require.NoError(f.t, s.cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(f.t, <-ended)
	}
}

// kill takes a node's process away without a warning.
func (f *fleet) kill(id int) { kill(f.t, f.nodes[id].cmd) }

// members returns what each member is.
func (f *fleet) members() map[uint64]string {
	roles := map[uint64]string{}
	for line := range strings.Lines(f.do("member", "list", "--json")) {
		var m kvpb.MembersResponse_Member
		require.NoError(f.t, json.Unmarshal([]byte(line), &m))
		roles[m.GetId()] = m.GetRole()
	}
	return roles
}

// leads returns how many groups each member leads.
func (f *fleet) leads() map[uint64]int {
	leads := map[uint64]int{}
	for line := range strings.Lines(f.do("member", "list", "--json")) {
		var m kvpb.MembersResponse_Member
		require.NoError(f.t, json.Unmarshal([]byte(line), &m))
		leads[m.GetId()] = len(m.GetLeads())
	}
	return leads
}

// leader returns who leads group 1.
func (f *fleet) leader() (lead int) {
	eventually(f.t, "a leader", func() bool {
		r := kvdemo(f.t.Context(), "", "member", "list", "--json", "--endpoints", f.endpoints(), "--timeout", limit.String())
		if r.code == exitUnreachable {
			return false // no node listens yet
		}
		require.Zero(f.t, r.code, r.err)
		for line := range strings.Lines(r.out) {
			var m kvpb.MembersResponse_Member
			require.NoError(f.t, json.Unmarshal([]byte(line), &m))
			if slices.Contains(m.GetLeads(), 1) {
				lead = int(m.GetId())
			}
		}
		return lead > 0
	})
	return lead
}

// stop asks all nodes that run to stop, which they must do well.
func (f *fleet) stop() {
	for id, s := range f.nodes {
		if s.cmd.ProcessState == nil {
			require.NoError(f.t, s.cmd.Process.Signal(syscall.SIGTERM))
			require.NoError(f.t, s.cmd.Wait(), "node %d", id)
		}
	}
}

// traffic writes to a fleet as long as the test wants. Each writer counts up
// under a key of its own.
type traffic struct {
	f      *fleet
	name   string // before the names of its keys
	cancel context.CancelFunc
	ended  sync.WaitGroup

	mu      sync.Mutex
	last    time.Time // of an acknowledged write
	longest time.Duration
	acked   []int // by writer
	errs    []error
}

func (f *fleet) load(writers int) *traffic {
	return f.loadAt(slices.Collect(maps.Values(f.sure)), writers, "")
}

// loadAt is load at some endpoints, with a name before those of the keys.
func (f *fleet) loadAt(endpoints []string, writers int, name string) *traffic {
	ctx, cancel := context.WithCancel(f.t.Context())
	w := &traffic{f: f, name: name, cancel: cancel, acked: make([]int, writers)}
	for i := range writers {
		c, err := client.New(client.Config{Endpoints: endpoints, First: i, Timeout: limit})
		require.NoError(f.t, err)
		w.ended.Go(func() {
			w.write(ctx, c, i)
			_ = c.Close() // nothing is under way
		})
	}
	return w
}

func (w *traffic) write(ctx context.Context, c *client.Client, i int) {
	for n := 1; ctx.Err() == nil; n++ {
		_, err := c.Put(context.Background(), fmt.Sprintf("%swriter %d/%d", w.name, i, n), []byte(fmt.Sprint(n)))
		w.mu.Lock()
		now := time.Now()
		if err != nil {
			w.errs = append(w.errs, err)
		} else {
			w.acked[i] = n
		}
		if !w.last.IsZero() {
			w.longest = max(w.longest, now.Sub(w.last))
		}
		w.last = now
		w.mu.Unlock()
		time.Sleep(time.Millisecond) // the load is to be steady, not heavy
	}
}

// gap returns the longest time without an acknowledged write since gap was
// called last.
func (w *traffic) gap() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	longest := w.longest
	w.longest = 0
	return longest
}

// stop ends the load, and checks that every write was acknowledged, and is
// there, at each node.
func (w *traffic) stop() (writes int) {
	w.cancel()
	w.ended.Wait()
	require.Empty(w.f.t, w.errs)
	for i, n := range w.acked {
		out := w.f.do("ls", fmt.Sprintf("%swriter %d/", w.name, i), "--json")
		require.Equal(w.f.t, n, strings.Count(out, "\n"), "writes of writer %d", i)
		writes += n
	}
	return writes
}
