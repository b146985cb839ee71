// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/lab"
)

type statusResponse = kvpb.StatusResponse

const (
	writers     = 6
	callTimeout = 3 * time.Second
)

// outcome is what a writer knows of a call.
type outcome int

const (
	acknowledged outcome = iota
	refused              // it has not happened and never will
	unknown
)

// judge says what the failure of a write means. It did not happen if the node
// said so, or could not be reached.
func judge(err error) outcome {
	if err == nil {
		return acknowledged
	}
	s := status.Convert(err)
	if s.Code() == codes.Unavailable && strings.Contains(s.Message(), "while dialing") {
		return refused
	}
	for _, d := range s.Details() {
		if o, ok := d.(*kvpb.Outcome); ok && o.GetVerdict() == kvpb.Outcome_REFUSED {
			return refused
		}
	}
	return unknown
}

// want is what a key should hold at the end.
type want struct {
	sum    [sha256.Size]byte
	put    outcome
	delete outcome
	gone   bool // it was also deleted, with that outcome
}

// allows reports whether the key may be there, and whether it may be absent.
func (w want) allows() (there, absent bool) {
	there = w.put != refused && (!w.gone || w.delete != acknowledged)
	absent = w.put != acknowledged || w.gone && w.delete != refused
	return there, absent
}

// tally counts outcomes.
type tally struct{ acknowledged, refused, unknown int }

func (t *tally) note(o outcome) {
	switch o {
	case acknowledged:
		t.acknowledged++
	case refused:
		t.refused++
	case unknown:
		t.unknown++
	}
}

// writer writes each of its keys once, each with another value, and deletes some
// of the keys again.
type writer struct {
	id       int
	rng      *rand.Rand
	maxValue int // bytes

	mu    sync.Mutex
	wants map[string]want
	tally tally
}

// errNoAck has a client retreat, because the node is down, or there is no leader.
var errNoAck = errors.New("not acknowledged")

// startLoad starts the writers and the clients of contended keys. When the load ends, calls under way
// are completed, so that few outcomes are unknown.
func (r *run) startLoad(ctx context.Context) (wait func()) {
	nodes := r.clients()
	for i := range writers {
		r.writers = append(r.writers, &writer{id: i, maxValue: r.maxValue, rng: rand.New(rand.NewPCG(r.seed, uint64(100+i))), wants: map[string]want{}})
	}
	r.hot = newHot(r.seed)
	const retreat = 50 * time.Millisecond
	var wg sync.WaitGroup
	for _, l := range []*lab.Load{
		{Clients: writers, Rest: 5 * time.Millisecond, Do: func(ctx context.Context, c *lab.Call) error { return r.writers[c.Client].step(ctx, c.Number, nodes) }},
		{Clients: hotClients, Rest: 10 * time.Millisecond, Do: func(ctx context.Context, c *lab.Call) error { return r.hot.step(ctx, c, nodes) }},
	} {
		l.Finish, l.Retreat = true, retreat
		wg.Go(func() { _, _ = l.Run(ctx) }) // the writers and the histories know the outcomes
	}
	return wg.Wait
}

// clients returns one for each node and gateway.
func (r *run) clients() (all []kvpb.KVClient) {
	for _, n := range r.cluster.Nodes {
		all = append(all, n.KV())
	}
	return append(all, r.gates.clients()...)
}

// step writes a key, and deletes some of them again.
func (w *writer) step(ctx context.Context, n int, nodes []kvpb.KVClient) error {
	key := fmt.Sprintf("w%d/%06d", w.id, n)
	value := make([]byte, w.size())
	lab.Value(key, w.rng.Uint64(), value)
	k := want{sum: sha256.Sum256(value)}
	k.put = w.put(ctx, nodes, key, value, k.sum)
	w.note(key, k, k.put)
	if k.put != acknowledged {
		return errNoAck
	}
	if w.rng.IntN(8) == 0 {
		node := nodes[w.rng.IntN(len(nodes))]
		k.gone = true
		k.delete = call(ctx, func(ctx context.Context) error {
			_, err := node.Delete(ctx, &kvpb.DeleteRequest{Key: key})
			return err
		})
		w.note(key, k, k.delete)
	}
	return nil
}

// call makes a call and judges it.
func call(ctx context.Context, f func(context.Context) error) outcome {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return judge(f(ctx))
}

func (w *writer) note(key string, k want, o outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wants[key] = k
	w.tally.note(o)
}

// tally adds up what all writers know.
func (r *run) tally() (sum tally) {
	for _, w := range r.writers {
		w.mu.Lock()
		sum.acknowledged += w.tally.acknowledged
		sum.refused += w.tally.refused
		sum.unknown += w.tally.unknown
		w.mu.Unlock()
	}
	return sum
}
