// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/cmd/kvdemo/internal/page"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
)

// A node alone shows itself, and refuses a report of a group that it has not.
func TestPage(t *testing.T) {
	cfg := testConfig(t)
	cfg.HTTPListen = freePort(t)
	cfg.HTTPPeers = map[uint64]string{1: cfg.HTTPListen} // its own address, as all nodes are given the same
	stop := start(t, cfg)
	url := "http://" + cfg.HTTPListen
	fetch(t, url+"/readyz", http.StatusOK)
	require.Contains(t, fetch(t, url+"/page/", http.StatusOK), "<title>kvdemo</title>")
	var s page.State
	require.NoError(t, json.Unmarshal([]byte(fetch(t, url+"/page/state", http.StatusOK)), &s))
	require.Len(t, s.Members, 1)
	require.EqualValues(t, 1, s.Self)
	require.Equal(t, CoreWeft, s.Core)
	var n page.Node
	client, ctx := kvpb.NewKVClient(dial(t, cfg.ClientListen)), patient(t)
	for n.SyncUs == 0 { // it is that of writes in the last 100 ms, which a busy machine lets pass
		_, err := client.Put(ctx, &kvpb.PutRequest{Key: "k"})
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal([]byte(fetch(t, url+"/page/node", http.StatusOK)), &n))
	}
	require.Equal(t, "leader", n.Role)
	require.Equal(t, page.PolicyAdaptive, n.Coding.Policy)
	require.Equal(t, 100, n.Weight)
	require.Equal(t, n.Weight, s.Members[0].Weight)
	require.Contains(t, fetch(t, url+"/page/node?group=2", http.StatusNotFound), "group: 2, want 1 to 1")
	require.NoError(t, stop())
}

// appendEntry adds an entry to a log, as node 2 stores it: with the units for it, or whole if
// units is 0.
func appendEntry(t *testing.T, log *raft.MemoryStorage, term, index uint64, units uint8) {
	data := []byte("plain")
	if units > 0 {
		payload := []byte(strings.Repeat("x", 600))
		h := &ecraft.Header{
			Kind: ecraft.Coded, PayloadLen: len(payload), PayloadCRC: ecraft.Checksum(payload), Layout: ecraft.Layout{D: 6, Slots: 4},
			Encoder: 1, Members: []uint64{2, 3, 4, 5}, Units: []uint8{units, 2, 2, 2},
		}
		data = ecraft.Seal(nil, h, 2, 0, ecraft.NewCodeword(h, payload), nil)
	}
	require.NoError(t, log.Append([]*pb.Entry{{Term: proto.Uint64(term), Index: proto.Uint64(index), Data: data}}))
}

// countingLog counts the entries that are read.
type countingLog struct {
	*raft.MemoryStorage
	reads int
}

func (l *countingLog) Entries(lo, hi, most uint64) ([]*pb.Entry, error) {
	l.reads++
	return l.MemoryStorage.Entries(lo, hi, most)
}

// Coded entries are found in the log, each is read once, and an entry that was replaced is
// read again.
func TestRecentEntries(t *testing.T) {
	log := &countingLog{MemoryStorage: raft.NewMemoryStorage()}
	for index := uint64(1); index <= 6; index++ {
		appendEntry(t, log.MemoryStorage, 1, index, uint8(index%2)*2) // 1, 3 and 5 are coded
	}
	var r recentEntries
	s := &rawnode.CodingState{}
	s.Entries = []raft.CodedEntry{{Index: 5, Term: 1, D: 6, Units: map[uint64]int{2: 3}, Missing: 1}}
	list := r.list(2, log, 5, s)
	require.Equal(t, []page.Entry{
		{Index: 5, Term: 1, Bytes: 600, D: 6, Encoder: 1, Own: 3, Missing: 1},
		{Index: 3, Term: 1, Bytes: 600, D: 6, Encoder: 1, Own: 2},
		{Index: 1, Term: 1, Bytes: 600, D: 6, Encoder: 1, Own: 2},
	}, list)
	require.Equal(t, 5, log.reads)
	require.Len(t, r.list(2, log, 6, &rawnode.CodingState{}), 3)
	require.Equal(t, 6, log.reads, "the others are known")

	appendEntry(t, log.MemoryStorage, 2, 5, 6)
	list = r.list(2, log, 5, &rawnode.CodingState{})
	require.Equal(t, page.Entry{Index: 5, Term: 2, Bytes: 600, D: 6, Encoder: 1, Own: 6}, list[0])
	require.Equal(t, 7, log.reads)
	require.NoError(t, log.Compact(4))
	require.Len(t, r.list(2, log, 5, &rawnode.CodingState{}), 1)
	require.Empty(t, r.list(2, log, 0, &rawnode.CodingState{}))
}

// A demonstration chooses the policy of a node; without one there is no switch.
func TestPolicySwitch(t *testing.T) {
	var none *policySwitch
	require.Equal(t, page.PolicyAdaptive, none.name())
	require.Nil(t, none.policy())

	p := new(policySwitch)
	assigned := func() []int {
		r := &ecraft.Round{Index: 1, Size: 6000, Voters: 5, Layout: ecraft.NewLayout(5, 4)}
		for id := range uint64(4) {
			r.Followers = append(r.Followers, ecraft.Member{ID: id + 2, Healthy: true})
		}
		units := make([]int, 4)
		p.policy().Assign(r, units)
		return units
	}
	p.set(page.PolicyFewest)
	require.Equal(t, []int{2, 2, 2, 2}, assigned())
	p.set(page.PolicyCopies)
	require.Equal(t, []int{6, 6, 6, 6}, assigned())
	require.Implements(t, (*ecraft.Observer)(nil), p.policy(), "it goes on learning")
	require.Implements(t, (*ecraft.Pacer)(nil), p.policy())
}

func TestReadOrders(t *testing.T) {
	out := make(chan page.Order, 2)
	var refused []string
	lines := strings.NewReader("policy off\nnonsense\nshape 2 0 5\n")
	require.NoError(t, ReadOrders(t.Context(), lines, out, func(err error) { refused = append(refused, err.Error()) }))
	require.Equal(t, page.Order{Policy: page.PolicyWhole}, <-out)
	require.Equal(t, page.Order{Peer: 2, Shape: page.Shape{DelayMs: 5}}, <-out)
	require.Len(t, refused, 1)
	require.Contains(t, refused[0], `order "nonsense"`)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, ReadOrders(ctx, strings.NewReader("policy off\n"), make(chan page.Order), nil), context.Canceled)
	require.Error(t, ReadOrders(t.Context(), strings.NewReader(strings.Repeat("x", 1<<20)), out, nil), "a line without an end is an end")
}
