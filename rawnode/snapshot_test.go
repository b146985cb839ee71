// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/replica/replicatest"
	"github.com/weftraft/weft/internal/wire"
)

// tapped is a transport whose other end is the test.
type tapped struct {
	out  chan wire.Message
	seen map[uint64]wire.ChunkStatus // by stream
}

func (t tapped) Join(uint64, Receiver) error { return nil }
func (t tapped) Leave(uint64)                {}
func (t tapped) Send(messages []wire.Message) {
	for _, m := range messages {
		t.out <- m
	}
}

func (t tapped) SendWait(ctx context.Context, m wire.Message) error {
	select {
	case t.out <- m:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// status returns the status of a stream; statuses of several streams may arrive in any order.
func (t tapped) status(test *testing.T, stream uint64) wire.ChunkStatus {
	test.Helper()
	timeout := time.After(time.Minute)
	for {
		if s, ok := t.seen[stream]; ok {
			return s
		}
		select {
		case m := <-t.out:
			if s, ok := m.Body.(wire.ChunkStatus); ok {
				t.seen[s.Stream] = s
			}
		case <-timeout:
			test.Fatalf("no word on stream %d", stream)
		}
	}
}

// snapshotOf returns the header of a snapshot of members 1 to 3.
func snapshotOf(from, to, term, index uint64) *pb.Message {
	members := pb.EnsureConfState(&pb.ConfState{Voters: []uint64{1, 2, 3}})
	return &pb.Message{Type: pb.MsgSnap.Enum(), From: &from, To: &to, Term: &term, Snapshot: &pb.Snapshot{
		Metadata: &pb.SnapshotMetadata{Index: &index, Term: &term, ConfState: members},
		Data:     replica.HostBytes(term, index, members),
	}}
}

// heardLog returns the log of a node that joins, and has heard of a leader: nothing is restored beside an empty log.
func heardLog(term uint64) replicatest.MemLog {
	log := replicatest.NewMemLog()
	if err := log.SetHardState(&pb.HardState{Term: &term}); err != nil {
		panic(err) // which MemoryStorage does not return
	}
	return log
}

// SnapshotOf is snapshotOf for package rawnode_test.
var SnapshotOf = snapshotOf

// A leader that died in the middle of a snapshot does not block the snapshot of its successor: the
// successor's snapshot is refused once, and accepted at the second attempt.
func TestSnapshotOfLaterLeaderReplacesThatOfDeadLeader(t *testing.T) {
	tr := tapped{make(chan wire.Message, 10_000), map[uint64]wire.ChunkStatus{}}
	h, err := New(Config{
		Replica:      ReplicaConfig{ID: 1, Group: 7, Log: heardLog(5)},
		StateMachine: &journal{}, Transport: tr, TickInterval: time.Second, SnapshotTimeout: time.Hour,
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, h.Stop(t.Context())) }()
	first := func(from, term, stream uint64, last bool) {
		h.Receive(wire.Message{Group: 7, From: from, To: 1,
			Body: wire.Chunk{Stream: stream, Header: snapshotOf(from, 1, term, 50), Data: []byte("a command"), Last: last}})
	}
	first(2, 5, 20, false)
	first(3, 5, 30, false)
	require.Contains(t, tr.status(t, 30).Reason, "restoring another snapshot", "of the same term")
	first(3, 6, 31, false)
	require.False(t, tr.status(t, 31).OK)
	require.Contains(t, tr.status(t, 20).Reason, "node 3 leads since")
	first(3, 6, 32, true)
	require.True(t, tr.status(t, 32).OK)
	require.EqualValues(t, 1, h.Status().Counters.SnapshotsInstalled)
}

// The pause after a failed snapshot grows with each failure in a row.
func TestPausesBetweenFailedSnapshots(t *testing.T) {
	s := newSnapshotsOut(&Host{cfg: Config{TickInterval: 10 * time.Millisecond, Replica: ReplicaConfig{ElectionTick: 5}}})
	const unit = 50 * time.Millisecond
	now := time.Now()
	failed := refusedBy(2, wire.ChunkStatus{Reason: "busy"})
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 16} {
		require.Equal(t, want*unit, s.pause(2, failed, now))
	}
	require.Equal(t, unit, s.pause(2, replica.ErrOutgoingFull, now), "others are being sent: nothing has failed")
	require.Equal(t, unit, s.pause(3, failed, now), "another peer")
	now = now.Add(33 * unit)
	require.Equal(t, unit, s.pause(2, failed, now), "long after")
	require.Equal(t, 2*unit, s.pause(2, failed, now))
	require.Zero(t, s.pause(2, nil, now))
	require.Equal(t, unit, s.pause(2, failed, now))
}

// restoring is a journal with a Restore given by the test.
type restoring struct {
	journal
	restore func(io.Reader) error
}

func (r *restoring) Restore(meta SnapshotMeta, body io.Reader) error {
	if err := r.restore(body); err != nil {
		return err
	}
	r.index, r.host = meta.Index, meta.Host
	return nil
}

// receiver is node 1, without a network, in virtual time.
func receiver(t *testing.T, sm StateMachine) (*Host, tapped) {
	tr := tapped{make(chan wire.Message, 10_000), map[uint64]wire.ChunkStatus{}}
	h, err := New(Config{
		Replica:      ReplicaConfig{ID: 1, Group: 7, Log: heardLog(5)},
		StateMachine: sm, Transport: tr, TickInterval: 7 * time.Millisecond, SnapshotTimeout: time.Minute,
	})
	require.NoError(t, err)
	return h, tr
}

// stopped stops the host, and lets the ticker of its bubble end.
func stopped(t *testing.T, h *Host) {
	require.NoError(t, h.Stop(t.Context()))
	time.Sleep(2 * h.cfg.TickInterval)
}

func (h *Host) chunk(stream, number uint64, last bool) {
	c := wire.Chunk{Stream: stream, Number: number, Data: []byte("some data"), Last: last}
	if number == 0 {
		c.Header = snapshotOf(2, 1, 5, 50+stream)
	}
	h.Receive(wire.Message{Group: 7, From: 2, To: 1, Body: c})
}

// The connection that brings a snapshot brings the snapshots of all groups: a state machine that
// takes nothing delays the connection for SnapshotTimeout at most.
func TestStuckRestoreLetsItsConnectionGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		h, tr := receiver(t, &restoring{restore: func(body io.Reader) error {
			<-stuck
			_, err := io.ReadAll(body)
			return err
		}})
		begin := time.Now()
		h.chunk(20, 0, false)
		require.Equal(t, time.Minute, time.Since(begin))
		require.Contains(t, tr.status(t, 20).Reason, "took nothing for 1m0s", "before Restore returns")
		h.chunk(20, 1, true)
		h.chunk(21, 0, true)
		require.Contains(t, tr.status(t, 21).Reason, replica.ErrRestoring.Error())
		require.Equal(t, time.Minute, time.Since(begin), "nothing waits any more")
		close(stuck)
		synctest.Wait()
		h.chunk(22, 0, true)
		require.True(t, tr.status(t, 22).OK)
		stopped(t, h)
	})
}

