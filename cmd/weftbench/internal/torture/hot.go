// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/lab"
)

const (
	hotClients = 4
	hotKeys    = 2 // contended at one time; each loop has others
	// checkTimeout bounds the check of one key's history.
	checkTimeout = 30 * time.Second
)

// hot is contended keys and the history of all calls on them.
type hot struct {
	start time.Time

	mu      sync.Mutex
	loop    int
	history map[string][]porcupine.Operation
	served  map[string]int // reads, by what served them
	draws   [hotClients]*rand.Rand
}

// hotCall is a call as the model sees it.
type hotCall struct {
	put   bool
	value string
}

// register models a key, whose value is that of the last put, and at first none.
var register = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		in := input.(hotCall)
		if in.put {
			return true, in.value
		}
		return output.(string) == state.(string), state
	},
}

func newHot(seed uint64) *hot {
	h := &hot{start: time.Now(), history: map[string][]porcupine.Operation{}, served: map[string]int{}}
	for i := range h.draws {
		h.draws[i] = rand.New(rand.NewPCG(seed, uint64(200+i)))
	}
	return h
}

// turn lets the clients go on to other keys, so that histories stay short enough
// to be checked.
func (h *hot) turn(loop int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.loop = loop
}

// step reads or writes a contended key.
func (h *hot) step(ctx context.Context, c *lab.Call, nodes []kvpb.KVClient) error {
	rng := h.draws[c.Client]
	h.mu.Lock()
	key := fmt.Sprintf("hot/%d/%d", h.loop, rng.IntN(hotKeys))
	h.mu.Unlock()
	in := hotCall{put: rng.IntN(2) == 0}
	if in.put {
		in.value = fmt.Sprintf("client %d call %d", c.Client, c.Number)
	}
	if !h.call(ctx, c.Client, nodes[rng.IntN(len(nodes))], key, in) {
		return errNoAck
	}
	return nil
}

// call makes a call and records the call, unless the call certainly had no effect.
func (h *hot) call(ctx context.Context, client int, node kvpb.KVClient, key string, in hotCall) bool {
	begin := time.Since(h.start)
	out, by := "", ""
	o := call(ctx, func(ctx context.Context) error {
		if in.put {
			_, err := node.Put(ctx, &kvpb.PutRequest{Key: key, Value: []byte(in.value)})
			return err
		}
		resp, err := node.Get(ctx, &kvpb.GetRequest{Key: key})
		by = resp.GetServed().GetBy()
		if out = string(resp.GetValue()); status.Code(err) == codes.NotFound {
			return nil
		}
		return err
	})
	end := int64(time.Since(h.start))
	switch {
	case o == refused, o == unknown && !in.put:
		return false
	case o == unknown:
		end = math.MaxInt64 // it may happen at any later time
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if by != "" {
		h.served[by]++
	}
	h.history[key] = append(h.history[key], porcupine.Operation{
		ClientId: client, Input: in, Call: int64(begin), Output: out, Return: end,
	})
	return o == acknowledged
}

// check reads each key once more and checks all histories.
func (h *hot) check(ctx context.Context, nodes []kvpb.KVClient) (calls int, err error) {
	for key := range h.history {
		if !h.call(ctx, hotClients, nodes[len(key)%len(nodes)], key, hotCall{}) {
			return 0, fmt.Errorf("read %s at the end: it failed", key)
		}
	}
	for key, history := range h.history {
		calls += len(history)
		switch porcupine.CheckOperationsTimeout(register, withoutUnseen(history), checkTimeout) {
		case porcupine.Illegal:
			err = errors.Join(err, fmt.Errorf("the %d calls on %s are not linearizable: %s", len(history), key, describe(history)))
		case porcupine.Unknown:
			err = errors.Join(err, fmt.Errorf("the %d calls on %s could not be checked within %v", len(history), key, checkTimeout))
		}
	}
	return calls, err
}

// withoutUnseen leaves out puts with an unknown outcome and a value that no read has
// returned. No two puts have the same value, so such a put can stand at the end of any
// order and changes no verdict; but each such put doubles the time of the check.
func withoutUnseen(history []porcupine.Operation) (out []porcupine.Operation) {
	seen := map[string]bool{}
	for _, op := range history {
		if !op.Input.(hotCall).put {
			seen[op.Output.(string)] = true
		}
	}
	for _, op := range history {
		if in := op.Input.(hotCall); op.Return < math.MaxInt64 || seen[in.value] {
			out = append(out, op)
		}
	}
	return out
}

// describe writes out a history, in the order in which the calls began.
func describe(history []porcupine.Operation) (text string) {
	for _, op := range history {
		in := op.Input.(hotCall)
		what := fmt.Sprintf("get -> %q", op.Output)
		if in.put {
			what = fmt.Sprintf("put %q", in.value)
		}
		text += fmt.Sprintf("\n  client %d  %v to %v  %s", op.ClientId, time.Duration(op.Call), time.Duration(op.Return), what)
	}
	return text
}
