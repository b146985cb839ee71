// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// codedFleet is a fleet of three that codes, and a value that is written to it.
func codedFleet(t *testing.T) (f *fleet, value string) {
	f = newFleet(t, 3, 3, "--tick", "20ms")
	bytes := make([]byte, 200_000)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(bytes) // never fails
	value = filepath.Join(t.TempDir(), "value")
	require.NoError(t, os.WriteFile(value, bytes, 0o644))
	eventually(t, "the members to know that all can read coded entries", func() bool {
		f.do("put", "large", "--file", value)
		for _, s := range f.codings() {
			if s.Active {
				return len(s.Recent) > 0
			}
		}
		return false
	})
	return f, value
}

// codings returns what the running nodes say of coded replication, by node.
func (f *fleet) codings() map[uint64]*kvpb.StatusResponse_Coding {
	all := map[uint64]*kvpb.StatusResponse_Coding{}
	for line := range strings.Lines(f.do("status", "--json")) {
		var s statusResult
		require.NoError(f.t, json.Unmarshal([]byte(line), &s))
		for _, g := range s.Groups {
			if g.Coding != nil {
				all[s.GetId()] = g.Coding
			}
		}
	}
	return all
}

// holds checks that every node has the value.
func (f *fleet) holds(value string) {
	want, err := os.ReadFile(value)
	require.NoError(f.t, err)
	for id := range f.nodes {
		eventually(f.t, "the value", func() bool {
			r := kvdemo(f.t.Context(), "", "get", "large", "--endpoints", f.sure[id], "--timeout", limit.String())
			return r.code == 0 && bytes.Equal(want, []byte(r.out))
		})
	}
}

// Three processes code a large value and show the coded entry. After a kill of all
// three, the value is read back from the parts in their logs.
func TestCodedProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	f, value := codedFleet(t)
	f.holds(value)
	shown := regexp.MustCompile(`200\.0 kB +\d.* +\d+ +\d: all +\d: \d+ +\d: \d+\n`)
	var text string
	eventually(t, "the leader to show an entry that it has coded", func() bool { // another may lead by now, and has to code one
		f.do("put", "large", "--file", value)
		text = f.do("status")
		return shown.MatchString(text)
	})
	require.Regexp(t, `NODE +GROUP +CODES +COMPLETE +LAG`, text)
	require.Regexp(t, `\n\d +1 +yes +`, text)
	for id := range f.nodes {
		f.kill(id)
	}
	for id := range f.nodes {
		f.start(id)
	}
	f.holds(value)
	f.stop()
}

// While a node runs with --coding off, the group sends whole entries, and the node
// reads the coded entries in its own log. A node with upstream's core refuses that log.
func TestCodingOff(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	f, value := codedFleet(t)
	coded := 0
	for _, c := range f.codings() {
		coded += len(c.Recent)
	}
	require.NotZero(t, coded)
	f.kill(3)
	f.nodes[3].cmd = nil
	f.start(3, "--core", "upstream")
	require.Error(t, f.nodes[3].cmd.Wait())
	text, err := os.ReadFile(f.nodes[3].log)
	require.NoError(t, err)
	require.Contains(t, string(text), "--core upstream --coding auto: cannot read the log of group 1, whose entry")
	f.start(3, "--coding", "never")
	require.Error(t, f.nodes[3].cmd.Wait())

	f.start(3, "--coding", "off")
	f.holds(value)
	eventually(t, "the leader to hear that a member wants whole entries", func() bool {
		for _, c := range f.codings() {
			if c.Active {
				return false
			}
		}
		return true
	})
	before := f.encoded()
	f.do("put", "large", "--file", value)
	require.Equal(t, before, f.encoded(), "nothing is coded")
	f.holds(value)
	f.stop()
}

// encoded returns how many entries the running nodes have coded.
func (f *fleet) encoded() (n uint64) {
	for _, c := range f.codings() {
		n += c.EncodedEntries
	}
	return n
}
