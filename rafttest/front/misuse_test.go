// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/session"
	"github.com/weftraft/weft/rawnode/state"
	"github.com/weftraft/weft/storage"
)

// misuse is a mistake, and what the caller is told.
type misuse struct {
	name string
	do   func(t *testing.T, c *misused) error
	want error // nil: no error at all
	says string
}

// misused is a cluster of three that all mistakes are made at, and must not notice.
type misused struct {
	all   map[uint64]*member
	lines int
}

var errBroken = errors.New("it is broken")

// fresh is a node of its own, not started.
func (c *misused) fresh(t *testing.T) *member {
	m := newMember(t, 1, nil)
	m.options.Listen, m.options.Cluster = "127.0.0.1:0", testCluster+9
	return m
}

// spoiled is a node of its own, started, with a state machine that misbehaves.
func (c *misused) spoiled(t *testing.T, spoil func(*journal)) *member {
	m := c.fresh(t)
	m.start(t)
	m.propose(t, "before")
	require.NoError(t, m.group.Close(within(t)))
	m.state = newJournal(t, filepath.Join(m.options.Dir, "state"))
	spoil(m.state)
	var err error
	m.group, err = m.node.Group(1, m.state)
	require.NoError(t, err)
	return m
}

// open returns the error of a node with other options.
func (c *misused) open(t *testing.T, change func(*weft.Options)) error {
	o := c.fresh(t).options
	change(&o)
	n, err := weft.Open(o)
	if err == nil {
		require.NoError(t, n.Close(within(t)))
	}
	return err
}

// group returns the error of another group at a node of its own.
func (c *misused) group(t *testing.T, id uint64, sm weft.StateMachine, options ...weft.GroupOption) error {
	m := c.fresh(t)
	m.start(t)
	_, err := m.node.Group(id, sm, options...)
	return err
}

