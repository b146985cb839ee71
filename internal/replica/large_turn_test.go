// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/storage"
)

// follower is node 2 of three on a real log.
type follower struct {
	t      *testing.T
	fs     *vfs.MemFS
	engine *storage.Engine
	cfg    Config
	r      *Replica
}

func newFollower(t *testing.T, core NewCore) *follower {
	f := &follower{t: t, fs: vfs.NewCrashableMem(), cfg: Config{Settings: Settings{ID: 2, Group: 7, Core: core, Peers: []uint64{1, 2, 3}, Boot: 1}}}
	f.start()
	return f
}

func (f *follower) start() {
	var err error
	f.engine, err = storage.Open("log", storage.Options{FS: f.fs, Identity: storage.Identity{Cluster: 9, Node: 2}, QueueBytes: 1 << 40, Manual: true})
	require.NoError(f.t, err)
	f.cfg.Log, err = f.engine.Group(7)
	require.NoError(f.t, err)
	begin, err := PrepareLog(f.cfg)
	require.NoError(f.t, err)
	if begin != nil {
		f.write(*begin, func(error) {})
	}
	f.r, err = New(f.cfg)
	require.NoError(f.t, err)
	f.flush()
}

// write queues a write and has the engine write it.
func (f *follower) write(w storage.Write, done func(error)) {
	require.NoError(f.t, f.cfg.Log.Append(w, done))
	for more := true; more; {
		var err error
		more, err = f.engine.Step()
		require.NoError(f.t, err)
	}
}

// flush ends turns and does the writes that they ask for, each followed by then,
// and returns the acknowledgements that left.
func (f *follower) flush(then ...func(storage.Write)) (acks []uint64) {
	for busy := true; busy; {
		out := f.r.Flush(0)
		busy = len(out.Appends) > 0
		for _, a := range out.Appends {
			f.write(a.Write, func(err error) {
				require.NoError(f.t, err)
				f.r.AppendDone(a)
			})
			for _, do := range then {
				do(a.Write)
			}
		}
		for _, m := range out.Sends {
			if raft, ok := m.Body.(wire.Raft); ok && raft.GetType() == pb.MsgAppResp && !raft.GetReject() {
				acks = append(acks, raft.GetIndex())
			}
		}
	}
	return acks
}

// receive lets entries of a leader arrive, behind an index, so many a message.
func (f *follower) receive(term, behind uint64, n, each int, commit uint64) {
	for sent := 0; sent < n; sent += each {
		at := behind + uint64(sent)
		prev, err := f.cfg.Log.Term(at)
		if err != nil {
			prev = term // it comes in this turn
		}
		m := &pb.Message{Type: pb.MsgApp.Enum(), From: new(uint64(1)), To: new(uint64(2)), Term: &term, LogTerm: &prev, Index: new(at), Commit: &commit}
		for i := range uint64(min(each, n-sent)) {
			m.Entries = append(m.Entries, &pb.Entry{Term: &term, Index: new(at + 1 + i)})
		}
		require.NoError(f.t, f.r.Receive(wire.Message{Group: 7, From: 1, To: 2, Body: wire.Raft{Message: m}}))
	}
}

// More entries than an engine takes in one write arrive in one turn.
func TestLargeTurnIsWritten(t *testing.T) {
	if testing.Short() {
		t.Skip("a million entries")
	}
	f := newFollower(t, Weft)
	const n = storage.MaxWriteEntries + 1
	f.receive(2, firstMark.index, n, 1<<16, 5)
	acks := f.flush()
	require.NoError(t, f.r.Err())
	require.EqualValues(t, firstMark.index+n, acks[len(acks)-1])
	last, err := f.cfg.Log.LastIndex()
	require.NoError(t, err)
	require.EqualValues(t, firstMark.index+n, last)
}

// A large turn is several writes, and power may fail behind each: the log is then
// one that a node can start from, and nothing of the turn was acknowledged.
func TestLargeTurnIsTornBetweenWrites(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		for name, limit := range map[string]func(*writes){
			"entries": func(w *writes) { w.maxEntries = 3 },
			"bytes":   func(w *writes) { w.maxBytes = 10 },
		} {
			t.Run(name, func(t *testing.T) {
				f := newFollower(t, core)
				f.receive(2, firstMark.index, 4, 4, 3)
				require.NotEmpty(t, f.flush())
				limit(&f.r.writes)
				// Another leader's entries replace the last two.
				f.receive(5, 3, 10, 4, 12)
				torn := 0
				acks := f.flush(func(w storage.Write) {
					torn++
					require.LessOrEqual(t, len(w.Entries), 3)
					end := w.Entries[len(w.Entries)-1].GetIndex()
					g := &follower{t: t, fs: f.fs.CrashClone(vfs.CrashCloneCfg{}), cfg: f.cfg}
					g.start()
					hs, _, err := g.cfg.Log.InitialState()
					require.NoError(t, err)
					require.EqualValues(t, 5, hs.GetTerm())
					require.EqualValues(t, min(12, end), hs.GetCommit())
					last, err := g.cfg.Log.LastIndex()
					require.NoError(t, err)
					require.Equal(t, end, last)
					g.receive(5, end, 1, 1, 12)
					require.Contains(t, g.flush(), end+1, "it goes on from there")
				})
				require.Greater(t, torn, 3)
				require.EqualValues(t, []uint64{7, 11, 13}, acks, "when all is durable")
			})
		}
	})
}
