// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/replica/replicatest"
)

// optional is a state that notes which of its methods are called.
type optional struct {
	journal
	called []string
}

func (o *optional) note(method string) { o.called = append(o.called, method) }

func (o *optional) Load() (uint64, []byte, error) {
	o.note("Load")
	return o.journal.Load()
}

func (o *optional) Settings() []Setting {
	o.note("Settings")
	return []Setting{{Name: "limit", Value: "9"}}
}

func (o *optional) SnapshotBytes() int64 {
	o.note("SnapshotBytes")
	return 0
}

// A state may know its settings, and all else, from what it has loaded.
func TestLoadIsTheFirstCall(t *testing.T) {
	sm := &optional{}
	_, err := New(Config{
		Replica:      ReplicaConfig{ID: 1, Group: 7, Log: replicatest.NewMemLog(), Peers: []uint64{1}},
		StateMachine: sm, Transport: full{},
	})
	require.ErrorIs(t, err, errFull)
	require.Equal(t, []string{"Load", "Settings", "SnapshotBytes"}, sm.called)
}

// full is a transport that takes no group, so that no host begins.
type full struct{ tapped }

var errFull = errors.New("no group more")

func (full) Join(uint64, Receiver) error { return errFull }