func brief(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// failingWriter fails behind some bytes.
type failingWriter struct{ room int }

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.room -= len(p); w.room < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

// brokenLoad is a state machine that cannot be loaded.
type brokenLoad struct{ weft.StateMachine }

func (brokenLoad) Load() (uint64, []byte, error) { return 0, nil, errBroken }

func ignore[T any](_ T, err error) error { return err }

var optionMistakes = []misuse{
	{"no options", func(*testing.T, *misused) error { return ignore(weft.Open(weft.Options{})) }, weft.ErrInvalid, "Options.Cluster is 0"},
	{"no directory", func(t *testing.T, c *misused) error { return c.open(t, func(o *weft.Options) { o.Dir = "" }) }, weft.ErrInvalid, "Options.Dir is empty"},
	{"peers without this node", func(t *testing.T, c *misused) error {
		return c.open(t, func(o *weft.Options) { o.Peers = map[uint64]string{2: "127.0.0.1:7000"} })
	}, weft.ErrInvalid, "set Join"},
	{"two peers at one address", func(t *testing.T, c *misused) error {
		return c.open(t, func(o *weft.Options) { o.Peers = map[uint64]string{1: "127.0.0.1:7000", 2: "127.0.0.1:7000"} })
	}, weft.ErrInvalid, "an address for each node"},
	{"a peer at every address", func(t *testing.T, c *misused) error {
		return c.open(t, func(o *weft.Options) { o.Peers = map[uint64]string{1: "0.0.0.0:7000"} })
	}, weft.ErrAddress, "others can dial"},
	{"joining nobody", func(t *testing.T, c *misused) error { return c.open(t, func(o *weft.Options) { o.Join = true }) }, weft.ErrInvalid, "at least one member"},
	{"half of TLS", func(t *testing.T, c *misused) error {
		return c.open(t, func(o *weft.Options) { o.TLS.Cert = "cert.pem" })
	}, weft.ErrInvalid, "all three files"},
	{"TLS files that are not there", func(t *testing.T, c *misused) error {
		return c.open(t, func(o *weft.Options) { o.TLS = weft.TLS{Cert: "no.pem", Key: "no.key", CA: "no.ca"} })
	}, os.ErrNotExist, "no.ca"},
	{"a directory that is open, under another name", func(t *testing.T, c *misused) error {
		o := c.all[1].options
		o.Dir = filepath.Join(t.TempDir(), "link")
		require.NoError(t, os.Symlink(c.all[1].options.Dir, o.Dir))
		return ignore(weft.Open(o))
	}, weft.ErrLocked, "this process has the directory"},
	{"a directory that is open", func(t *testing.T, c *misused) error { return ignore(weft.Open(c.all[1].options)) }, weft.ErrLocked, ""},
	{"the directory of another node", func(t *testing.T, c *misused) error {
		m := c.fresh(t)
		m.start(t)
		m.stop(t)
		return c.open(t, func(o *weft.Options) { o.Dir, o.ID = m.options.Dir, 2 })
	}, weft.ErrIdentity, ""},
	{"the directory of another cluster", func(t *testing.T, c *misused) error {
		m := c.fresh(t)
		m.start(t)
		m.stop(t)
		return c.open(t, func(o *weft.Options) { o.Dir, o.Cluster = m.options.Dir, 12 })
	}, weft.ErrIdentity, ""},
	{"a damaged book of addresses", func(t *testing.T, c *misused) error {
		m := c.fresh(t)
		m.start(t)
		m.stop(t)
		require.NoError(t, os.WriteFile(filepath.Join(m.options.Dir, "addresses"), []byte("{}\nabc\n"), 0o600))
		return ignore(weft.Open(m.options))
	}, weft.ErrBook, "remove the file"},
	{"a log whose disk is not mounted", func(t *testing.T, c *misused) error {
		m := c.fresh(t)
		m.start(t)
		m.propose(t, "a line")
		m.stop(t)
		for _, name := range []string{"log", "state"} {
			require.NoError(t, os.RemoveAll(filepath.Join(m.options.Dir, name)))
		}
		require.ErrorIs(t, ignore(weft.Open(m.options)), storage.ErrDamaged)
		require.NoFileExists(t, filepath.Join(m.options.Dir, "log", "IDENTITY"))
		return ignore(weft.Open(m.options))
	}, storage.ErrDamaged, "is its disk mounted?"},
}

var groupMistakes = []misuse{
	{"no node", func(t *testing.T, _ *misused) error {
		var n *weft.Node
		return ignore(n.Group(1, newJournal(t, t.TempDir())))
	}, weft.ErrInvalid, "error of Open"},
	{"group 0", func(t *testing.T, c *misused) error { return c.group(t, 0, newJournal(t, t.TempDir())) }, weft.ErrInvalid, "1 or more"},
	{"no state machine", func(t *testing.T, c *misused) error { return c.group(t, 2, nil) }, weft.ErrInvalid, "state machine of group 2 is nil"},
	{"a nil pointer as state machine", func(t *testing.T, c *misused) error { var j *journal; return c.group(t, 2, j) }, weft.ErrInvalid, "is nil"},
	{"a group twice", func(t *testing.T, c *misused) error { return ignore(c.all[1].node.Group(1, c.all[1].state)) }, weft.ErrOpen, "group 1 at node 1"},
	{"a nil option", func(t *testing.T, c *misused) error { return c.group(t, 2, newJournal(t, t.TempDir()), nil) }, weft.ErrInvalid, "option 1 of 1"},
	{"a nil Configure", func(t *testing.T, c *misused) error {
		return c.group(t, 2, newJournal(t, t.TempDir()), weft.Configure(nil))
	}, weft.ErrInvalid, "want a function"},
	{"Configure with another node's id", func(t *testing.T, c *misused) error {
		return c.group(t, 2, newJournal(t, t.TempDir()), weft.Configure(func(c *rawnode.Config) { c.Replica.ID = 7 }))
	}, weft.ErrInvalid, "Replica.ID, which the node sets"},
	{"first members without this node", func(t *testing.T, c *misused) error {
		return c.group(t, 2, newJournal(t, t.TempDir()), weft.FirstMembers(2, 3))
	}, weft.ErrInvalid, "lack this node (1)"},
	{"a first member without an id", func(t *testing.T, c *misused) error {
		return c.group(t, 2, newJournal(t, t.TempDir()), weft.FirstMembers(1, weft.MaxID+1))
	}, weft.ErrInvalid, "FirstMembers are [1 4611686018427387904], want ids of 1 to 4611686018427387903"},
	{"comparisons without a unit", func(t *testing.T, c *misused) error {
		return c.group(t, 2, newJournal(t, t.TempDir()), weft.CompareEvery(60))
	}, weft.ErrInvalid, "CompareEvery is 60ns, want 1ms or more"},
	{"first members and joining", func(t *testing.T, c *misused) error {
		return c.group(t, 2, newJournal(t, t.TempDir()), weft.FirstMembers(1), weft.Joining())
	}, weft.ErrInvalid, "contradict"},
	{"a state machine that cannot be loaded", func(t *testing.T, c *misused) error { return c.group(t, 2, brokenLoad{newJournal(t, t.TempDir())}) }, errBroken, "load the state machine"},
	{"a log that was deleted, with the addresses", func(t *testing.T, c *misused) error {
		m := c.fresh(t)
		m.start(t)
		for range 20 {
			m.propose(t, "a line")
		}
		m.stop(t)
		require.NoError(t, os.RemoveAll(filepath.Join(m.options.Dir, "log")))
		require.NoError(t, os.Remove(filepath.Join(m.options.Dir, "addresses")))
		n, err := weft.Open(m.options)
		require.NoError(t, err)
		defer func() { require.NoError(t, n.Close(within(t))) }()
		return ignore(n.Group(1, newJournal(t, filepath.Join(m.options.Dir, "state"))))
	}, weft.ErrState, "the log is empty"},
	{"a group of a closed node", func(t *testing.T, c *misused) error {
		m := c.fresh(t)
		m.start(t)
		m.stop(t)
		return ignore(m.node.Group(2, newJournal(t, t.TempDir())))
	}, weft.ErrClosed, "node 1"},
	{"a group with a state in memory twice", func(t *testing.T, c *misused) error {
		m := c.fresh(t)
		m.start(t)
		require.NoError(t, ignore(weft.Replicate(m.node, 2, func() words { return words{} })))
		return ignore(weft.Replicate(m.node, 2, func() words { return words{} }))
	}, weft.ErrOpen, "group 2 at node 1"},
	{"a group with a state in memory of a closed node", func(t *testing.T, c *misused) error {
		m := c.fresh(t)
		m.start(t)
		m.stop(t)
		return ignore(weft.Replicate(m.node, 2, func() words { return words{} }))
	}, weft.ErrClosed, "node 1"},
	{"a group with a state in memory that nothing makes", func(t *testing.T, c *misused) error {
		m := c.fresh(t)
		m.start(t)
		return ignore(weft.Replicate[words](m.node, 2, nil))
	}, weft.ErrInvalid, "newMachine of group 2 is nil"},
	{"first members that differ", func(t *testing.T, c *misused) error {
		peers := addressesOf(t, 1, 2, 3)
		lists := map[uint64][]uint64{1: {1, 2}, 2: {1, 2, 3}, 3: {1, 2, 3}}
		var odd *member
		for id := range peers {
			m := newMember(t, id, peers)
			m.options.Cluster = testCluster + 9
			m.start(t, weft.FirstMembers(lists[id]...))
			if id == 1 {
				odd = m
			}
		}
		_, err := odd.group.Propose(within(t), []byte("for a part of them"))
		return err
	}, weft.ErrFirstMembers, "with the members [1 2 3]"},
	{"limits of sessions that differ", func(t *testing.T, c *misused) error {
		peers := addressesOf(t, 1, 2, 3)
		var odd *weft.Replicated[words]
		for id := range peers {
			m := newMember(t, id, peers)
			m.options.Cluster = testCluster + 10
			node, err := weft.Open(m.options)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, node.Close(within(t))) })
			limits := session.DefaultLimits
			if id == 2 {
				limits.Sessions = 7
			}
			group, err := weft.Replicate(node, 1, func() words { return words{} }, weft.Sessions(limits))
			require.NoError(t, err)
			if id == 2 {
				odd = group
			}
		}
		var err error
		eventually(t, func() bool { // the others may not have spoken yet
			_, err = odd.Propose(brief(t), state.OpenSession())
			require.Error(t, err)
			return errors.Is(err, weft.ErrSettings)
		}, "the call says why there is no leader")
		return err
	}, weft.ErrSettings, `session limits is "7 sessions of 16 results in 65536 bytes" at node 2`},
	{"a node of another cluster", func(t *testing.T, c *misused) error {
		m := joiner(t, 9, c.all[1])
		m.options.Cluster = testCluster + 9
		m.start(t)
		_, err := m.group.Propose(brief(t), []byte("from elsewhere"))
		return err
	}, weft.ErrTimeout, "no leader is known"},
}

