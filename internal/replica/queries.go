// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"fmt"
	"time"

	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// maxQueryTime bounds what is believed of a gateway's patience.
const maxQueryTime = time.Minute

// queryPolicies are the policies by their numbers on the wire.
var queryPolicies = map[wire.QueryPolicy]func(q wire.Query) ReadPolicy{
	wire.QueryReadIndex:   func(wire.Query) ReadPolicy { return ReadIndex{} },
	wire.QueryAtResponder: func(wire.Query) ReadPolicy { return AtResponder{} },
	wire.QueryLeaderLease: func(wire.Query) ReadPolicy { return LeaderLease{} },
	wire.QueryQuorum:      func(wire.Query) ReadPolicy { return QuorumRead{} },
	wire.QueryStale: func(q wire.Query) ReadPolicy {
		return BoundedStaleness{Max: q.MaxAge, MaxEntries: q.MaxEntries}
	},
	wire.QueryLocal: func(wire.Query) ReadPolicy { return Local{} },
}

// receiveQuery takes a gateway's query, as a read, unless it is one that the gateway asks again.
func (r *Replica) receiveQuery(from uint64, q wire.Query) error {
	h, id := r.atHome(), queryID{from, q.Life, q.Number}
	if _, again := h.queries[id]; again {
		return nil
	}
	o := ReadOptions{Policy: queryPolicies[q.Policy](q)}
	if len(q.Spans) > 0 {
		var err error
		if o.Spans, err = leases.ParseSpans(q.Spans); err != nil {
			return fmt.Errorf("%w: the spans of query %d: %w", ErrBadMessage, q.Number, err)
		}
	}
	deadline := r.now + min(q.Patience, maxQueryTime)
	w, err := r.newRead(o, deadline)
	if h.closed {
		err = ErrStopped
	} else if len(h.queries) >= maxQueries || h.asked > 0 && h.asked+len(q.Data) > r.cfg.MaxQueueBytes {
		err = fmt.Errorf("%w: %d queries of gateways, of %d bytes", ErrOverloaded, len(h.queries), h.asked)
	}
	if err != nil {
		r.post(from, wire.Reply{Life: q.Life, Number: q.Number, Code: wire.AskAgain, Reason: err.Error()})
		return nil
	}
	r.count.Queries++
	h.queries[id] = struct{}{}
	h.asked += len(q.Data)
	w.call = r.begin(0, opRead, deadline, waitRead)
	w.call.end = func(d Done) {
		a := Query{From: from, Request: q.Data, Patience: deadline - r.now, query: q, read: d.Read}
		if d.Err != nil {
			r.Answered(a, wire.Reply{Code: wire.AskAgain, Reason: d.Err.Error()})
			return
		}
		r.out.Queries = append(r.out.Queries, a)
	}
	r.reads.await(w, o.Policy.question(w.spans))
	return nil
}

// tellBehind ends the queries that have waited for an election timeout: for this node's state, or for an index while this node got none for
// any read, because nobody hears its questions. The gateway may find a node that is not behind, and is heard.
func (r *Replica) tellBehind() {
	for _, c := range r.reads.ready {
		if c.call.end != nil && !c.call.ended && c.index > r.applied.at.index && r.ticks-c.since >= uint64(r.cfg.ElectionTick) {
			r.finishWith(c.call, fmt.Errorf("this node is at index %d, behind %d", r.applied.at.index, c.index))
		}
	}
	for _, p := range r.list {
		if p.end != nil && r.home.heardOf().Lead != raft.None && r.ticks-max(p.since, r.reads.confirmedAt) >= uint64(r.cfg.ElectionTick) {
			r.finishWith(p, errors.New("nobody answers this node's questions"))
		}
	}
}

// Answered sends the answer to a query. Of the reply, Code, Reason and Data count.
func (r *Replica) Answered(q Query, reply wire.Reply) {
	delete(r.home.queries, queryID{q.From, q.query.Life, q.query.Number})
	r.home.asked -= len(q.Request)
	reply.Life, reply.Number = q.query.Life, q.query.Number
	reply.Index, reply.By, reply.Lag, reply.Age = q.read.Index, uint8(q.read.By), q.read.Lag, q.read.Age
	if n, most := len(reply.Data), r.cfg.fits(MaxCommandBytes); n > most {
		reply.Code, reply.Data = wire.QueryFails, nil
		reply.Reason = fmt.Sprintf("the answer has %d bytes, the bound is %d", n, most)
	}
	if r.err == nil {
		r.post(q.From, reply)
	}
}

// TurnGatewaysAway has gateways go to other nodes from now on: this one is about to stop. It would wait for their queries without
// end, and they would notice its silence, and lose the results of what is applied meanwhile. A gateway with batches under way
// goes when it has their results, and counts as a call that waits until then.
func (r *Replica) TurnGatewaysAway() {
	r.atHome().close()
	for _, p := range r.list {
		if p.end != nil {
			r.finishWith(p, ErrStopped)
		}
	}
}

// atHome returns the home, which there is once a gateway has come.
func (r *Replica) atHome() *home {
	if r.home == nil {
		r.home = &home{facts: &r.facts, post: r.post, boot: r.reads.boot, queries: map[queryID]struct{}{}}
	}
	return r.home
}

// attend tells the leader at each tick that this learner is the home of gateways, which wait for what it applies: the question
// where the log ends stands for a read, and nobody waits for its answer.
func (r *Replica) attend() {
	if r.home != nil && len(r.home.guests) > 0 && r.state.Lead != raft.None && !r.leads() && members.Learns(r.host.conf, r.cfg.ID) {
		r.askLogEnd(r.state.Lead, 0)
	}
}
