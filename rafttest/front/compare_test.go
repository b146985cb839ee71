// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft"
)

// counts is a state with a program's mistake: what extra returns is added to each number.
type counts struct {
	Of    map[string]int
	extra func() int
}

func (c *counts) Apply(command []byte) any {
	c.Of[string(command)] += 1 + c.extra()
	return c.Of[string(command)]
}
func (c *counts) Write(w io.Writer) error { return json.NewEncoder(w).Encode(c) }
func (c *counts) Read(r io.Reader) error  { return json.NewDecoder(r).Decode(c) }

// summed are counts that can be summed up.
type summed struct{ *counts }

func (s summed) Digest(w io.Writer) error { return s.Write(w) }

func newCounts(extra func() int) *counts { return &counts{Of: map[string]int{}, extra: extra} }

// replica is a node of a test with one group.
type replica struct {
	*weft.Group
	node    *weft.Node
	options weft.Options
}

type replicas map[uint64]replica

// startReplicas opens a group at the nodes 1 to 3 with the state that open opens.
func startReplicas(t *testing.T, open func(*weft.Node) (*weft.Group, error)) replicas {
	all, peers := replicas{}, addressesOf(t, 1, 2, 3)
	for id := range peers {
		all[id] = openReplica(t, newMember(t, id, peers).options, open)
	}
	return all
}

func openReplica(t *testing.T, o weft.Options, open func(*weft.Node) (*weft.Group, error)) replica {
	node, err := weft.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, node.Close(within(t))) })
	g, err := open(node)
	require.NoError(t, err)
	return replica{g, node, o}
}

// until proposes commands at a node until a condition holds.
func (r replicas) until(t *testing.T, at uint64, what string, ok func() bool) {
	eventually(t, func() bool {
		_, err := r[at].Propose(within(t), []byte("a"))
		return errors.Is(err, weft.ErrUnknown) || err == nil && ok()
	}, what)
}

const often = 20 * time.Millisecond

func TestReplicasOfARandomStateAreFound(t *testing.T) {
	all := startReplicas(t, func(n *weft.Node) (*weft.Group, error) {
		r, err := weft.Replicate(n, 1, func() *counts { return newCounts(func() int { return int(n.ID()) }) }, weft.CompareEvery(often))
		return r.Group, err
	})
	for id, g := range all {
		all.until(t, id, "the difference is known", func() bool { return g.State().Differs != nil })
		require.ErrorIs(t, g.State().Differs, weft.ErrDiffers)
		require.ErrorContains(t, g.State().Differs, "the results of commands of replicas differ")
		require.ErrorContains(t, g.State().Differs, "nobody knows which one is right")
		require.NoError(t, g.Err(), "nobody knows who is wrong: all go on")
	}
}

func TestReplicaThatHasAnotherStateIsPutOutOfServiceAndReplaced(t *testing.T) {
	open := func(n *weft.Node) (*weft.Group, error) {
		r, err := weft.Replicate(n, 1, func() summed {
			return summed{newCounts(func() int {
				if n.ID() == 3 {
					return 1
				}
				return 0
			})}
		}, weft.CompareEvery(often))
		if err != nil {
			return nil, err
		}
		return r.Group, nil
	}
	all := startReplicas(t, open)
	all.until(t, 1, "node 3 is out of service", func() bool { return all[3].Err() != nil })
	require.ErrorIs(t, all[3].Err(), weft.ErrDiffers)
	for _, id := range []uint64{1, 2} {
		all.until(t, id, "the others know who is wrong", func() bool { return all[id].State().Differs != nil })
		require.ErrorContains(t, all[id].State().Differs, "nodes [3] differ from the majority")
		require.NoError(t, all[id].Err())
	}

	require.NoError(t, all[3].node.Close(within(t)))
	node, err := weft.Open(all[3].options)
	require.NoError(t, err)
	_, err = open(node)
	require.ErrorIs(t, err, weft.ErrDiffers, "also after a restart")
	require.ErrorContains(t, err, "Group.Replace")
	require.NoError(t, node.Close(within(t)))

	fourth := weft.Options{
		Cluster: testCluster, ID: 4, Dir: t.TempDir(), Listen: addressesOf(t, 4)[4], TickInterval: 10 * time.Millisecond,
		Join: true, Peers: all[1].options.Peers,
	}
	all[4] = openReplica(t, fourth, open)
	changed(t, func(ctx context.Context) error { return all[1].Replace(ctx, 3, 4, fourth.Listen) })
	for _, id := range []uint64{1, 2, 4} {
		all.until(t, id, fmt.Sprintf("node %d: all are equal again", id), func() bool { return all[id].State().Differs == nil })
	}
}

func TestReplicaWithOtherResultsIsNamedAndGoesOn(t *testing.T) {
	all := startReplicas(t, func(n *weft.Node) (*weft.Group, error) {
		r, err := weft.Replicate(n, 1, func() *counts {
			return newCounts(func() int { return int(n.ID() / 3) })
		}, weft.CompareEvery(often))
		return r.Group, err
	})
	for id, g := range all {
		all.until(t, id, "the difference is known", func() bool { return g.State().Differs != nil })
	}
	all.until(t, 3, "node 3 is named", func() bool {
		return strings.Contains(all[3].State().Differs.Error(), "nodes [3] differ from the majority")
	})
	require.NoError(t, all[3].Err())
}
