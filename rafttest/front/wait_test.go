// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft"
)

// votes is a state: how many each candidate has.
type votes map[string]int

func newVotes() votes { return votes{} }

func (v votes) Apply(command []byte) any {
	v[string(command)]++
	return v[string(command)]
}

func (v votes) Write(w io.Writer) error { return json.NewEncoder(w).Encode(v) }
func (v votes) Read(r io.Reader) error  { return json.NewDecoder(r).Decode(&v) }

func openVotes(t *testing.T) (*weft.Node, *weft.Replicated[votes]) {
	node, err := weft.Open(weft.Options{
		Cluster: testCluster, ID: 1, Dir: t.TempDir(), Listen: "127.0.0.1:0", TickInterval: 10 * time.Millisecond,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, node.Close(within(t))) })
	group, err := weft.Replicate(node, 1, newVotes)
	require.NoError(t, err)
	return node, group
}

func TestWaitReturnsWhenTheStateIsAsWanted(t *testing.T) {
	_, group := openVotes(t)
	ctx := within(t)
	require.NoError(t, group.Wait(ctx, func(v votes) bool { return len(v) == 0 }), "it is so already")
	const waiters = 5
	done := make(chan error, waiters)
	for want := range waiters {
		go func() { done <- group.Wait(ctx, func(v votes) bool { return v["ada"] > want }) }()
	}
	for range waiters {
		_, err := group.Propose(ctx, []byte("ada"))
		require.NoError(t, err)
	}
	for range waiters {
		require.NoError(t, <-done)
	}
}

func TestWaitEndsWithItsContextAndWithTheGroup(t *testing.T) {
	node, group := openVotes(t)
	_, err := group.Propose(within(t), []byte("ada"))
	require.NoError(t, err)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	looked := make(chan struct{}, 10)
	never := func(votes) bool { looked <- struct{}{}; return false }
	done := make(chan error, 2)
	go func() { done <- group.Wait(ctx, never) }()
	<-looked
	cancel(why)
	err = <-done
	require.ErrorIs(t, err, why)
	require.ErrorIs(t, err, weft.ErrRefused)
	go func() { done <- group.Wait(context.Background(), never) }()
	<-looked
	require.NoError(t, node.Close(within(t)))
	require.ErrorIs(t, <-done, weft.ErrStopped)
	require.ErrorIs(t, group.Wait(context.Background(), nil), weft.ErrInvalid)
}

func TestGroupOfARemovedNodeIsDone(t *testing.T) {
	all := startCluster(t, 3)
	all[1].propose(t, "a line")
	all[3].read(t)
	changed(t, func(ctx context.Context) error { return all[1].group.Remove(ctx, 3) })
	select {
	case <-all[3].group.Done():
	case <-within(t).Done():
		t.Fatal("the removed node waits for news of its group")
	}
	require.ErrorIs(t, all[3].group.Err(), weft.ErrRemoved)
	_, err := all[3].group.Read(within(t), weft.Local())
	require.NoError(t, err)
	require.Equal(t, []string{"a line"}, all[3].state.lines())
	select {
	case <-all[1].group.Done():
		t.Fatal("the group goes on")
	default:
		require.NoError(t, all[1].group.Err())
	}
}
