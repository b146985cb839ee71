// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package levels

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/rawnodetest"
	"github.com/weftraft/weft/rawnode/state"
)

// first is the state as version 1 has it. Its newest level is 0.
type first struct {
	Level  int            `json:"level,omitempty"`
	Counts map[string]int `json:"counts"`
}

func (f *first) Apply(command []byte) any {
	op, name, _ := strings.Cut(string(command), " ")
	switch {
	case !utf8.ValidString(name):
		return errUnknown
	case op == "level":
		if name != "0" {
			panic("the group is at level " + name + ": start a newer program")
		}
		return 0
	case op == "add":
		f.Counts[name]++
	case op == "take":
		f.Counts[name]--
	default:
		return errUnknown
	}
	return f.Counts[name]
}

func (f *first) Write(w io.Writer) error  { return json.NewEncoder(w).Encode(f) }
func (f *first) Digest(w io.Writer) error { return f.Write(w) }

func (f *first) Read(r io.Reader) error {
	err := json.NewDecoder(r).Decode(f)
	if err == nil && f.Level > 0 {
		err = errors.New("start a newer program")
	}
	return err
}

func version1() state.Machine { return &first{Counts: map[string]int{}} }
func version2() state.Machine { return newStock() }

func digest(sm rawnode.StateMachine) (string, error) {
	var b bytes.Buffer
	var err error
	sm.(*state.Memory[state.Machine]).View(func(m state.Machine) { err = m.(state.Digester).Digest(&b) })
	return b.String(), err
}

// Members are upgraded one by one under commands of both versions: at each step their states
// are the same to the byte, and the level is raised at the end.
func TestVersionsAgreeSideBySideUntilTheLevelIsRaised(t *testing.T) {
	version := map[uint64]func() state.Machine{1: version1, 2: version1, 3: version1}
	c := rawnodetest.NewCluster(t, rawnodetest.ClusterOptions{
		Seed: 1,
		StateMachine: func(m rawnodetest.Member) (rawnode.StateMachine, error) {
			return state.OpenMemory(version[m.Node], state.Options{FS: m.Dir.FS, Dir: m.Dir.Path, CheckpointBytes: 200, Inline: true})
		},
	})
	agree := func() {
		for node := range uint64(3) {
			require.Equal(t, errUnknown, c.MustPropose(node+1, []byte("sell pears")), "at node %d", node+1)
			c.MustPropose(node+1, []byte("take apples"))
			c.MustPropose(node+1, []byte("add pears"))
		}
		c.Agree(time.Minute, digest)
	}
	agree()
	for _, step := range []struct {
		node    uint64
		program func() state.Machine
	}{{2, version2}, {3, version2}, {2, version1}, {2, version2}, {1, version2}} { // node 2 goes back once
		version[step.node] = step.program
		c.Restart(step.node, true)
		agree()
	}
	require.Equal(t, 1, c.MustPropose(1, []byte("level 1")))
	require.Equal(t, 1, c.MustPropose(2, []byte("level 0")), "a level never falls")
	require.Equal(t, errNone, c.MustPropose(3, []byte("take plums")))
	c.MustPropose(1, []byte("sell pears"))
	c.Restart(2, true)
	c.Agree(time.Minute, digest)
}

// A replica of version 1 that was left behind stops at the raise, whether it comes by the log or by
// a snapshot, before it differs.
func TestVersionOneStopsAtALevelThatItDoesNotKnow(t *testing.T) {
	require.PanicsWithValue(t, "the group is at level 1: start a newer program", func() { version1().Apply([]byte("level 1")) })

	raised := newStock()
	raised.Apply([]byte("level 1"))
	var b bytes.Buffer
	require.NoError(t, raised.Write(&b))
	require.ErrorContains(t, version1().Read(&b), "start a newer program")
}
