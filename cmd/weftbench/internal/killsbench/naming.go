// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package killsbench

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/lab"
)

// naming watches, at a leader, whether its roster names a responder. Writes wait for nobody
// else by the leader's rule: one that takes long while the responder is not named waits for
// something else.
type naming struct {
	end func()

	mu      sync.Mutex
	samples []sample
}

// sample is the roster in an answer of the leader, which was made between two instants.
type sample struct {
	from, to     time.Time
	term, roster uint64
	leads, named bool
}

// namingPace is the time between two questions.
const namingPace = 5 * time.Millisecond

func watchNaming(ctx context.Context, leader, responder *cluster.Node) *naming {
	n := &naming{}
	n.end = lab.Background(ctx, func(ctx context.Context) {
		for ctx.Err() == nil {
			from := time.Now()
			st, err := leader.KV().Status(ctx, &kvpb.StatusRequest{})
			if err == nil {
				n.add(sampleOf(st, uint64(responder.ID), from, time.Now()))
			}
			time.Sleep(namingPace)
		}
	})
	return n
}

func sampleOf(st *kvpb.StatusResponse, responder uint64, from, to time.Time) sample {
	x := sample{from: from, to: to, term: st.GetTerm(), leads: st.GetRole() == "leader"}
	for _, g := range st.GetGroups() {
		x.roster = g.GetLeases().GetRoster()
		x.named = slices.ContainsFunc(g.GetLeases().GetNamed(), func(a *kvpb.Assignment) bool { return slices.Contains(a.GetNodes(), responder) })
	}
	return x
}

func (n *naming) add(x sample) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.samples = append(n.samples, x)
}

// stop ends the watch and returns what was seen.
func (n *naming) stop() namings {
	n.end()
	return n.samples
}

// last returns the newest sample that was asked for after an instant.
func (n *naming) last(after time.Time) (sample, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.samples) == 0 || !n.samples[len(n.samples)-1].from.After(after) {
		return sample{}, false
	}
	return n.samples[len(n.samples)-1], true
}

// namings are samples, in their order.
type namings []sample

// answer says whether a responder was named.
type answer int

const (
	never answer = iota
	sometimes
	unknown
)

// named reports whether the roster named the responder at some time between two instants. The
// answer is unknown if there is no sample, or if two samples have more than one roster between them.
func (s namings) named(from, to time.Time) answer {
	if len(s) == 0 || s[0].from.After(from) || s[len(s)-1].to.Before(to) {
		return unknown
	}
	is := never
	for i := range s {
		next := s[min(i+1, len(s)-1)]
		switch {
		case s[i].from.After(to) || next.to.Before(from):
		case s[i].named || next.named:
			return sometimes
		case next.term != s[i].term || next.roster > s[i].roster+1:
			is = unknown
		}
	}
	return is
}

// oneTerm reports whether the node asked led in one term all the while.
func (s namings) oneTerm() bool {
	return !slices.ContainsFunc(s, func(x sample) bool { return !x.leads || x.term != s[0].term })
}
