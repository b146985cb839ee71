// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
)

func TestRivalsAreToldApartFromRestarts(t *testing.T) {
	var now time.Time
	for name, test := range map[string]struct {
		hellos  []uint64 // one a second
		refused int      // of the hellos
	}{
		"one process":               {[]uint64{1, 1, 1, 1, 1, 1}, 0},
		"restarts":                  {[]uint64{1, 2, 3, 4, 5, 6}, 0},
		"a hello that was late":     {[]uint64{1, 2, 1, 2, 2, 2}, 0},
		"earlier versions":          {[]uint64{0, 1, 0, 2, 0, 0}, 0},
		"two processes":             {[]uint64{1, 2, 1, 2, 1, 2, 1, 2}, 4},
		"one of which seldom dials": {[]uint64{1, 1, 1, 2, 1, 1, 1, 2, 1, 1, 1}, 3},
		"and then a third":          {[]uint64{1, 2, 1, 2, 1, 3, 3}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var r rivals
			refused := 0
			for _, number := range test.hellos {
				now = now.Add(time.Second)
				if _, err := r.hello(number, "an address", now); err != nil {
					refused++
				}
			}
			require.Equal(t, test.refused, refused)
		})
	}
	var r rivals
	for i, number := range []uint64{1, 2, 1, 2, 1} {
		_, err := r.hello(number, []string{"a", "b"}[i%2], now)
		require.Equal(t, i == 4, err != nil)
	}
	_, err := r.hello(1, "a", now.Add(rivalQuiet-1))
	require.ErrorContains(t, err, "yours from a, the other one from b")
	_, err = r.hello(1, "a", now.Add(rivalQuiet))
	require.NoError(t, err, "the other one has ended")
	_, err = r.hello(2, "b", now.Add(rivalQuiet))
	require.NoError(t, err, "it is a restart as far as is known")
}

// Two processes under one id are told so, both, and neither is heard; the one that is left is heard
// again.
func TestTwoProcessesWithOneIdAreBothTold(t *testing.T) {
	la := listen(t)
	var later atomic.Int64
	a, err := open(Config{Cluster: 5, Node: 1, Listener: la, Peers: map[uint64]string{2: ""}, DialTimeout: patience}, nil,
		func() time.Time { return time.Now().Add(time.Duration(later.Load())) })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	box := newInbox()
	require.NoError(t, a.Join(1, box))
	var twins [2]*TCP
	var logs [2]syncBuilder
	for i := range twins {
		twins[i], _ = start(t, Config{Node: 2, Listen: "127.0.0.1:0", Peers: map[uint64]string{1: la.Addr().String()}, MaxBackoff: time.Millisecond,
			Logger: slog.New(slog.NewTextHandler(&logs[i], nil))})
	}
	require.Eventually(t, func() bool {
		for _, twin := range twins {
			twin.Send([]wire.Message{heartbeat(2, 1)})
		}
		return lines(&logs[0], "two processes run under this node's id") > 0 && lines(&logs[1], "two processes run under this node's id") > 0
	}, patience, time.Millisecond)
	require.NotZero(t, a.Stats().Refusals["two processes"])

	require.NoError(t, twins[0].Close())
	later.Store(int64(rivalQuiet))
	for len(box.got) > 0 {
		<-box.got
	}
	require.Eventually(t, func() bool {
		twins[1].Send([]wire.Message{heartbeat(2, 1)})
		return len(box.got) > 0
	}, patience, time.Millisecond)
}