var callMistakes = []misuse{
	{"no group", func(t *testing.T, _ *misused) error { var g *weft.Group; return ignore(g.Propose(t.Context(), nil)) }, weft.ErrRefused, "error of Node.Group"},
	{"a nil context", func(t *testing.T, c *misused) error {
		g := c.all[1].group
		var none context.Context
		errs := []error{
			ignore(g.Propose(none, nil)), ignore(g.Read(none)), ignore(g.Snapshot(none, io.Discard)), ignore(g.Watch(none)),
			g.AddLearner(none, 4, "127.0.0.1:7"), g.Remove(none, 2), g.TransferLeader(none, 2), g.SetResponders(none, nil), g.Close(none), c.all[1].node.Close(none),
		}
		for i, err := range errs {
			require.ErrorIs(t, err, weft.ErrInvalid, "call %d", i)
		}
		return errs[0]
	}, weft.ErrRefused, "the context is nil"},
	{"a context that has ended", func(t *testing.T, c *misused) error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return ignore(c.all[1].group.Propose(ctx, []byte("for nobody")))
	}, weft.ErrRefused, ""},
	{"a command with the mark of the front", func(t *testing.T, c *misused) error {
		return ignore(c.all[1].group.Propose(within(t), []byte("\x00weft:reserved\x00\xf7\x01{}")))
	}, weft.ErrRefused, "begin it with another byte"},
	{"a command that is too large", func(t *testing.T, c *misused) error {
		return ignore(c.all[1].group.Propose(within(t), make([]byte, 9<<20)))
	}, weft.ErrTooLarge, ""},
	{"a nil option of a read", func(t *testing.T, c *misused) error { return ignore(c.all[1].group.Read(within(t), nil)) }, weft.ErrRefused, "option 1 of 1 is nil"},
	{"a negative age", func(t *testing.T, c *misused) error {
		return ignore(c.all[1].group.Read(within(t), weft.Stale(-time.Second)))
	}, weft.ErrRefused, "want more than 0"},
	{"leadership for nobody", func(t *testing.T, c *misused) error { return c.all[1].group.TransferLeader(within(t), 0) }, weft.ErrRefused, "want a voter"},
	{"responders without leases", func(t *testing.T, c *misused) error { return c.all[1].group.SetResponders(within(t), nil) }, raft.ErrNoLeases, "set Config.Leases"},
	{"leadership for a stranger", func(t *testing.T, c *misused) error { return c.all[1].group.TransferLeader(within(t), 8) }, weft.ErrNotMember, ""},
	{"a call after the end", func(t *testing.T, c *misused) error {
		m := c.fresh(t)
		m.start(t)
		m.stop(t)
		require.ErrorIs(t, ignore(m.group.Read(within(t))), weft.ErrStopped)
		require.ErrorIs(t, m.group.SetLeaderWeight(5), weft.ErrStopped)
		require.ErrorIs(t, ignore(m.group.Snapshot(within(t), io.Discard)), weft.ErrStopped)
		return ignore(m.group.Propose(within(t), []byte("too late")))
	}, weft.ErrStopped, ""},
	{"closed with a context that has ended", func(t *testing.T, c *misused) error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 10 {
			m := c.fresh(t)
			m.start(t)
			require.NotErrorIs(t, m.node.Close(ctx), weft.ErrNotEnded)
			m.start(t)
			require.NoError(t, m.node.Close(within(t)))
		}
		return nil
	}, nil, ""},
	{"a group closed while another close hangs", func(t *testing.T, c *misused) error {
		release, entered := make(chan struct{}), make(chan struct{})
		var once sync.Once
		m := c.spoiled(t, func(j *journal) {
			j.apply = func() { once.Do(func() { close(entered) }); <-release }
		})
		<-entered // the new leader's first entry
		closed := make(chan error, 1)
		go func() { closed <- m.group.Close(within(t)) }()
		eventually(t, func() bool {
			return errors.Is(ignore(m.group.Snapshot(within(t), io.Discard)), weft.ErrStopped)
		}, "the first close has begun")
		err := m.group.Close(brief(t))
		require.ErrorIs(t, m.node.Close(brief(t)), weft.ErrNotEnded)
		close(release)
		require.NoError(t, <-closed)
		return err
	}, weft.ErrNotEnded, "another Close is under way"},
	{"closed twice, and at the same time", func(t *testing.T, c *misused) error {
		m := c.fresh(t)
		m.start(t)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { require.NoError(t, m.node.Close(within(t))) })
		}
		all.Wait()
		require.NoError(t, m.group.Close(within(t)))
		return m.node.Close(within(t))
	}, nil, ""},
}

