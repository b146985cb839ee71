// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Load is calls of clients. Without Rate and Next the loop is closed: a client begins a call when
// its last one is answered. With Rate the loop is open: calls are due evenly, whatever became of
// the calls before, and the latency of a call counts from when the call was due, even if no client
// was free then.
type Load struct {
	// Clients is the number of clients; 0, in an open loop, is a client for each call that is due.
	Clients int
	// Do makes a call and checks the answer. Clients call Do at the same time.
	Do func(ctx context.Context, c *Call) error
	// Rate is calls a second of all clients together.
	Rate float64
	// Next, in place of Rate, waits until call n may begin, and returns when it was due, or false
	// to end the load. Only one client at a time is in Next.
	Next func(ctx context.Context, n int) (due time.Time, more bool)

	// Warm is a time at the beginning that does not count. The load goes on for Duration after it,
	// or for so many Calls with it, or until the context ends; 0 is no bound. A client that has made
	// fewer than Least calls goes on beyond both.
	Warm, Duration time.Duration
	Calls, Least   int
	// Timeout bounds a call; 0 does not.
	Timeout time.Duration
	// Finish has calls that are under way when the context ends come to their end, and counts them:
	// the outcome of a call that is cut off is unknown.
	Finish bool
	// Rest is the time between a client's calls, Retreat the time after one that failed.
	Rest, Retreat time.Duration
	// Note, if set, is told of each call that counts. Clients call Note at the same time.
	Note func(c *Call)
}

// Call is one call of a client.
type Call struct {
	// Client and Number tell calls apart: Number counts the calls of the client, and All the calls
	// of all clients.
	Client, Number, All int
	// Kind is for Do to set: each kind is measured by itself.
	Kind int
	// Due is when the call was to begin, Begun and Done are when it did begin and was answered.
	Due, Begun, Done time.Time
	// Err is what Do returned.
	Err error
}

// Latency is from when the call was due until it was answered.
func (c *Call) Latency() time.Duration { return c.Done.Sub(c.Due) }

// Meter is what was measured of some calls.
type Meter struct {
	Calls, Failed int64     // Calls were answered
	Latency       Histogram // of answered calls
	Err           error     // the last failure
}

// Note counts a call.
func (m *Meter) Note(c *Call) {
	if c.Err != nil {
		m.Failed++
		m.Err = c.Err
		return
	}
	m.Calls++
	m.Latency.Record(c.Latency())
}

// Merge adds what was measured of other calls.
func (m *Meter) Merge(o *Meter) {
	m.Calls, m.Failed = m.Calls+o.Calls, m.Failed+o.Failed
	m.Latency.Merge(&o.Latency)
	if o.Err != nil {
		m.Err = o.Err
	}
}

// Result is what a load measured.
type Result struct {
	Meter                // of all kinds
	kinds map[int]*Meter // by kind
	// Elapsed is the time from the first call that counts to the last answer.
	Elapsed time.Duration
}

// Kind returns what was measured of a kind.
func (r *Result) Kind(kind int) *Meter {
	if m := r.kinds[kind]; m != nil {
		return m
	}
	return &Meter{}
}

// PerSecond returns the calls answered in a second.
func (r *Result) PerSecond() float64 { return float64(r.Calls) / r.Elapsed.Seconds() }

// loading is a load under way.
type loading struct {
	*Load
	from, end time.Time // of what counts; end is zero without a bound

	turn   sync.Mutex // of those who begin calls
	begun  int
	mu     sync.Mutex
	result *Result
}

// errNoAnswer says that no call of a load was answered.
var errNoAnswer = errors.New("no call was answered")

// Run makes the load, and returns when all calls have ended. The result is there beside errNoAnswer,
// too.
func (l *Load) Run(ctx context.Context) (*Result, error) {
	r := &loading{Load: l, from: time.Now().Add(l.Warm), result: &Result{kinds: map[int]*Meter{}}}
	if l.Duration > 0 {
		r.end = r.from.Add(l.Duration)
	}
	var group sync.WaitGroup
	for i := range l.Clients {
		group.Go(func() { r.client(ctx, i) })
	}
	for n := 0; l.Clients == 0; n++ {
		c := &Call{Client: n}
		if !r.next(ctx, c) {
			break
		}
		group.Go(func() {
			kinds := map[int]*Meter{}
			r.call(ctx, c, kinds)
			r.add(kinds)
		})
	}
	group.Wait()
	r.result.Elapsed = time.Since(r.from)
	if r.result.Calls == 0 {
		return r.result, errors.Join(fmt.Errorf("%w, and %d failed", errNoAnswer, r.result.Failed), r.result.Err, context.Cause(ctx))
	}
	return r.result, nil
}

// client makes one call after the other.
func (r *loading) client(ctx context.Context, i int) {
	kinds := map[int]*Meter{}
	defer func() { r.add(kinds) }()
	for n := 0; ; n++ {
		c := &Call{Client: i, Number: n}
		if !r.next(ctx, c) {
			return
		}
		r.call(ctx, c, kinds)
		rest := r.Rest
		if c.Err != nil {
			rest = r.Retreat
		}
		if rest > 0 && Sleep(ctx, rest) != nil {
			return
		}
	}
}

// next waits until a call may begin. It is false at the end of the load.
func (r *loading) next(ctx context.Context, c *Call) bool {
	r.turn.Lock()
	defer r.turn.Unlock()
	c.All, c.Due = r.begun, time.Now()
	if r.Rate > 0 {
		c.Due = r.from.Add(time.Duration(float64(c.All)/r.Rate*float64(time.Second)) - r.Warm)
	}
	over := r.Calls > 0 && c.All >= r.Calls || !r.end.IsZero() && c.Due.After(r.end)
	if over && c.Number >= r.Least {
		return false
	}
	if r.Rate > 0 && Sleep(ctx, time.Until(c.Due)) != nil || ctx.Err() != nil {
		return false
	}
	if r.Next != nil {
		var more bool
		if c.Due, more = r.Next(ctx, c.All); !more {
			return false
		}
	}
	r.begun++
	return true
}

// call makes a call and counts it.
func (r *loading) call(ctx context.Context, c *Call, kinds map[int]*Meter) {
	callCtx, cancel := ctx, context.CancelFunc(func() {})
	if r.Finish {
		callCtx = context.WithoutCancel(ctx)
	}
	if r.Timeout > 0 {
		callCtx, cancel = context.WithTimeout(callCtx, r.Timeout)
	}
	defer cancel()
	c.Begun = time.Now()
	c.Err = r.Do(callCtx, c)
	c.Done = time.Now()
	if c.Due.Before(r.from) || ctx.Err() != nil && !r.Finish {
		return
	}
	if kinds[c.Kind] == nil {
		kinds[c.Kind] = &Meter{}
	}
	kinds[c.Kind].Note(c)
	if r.Note != nil {
		r.Note(c)
	}
}

// add adds what a client measured.
func (r *loading) add(kinds map[int]*Meter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for kind, m := range kinds {
		if r.result.kinds[kind] == nil {
			r.result.kinds[kind] = &Meter{}
		}
		r.result.kinds[kind].Merge(m)
		r.result.Merge(m)
	}
}

// Background runs something until it is stopped. stop waits for its end.
func Background(ctx context.Context, run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	return func() { cancel(); <-done }
}

// Sleep waits, and returns the cause if the context ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
