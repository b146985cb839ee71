// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode/state"
)

// lock is a state: who holds a lock that expires after a minute.
type lock struct {
	Clock state.Clock
	Owner string
	Until time.Time
}

// Apply takes the lock for the owner that the command names, or says who has it.
func (l *lock) Apply(command []byte) any {
	owner, ok := l.Clock.Take(command)
	if !ok {
		return "no time"
	}
	if l.Owner != string(owner) && l.Clock.Now.Before(l.Until) {
		return "held by " + l.Owner
	}
	l.Owner, l.Until = string(owner), l.Clock.Now.Add(time.Minute)
	return "yours"
}

func (l *lock) Write(w io.Writer) error { return json.NewEncoder(w).Encode(l) }
func (l *lock) Read(r io.Reader) error  { return json.NewDecoder(r).Decode(l) }

// The node that proposes puts its time into the command: state.Stamp(time.Now(), command).
func ExampleClock() {
	l, noon := &lock{}, time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	fmt.Println(l.Apply(state.Stamp(noon, []byte("ada"))))
	fmt.Println(l.Apply(state.Stamp(noon.Add(59*time.Second), []byte("bob"))))
	fmt.Println(l.Apply(state.Stamp(noon.Add(61*time.Second), []byte("bob"))))
	fmt.Println(l.Apply(state.Stamp(noon, []byte("ada"))), "although its node's clock is behind")
	// Output:
	// yours
	// held by ada
	// yours
	// held by bob although its node's clock is behind
}

func TestClockOnlyGoesForward(t *testing.T) {
	var c state.Clock
	at := time.Date(2026, 1, 1, 12, 0, 0, 5, time.FixedZone("east", 3600))
	inner, ok := c.Take(state.Stamp(at, []byte("a")))
	require.True(t, ok)
	require.Equal(t, []byte("a"), inner)
	require.Equal(t, at.UTC(), c.Now, "the same at nodes in different zones")
	_, ok = c.Take(state.Stamp(at.Add(-time.Hour), nil))
	require.True(t, ok)
	require.Equal(t, at.UTC(), c.Now)
	_, ok = c.Take([]byte("short"))
	require.False(t, ok)
	text, err := json.Marshal(c)
	require.NoError(t, err)
	var again state.Clock
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, c, again)
}