// A decoder that knows the end of its data need not read up to io.EOF.
func TestRestoreThatReadsNotToTheEnd(t *testing.T) {
	for name, reads := range map[string]int{"nothing": 0, "half of a chunk": 4, "some chunks": 18, "all but the end": 27} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, tr := receiver(t, &restoring{restore: func(body io.Reader) error {
					_, err := io.ReadFull(body, make([]byte, reads))
					return err
				}})
				defer stopped(t, h)
				begin := time.Now()
				for _, stream := range []uint64{20, 21} {
					for i := range uint64(3) {
						h.chunk(stream, i, i == 2)
						synctest.Wait()
					}
					require.True(t, tr.status(t, stream).OK)
				}
				require.Zero(t, time.Since(begin), "nothing waits")
				require.EqualValues(t, 71, h.Status().Applied)
			})
		})
	}
}

// A Restore that reads nothing may end before the first chunk reaches it. Its sender gets one
// answer, so that the sender does not send the snapshot a second time.
func TestRestoreThatEndsBeforeTheFirstChunkIsAnsweredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, tr := receiver(t, &restoring{restore: func(io.Reader) error { return nil }})
		defer stopped(t, h)
		for _, stream := range []uint64{20, 21} {
			c := wire.Chunk{Stream: stream, Header: snapshotOf(2, 1, 5, 50+stream), Data: []byte("some data")}
			require.NoError(t, h.in.open(2, 1, c))
			synctest.Wait() // Restore has ended
			for c.Number = range 3 {
				h.in.take(2, c)
			}
			var answers []wire.ChunkStatus
			for len(tr.out) > 0 {
				if s, ok := (<-tr.out).Body.(wire.ChunkStatus); ok {
					answers = append(answers, s)
				}
			}
			require.Equal(t, []wire.ChunkStatus{{Stream: stream, OK: true}}, answers)
		}
	})
}

// cutOff is a journal whose view fails before its end, like a file that was cut off.
type cutOff struct{ journal }

func (*cutOff) Snapshot() (Snapshot, error) {
	h := snapshotOf(1, 2, 5, 50)
	return &cutOffView{SnapshotMeta{Index: 50, Host: h.GetSnapshot().GetData()}}, nil
}

// A network may bring pieces of a snapshot twice, the first one among them, and long after the snapshot.
func TestPiecesOfASnapshotMayComeTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, tr := receiver(t, &journal{})
		for number := range uint64(3) {
			h.chunk(20, number, number == 2)
			h.chunk(20, number, number == 2)
		}
		require.True(t, tr.status(t, 20).OK)
		h.chunk(21, 0, false)
		h.chunk(20, 0, false)
		h.chunk(21, 1, true)
		require.True(t, tr.status(t, 21).OK)
		require.EqualValues(t, 2, h.Status().Counters.SnapshotsInstalled)
		stopped(t, h)
	})
}

type cutOffView struct{ meta SnapshotMeta }

func (v *cutOffView) Meta() SnapshotMeta     { return v.meta }
func (*cutOffView) Close() error             { return nil }
func (*cutOffView) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// A view that fails is not mistaken for a complete view: its receiver would restore a part of the
// state as the whole.
func TestSnapshotThatIsCutOffIsSentAsBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, tr := receiver(t, &cutOff{})
		defer stopped(t, h)
		o := &outgoing{to: 2, status: make(chan wire.ChunkStatus, 1)}
		err := h.out.stream(t.Context(), 1, o, replica.SnapshotSend{To: 2, Message: snapshotOf(1, 2, 5, 50)})
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		chunk := (<-tr.out).Body.(wire.Chunk)
		require.False(t, chunk.Last)
		require.Contains(t, chunk.Broken, "unexpected EOF")
	})
}