// longer is for changes of members that are to fail.
func longer(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	t.Cleanup(cancel)
	return ctx
}

// untilUnsafe repeats a change of members that has not come so far that its danger is known: in its time, or because the disk
// was late.
func untilUnsafe(t *testing.T, change func() error) (err error) {
	eventually(t, func() bool {
		err = change()
		require.Error(t, err)
		return errors.Is(err, weft.ErrUnsafeChange) || !errors.Is(err, weft.ErrTimeout) && !errors.Is(err, rawnode.ErrStalled)
	}, "the change is unsafe")
	return err
}

var machineMistakes = []misuse{
	{"an Apply that blocks", func(t *testing.T, c *misused) error {
		release, entered := make(chan struct{}), make(chan struct{})
		var once sync.Once
		m := c.spoiled(t, func(j *journal) {
			j.apply = func() { once.Do(func() { close(entered) }); <-release }
		})
		<-entered // the new leader's first entry
		require.ErrorIs(t, ignore(m.group.Propose(brief(t), []byte("a line"))), weft.ErrTimeout)
		err := m.node.Close(brief(t))
		close(release)
		eventually(t, func() bool { return m.node.Close(within(t)) == nil }, "the node closes")
		m.start(t)
		require.Contains(t, m.read(t), "before")
		return err
	}, weft.ErrNotEnded, "the state machine, in Apply"},
	{"an Apply with too few results", func(t *testing.T, c *misused) error {
		m := c.spoiled(t, func(j *journal) { j.results = func() []any { return nil } })
		_, err := m.group.Propose(within(t), []byte("a line"))
		<-m.group.Done()
		return errors.Join(err, m.group.Err())
	}, weft.ErrFailed, "one result for each command"},
	{"a Snapshot that fails", func(t *testing.T, c *misused) error {
		m := c.spoiled(t, func(j *journal) { j.snapshot = func() error { return errBroken } })
		return ignore(m.group.Snapshot(within(t), io.Discard))
	}, errBroken, "the state machine's Snapshot"},
	{"a writer that fails", func(t *testing.T, c *misused) error {
		return ignore(c.all[1].group.Snapshot(within(t), &failingWriter{200}))
	}, errBroken, "write the state"},
	{"no writer", func(t *testing.T, c *misused) error { return ignore(c.all[1].group.Snapshot(within(t), nil)) }, weft.ErrRefused, "the writer is nil"},
	{"a writer that blocks while the group is closed", func(t *testing.T, c *misused) error {
		m := c.spoiled(t, func(*journal) {})
		r, w := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- ignore(m.group.Snapshot(within(t), w)) }()
		_, err := r.Read(make([]byte, 1))
		require.NoError(t, err)
		err = m.node.Close(brief(t))
		require.NoError(t, r.CloseWithError(errBroken))
		require.ErrorIs(t, <-ended, errBroken)
		require.NoError(t, m.node.Close(within(t)))
		return err
	}, weft.ErrNotEnded, "Snapshot"},
	{"a follower whose Restore fails for a while", func(t *testing.T, c *misused) error {
		m := joiner(t, 6, c.all[1])
		var mu sync.Mutex
		failures := 0
		var err error
		m.node, err = weft.Open(m.options)
		require.NoError(t, err)
		m.state = newJournal(t, filepath.Join(m.options.Dir, "state"))
		m.state.restore = func() error {
			mu.Lock()
			defer mu.Unlock()
			if failures++; failures < 3 {
				return errBroken
			}
			return nil
		}
		m.group, err = m.node.Group(1, m.state)
		require.NoError(t, err)
		changed(t, func(ctx context.Context) error { return c.all[2].group.AddLearner(ctx, 6, m.options.Listen) })
		require.Len(t, m.read(t), c.lines)
		changed(t, func(ctx context.Context) error { return c.all[2].group.Remove(ctx, 6) })
		return m.node.Close(within(t))
	}, nil, ""},
}

// TestMisuse makes each mistake and looks at what the caller is told; in the end the cluster
// has lost nothing, and goes on.
func TestMisuse(t *testing.T) {
	c := &misused{all: startCluster(t, 3)}
	for range 12 {
		c.all[1].propose(t, "a line")
		c.lines++
	}
	knowEachOther(t, c.all)
	rows := 0
	for _, table := range [][]misuse{optionMistakes, groupMistakes, callMistakes, memberMistakes, machineMistakes, copyMistakes} {
		for _, m := range table {
			rows++
			t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
				err := m.do(t, c)
				switch {
				case m.want != nil:
					require.ErrorIs(t, err, m.want)
				case m.says == "":
					require.NoError(t, err)
				}
				if m.says != "" {
					require.ErrorContains(t, err, m.says)
				}
				c.lines++
				require.Equal(t, c.lines, c.all[2].propose(t, "goes on"))
				require.Len(t, c.all[3].read(t), c.lines)
			})
		}
	}
	t.Logf("%d mistakes", rows)
}
