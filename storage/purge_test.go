// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"
)

// TestPurgingLooksThroughSomeLogsAtATime: writes wait while the purger looks through the logs of groups for entries
// in the oldest segment. Between two batches it looks at about as many entries as it may write bytes.
func TestPurgingLooksThroughSomeLogsAtATime(t *testing.T) {
	e, err := Open("d", indexOptions(vfs.NewMem()))
	require.NoError(t, err)
	p := &e.w.purger
	p.pause = 1 << 40
	g, err := e.Group(1)
	require.NoError(t, err)
	for i := uint64(1); i <= 20; i++ {
		require.NoError(t, g.AppendWait(t.Context(), Write{Entries: []*pb.Entry{{Term: new(uint64(1)), Index: new(i), Data: make([]byte, 3000)}}}))
		require.NoError(t, g.SetSnapshot(&pb.SnapshotMetadata{Index: new(i)}, nil))
		require.NoError(t, g.Compact(i))
	}
	require.NoError(t, e.Sync(t.Context()))
	const long = purgeStepBytes/2 + 1
	last := e.segments[len(e.segments)-1]
	for id := uint64(2); id <= 4; id++ {
		e.groupLocked(id).log.slots = slices.Repeat([]slot{{seg: last}}, long)
	}
	p.pause = 0
	e.w.purge()
	require.NotNil(t, p.victim)
	require.True(t, slices.Contains(p.groups, e.groups[4]), "it is left for a later step")
	for range 10 {
		_, err = e.Step()
		require.NoError(t, err)
	}
	require.Positive(t, e.Stats().Purged)
}

// TestMovedEntriesFitAFrame: behind a small entry there is one as large as a write takes. Moved in one frame, both would
// have a body for which the next start takes the frame for torn, and cuts the log there.
func TestMovedEntriesFitAFrame(t *testing.T) {
	e, err := Open("d", indexOptions(vfs.NewMem()))
	require.NoError(t, err)
	g, seg := e.groupLocked(1), e.segments[0]
	g.log.slots = []slot{{seg: seg, off: 100, size: 50}, {seg: seg, off: 150, size: maxBodyBytes}, {seg: seg, off: 150 + maxBodyBytes, size: 50}}
	for i, want := range []int{1, 1, 1} {
		_, slots := g.slotsIn(seg, purgeStepBytes)
		require.Len(t, slots, want, "from slot %d", i)
		g.log.slots = g.log.slots[len(slots):]
	}
}

// A read of an old segment hangs, while what is in the segment dies: the segment stays until the read ends, and all
// groups go on to write.
func TestPurgeWaitsForNoReader(t *testing.T) {
	var armed atomic.Bool
	hangs, free := make(chan struct{}), make(chan struct{})
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt && strings.HasSuffix(op.Path, ".seg") && armed.CompareAndSwap(true, false) {
			close(hangs)
			<-free
		}
		return nil
	}))
	e, err := Open("log", Options{FS: fs, Identity: Identity{Cluster: 1, Node: 1}, SegmentBytes: MinSegmentBytes, CacheBytes: -1})
	require.NoError(t, err)
	g, err := e.Group(1)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	last := uint64(0)
	write := func(n int) {
		for range n {
			last++
			require.NoError(t, g.AppendWait(ctx, Write{Entries: []*pb.Entry{{Term: new(uint64(1)), Index: new(last), Data: make([]byte, 1000)}}}))
		}
	}
	write(20)
	read := make(chan error, 1)
	armed.Store(true)
	go func() {
		_, err := g.Entries(1, 3, 1<<20)
		read <- err
	}()
	<-hangs
	require.NoError(t, g.SetSnapshot(&pb.SnapshotMetadata{Index: new(last)}, nil))
	require.NoError(t, g.Compact(last))
	write(40)
	require.Zero(t, e.Stats().Purged)
	close(free)
	require.NoError(t, <-read)
	write(40)
	require.NotZero(t, e.Stats().Purged)
	require.NoError(t, e.Close())
}
