// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
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

// writer writes each of its keys once, with a value of its own, and deletes some
// of them again.
type writer struct {
	id       int
	rng      *rand.Rand
	maxValue int // bytes

	mu    sync.Mutex
	wants map[string]want
	tally tally
}

// startLoad starts the writers and those who contend.
func (r *run) startLoad(ctx context.Context) (wait func()) {
	var wg sync.WaitGroup
	for i := range writers {
		w := &writer{id: i, maxValue: r.maxValue, rng: rand.New(rand.NewPCG(r.seed, uint64(100+i))), wants: map[string]want{}}
		r.writers = append(r.writers, w)
		wg.Go(func() { w.run(ctx, r.clients()) })
	}
	r.hot = newHot(r.seed)
	for i := range hotClients {
		wg.Go(func() { r.hot.run(ctx, i, r.clients()) })
	}
	return wg.Wait
}

// clients returns one for each node.
func (r *run) clients() (all []kvpb.KVClient) {
	for _, n := range r.cluster.Nodes {
		all = append(all, n.KV())
	}
	return all
}

func (w *writer) run(ctx context.Context, nodes []kvpb.KVClient) {
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("w%d/%06d", w.id, n)
		value := make([]byte, w.size())
		for at := 0; at+8 <= len(value); at += 8 {
			binary.LittleEndian.PutUint64(value[at:], w.rng.Uint64())
		}
		k := want{sum: sha256.Sum256(value)}
		k.put = w.put(ctx, nodes, key, value, k.sum)
		w.note(key, k, k.put)
		if k.put == acknowledged && w.rng.IntN(8) == 0 {
			node := nodes[w.rng.IntN(len(nodes))]
			k.gone = true
			k.delete = call(ctx, func(ctx context.Context) error {
				_, err := node.Delete(ctx, &kvpb.DeleteRequest{Key: key})
				return err
			})
			w.note(key, k, k.delete)
		}
		rest := 5 * time.Millisecond
		if k.put != acknowledged {
			rest = 50 * time.Millisecond // the node is down, or there is no leader
		}
		sleep(ctx, rest)
	}
}

// call makes a call and judges it. Calls are not cut off when the load ends, so
// that as few as possible are unknown.
func call(ctx context.Context, f func(context.Context) error) outcome {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
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
