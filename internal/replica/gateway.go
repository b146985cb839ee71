// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// Gateway takes commands and queries of users for a group, and has no replica of it. The way of a
// command to the log is that of a [Replica]: batches, and sendings for a term. What a replica knows from the
// entries that it hands to its apply stage, a gateway knows from the reports of its home, a replica
// that it has chosen: see home. So the verdicts are those of a replica, for the same reasons. When the home is
// silent, or falls behind, the gateway takes another one. A new home tells which batches were applied, and not with
// which results: the calls of these batches end with [ErrSuperseded].
//
// Two homes do, and are left for a better one: the leader, which has enough to do, and a node in another zone, from
// which results and answers come over the dear links, once a node in the gateway's own zone answers. The gateway
// lets its batches end first, so that no result is lost by such a move.
//
// A Gateway has no goroutine, reads no clock and does no I/O, like a Replica. The driver feeds inputs, and
// then calls Flush. One goroutine at a time uses a Gateway.
type Gateway struct {
	facts // the counters are those of calls and of the outbox
	calls
	outbox outbox
	out    GatewayOutput
	seen   GatewayCounters // without these

	homes    []uint64 // that may be asked, ascending
	near     []uint64 // of these, those in the gateway's zone, ascending
	home     attachment
	better   uint64 // a near node that has answered a knock; 0: none
	drains   uint64 // tick before which the gateway begins no batch, and moves when none is under way
	homed    bool   // a home has told the origin's row
	lead     uint64 // the leader known here, in term
	term     uint64
	hinted   uint64        // tick of the last word on the leader by a node that is not the home
	members  *pb.ConfState // as a home told; constant
	queries  []*gatewayQuery
	asked    int    // bytes of queries
	numbers  uint64 // of queries so far
	restless uint64 // tick before which the gateway stays, though there may be a better home
	misses   int    // homes tried since one has answered
}

// gatewayQuery is a query that is not answered.
type gatewayQuery struct {
	*pendingCall
	wire.Query
	home   uint64 // number of the attachment to which it was sent last; 0: it is to be sent
	sentAt uint64
	after  uint64 // tick before which it is not sent
}

// GatewayOutput is what a gateway wants done.
type GatewayOutput struct {
	Sends []wire.Message
	Done  []Done // the Result of a command is its bytes, a []byte
}

// GatewayStatus is a gateway's view.
type GatewayStatus struct {
	ID, Group  uint64
	Home       uint64 // 0: none
	Lead, Term uint64
	Applied    uint64 // the home's, as told
	Members    *pb.ConfState
	Waiting    int // calls
	Queued     int // bytes of commands and queries
	Counters   GatewayCounters
}

// GatewayCounters count since the start of a gateway.
type GatewayCounters struct {
	Proposals, Batches, Resent uint64
	Queries, QueriesAgain      uint64
	Homes                      uint64 // attachments with an answer
	Nearer                     uint64 // moves into the gateway's zone
	Superseded                 uint64 // batches that were applied, with results that are not known here
	Gaps                       uint64 // reports not looked at, because one before is missing
	Refused, Unknown           uint64 // calls that ended so
}

const (
	maxGatewayCommands = wire.MaxResults // of a batch: a report has results of so many
	maxRoundPatience   = 8               // for a home's first answer, in thirds of an election timeout
)

// NewGateway makes a gateway. Of the settings, ID, Group, Boot and the bounds of commands, batches
// and calls count, and ElectionTick, the number of ticks after which a silent home is given up.
func NewGateway(s Settings) (*Gateway, error) {
	if err := s.ValidateCalls(); err != nil {
		return nil, err
	}
	g := &Gateway{facts: facts{cfg: Config{Settings: s.WithDefaults(), Moment: gatewayWait}}, members: &pb.ConfState{}}
	g.calls = calls{facts: &g.facts, around: g}
	g.outbox = newOutbox(&g.calls, g, 0)
	g.outbox.maxCommands, g.outbox.gathers = maxGatewayCommands, true
	return g, nil
}

func (g *Gateway) appendProposal(wire.Proposal) wire.Verdict { return wire.Verdict{} }
func (g *Gateway) unable() error                             { return nil }
func (g *Gateway) callEnded(d Done)                          { g.out.Done = append(g.out.Done, d) }

// leader returns the leader, once a home is there: batches sent before would have no results. Nothing is sent for a term
// that is over: its end would not be noted.
func (g *Gateway) leader() (id, term uint64) {
	if g.home.stream == (wire.StreamID{}) || g.term < g.outbox.lastTerm {
		return raft.None, g.term
	}
	return g.lead, g.term
}

func (g *Gateway) post(to uint64, body wire.Body) {
	g.out.Sends = append(g.out.Sends, wire.Message{Group: g.cfg.Group, From: g.cfg.ID, To: to, Body: body})
}

func (g *Gateway) timeout() error {
	switch lead, _ := g.leader(); {
	case len(g.homes) == 0:
		return fmt.Errorf("%w: no member is known that takes gateways", ErrTimeout)
	case g.home.stream == (wire.StreamID{}):
		return fmt.Errorf("%w: no member answers this gateway; asked: %v", ErrTimeout, g.homes)
	case lead == raft.None:
		return fmt.Errorf("%w, and %w to node %d, the home of this gateway", ErrTimeout, ErrNoLeader, g.home.id)
	}
	return ErrTimeout
}

// SetHomes names the nodes that may be this gateway's home, and those of them that are in its zone.
func (g *Gateway) SetHomes(ids, near []uint64) {
	g.homes = slices.Compact(slices.Sorted(slices.Values(ids)))
	g.near = slices.Compact(slices.Sorted(slices.Values(near)))
	if !slices.Contains(g.near, g.better) {
		g.better = raft.None
	}
}

// At tells the time, in the driver's time, which never goes back.
func (g *Gateway) At(now time.Duration) { g.now = max(g.now, now) }

// Tick lets a tick pass.
func (g *Gateway) Tick(now time.Duration) {
	g.At(now)
	g.ticks++
	g.expire()
	g.outbox.tidy()
	g.lookAtHome()
}

// Flush ends a turn and returns the work to do. The caller owns the output.
func (g *Gateway) Flush(now time.Duration) GatewayOutput {
	g.At(now)
	if g.cancel() {
		g.outbox.tidy()
	}
	if g.home.id == raft.None || g.ticks < g.drains && len(g.outbox.batches) == 0 {
		g.moveHome()
	}
	if g.ticks >= g.drains {
		g.outbox.sendBatches()
	}
	g.sendQueries()
	out := g.out
	g.out = GatewayOutput{}
	return out
}

// Deadline returns the time at which Flush is due, in the driver's time; false if no Flush is due before another
// input. A driver may ignore Deadline, as with [Replica.Deadline].
func (g *Gateway) Deadline() (Deadline, bool) {
	at, due := g.outbox.closesAt()
	lead, _ := g.leader()
	return at, due && lead != raft.None && g.ticks >= g.drains
}

// Stop ends all calls.
func (g *Gateway) Stop() {
	g.endAll(ErrStopped)
	g.outbox.tidy()
}

// Status returns the gateway's view.
func (g *Gateway) Status() GatewayStatus {
	lead, term := g.leader()
	c := g.seen
	c.Proposals, c.Batches, c.Resent, c.Refused, c.Unknown = g.count.Proposals, g.count.Batches, g.count.Resent, g.count.Refused, g.count.Unknown
	return GatewayStatus{
		ID: g.cfg.ID, Group: g.cfg.Group, Home: g.home.id, Lead: lead, Term: term, Applied: g.home.mark.index, Members: g.members,
		Waiting: g.live, Queued: g.outbox.queued + g.asked, Counters: c,
	}
}

// Receive lets a message of a peer arrive. The transport vouches for m.From. What is wrong with a
// message is returned, wraps ErrBadMessage, and has no effect.
func (g *Gateway) Receive(m wire.Message) error {
	if m.Group != g.cfg.Group || m.To != g.cfg.ID || m.From == g.cfg.ID || m.From == raft.None || m.Body == nil {
		return fmt.Errorf("%w: it goes from node %d to node %d in group %d; this is gateway %d of group %d", ErrBadMessage, m.From, m.To, m.Group, g.cfg.ID, g.cfg.Group)
	}
	switch b := m.Body.(type) {
	case wire.Verdict:
		if b.Outcome == wire.NotLeader && b.Leader != raft.None && b.Term > g.term {
			g.follow(b.Leader, b.Term)
			g.hinted = g.ticks
		}
		g.outbox.receiveVerdict(b)
	case wire.Report:
		return g.receiveReport(m.From, b)
	case wire.Reply:
		g.receiveReply(m.From, b)
	default:
		return fmt.Errorf("%w: a %v does not belong at a gateway", ErrBadMessage, m.Kind())
	}
	return nil
}

// follow notes the leader.
func (g *Gateway) follow(lead, term uint64) {
	if g.lead != lead || g.term != term {
		g.lead, g.term = lead, term
		g.outbox.leaderChanged()
	}
}

// Unreachable reports a dropped message or a broken connection to a peer: a query is asked again at the next tick, as
// what is sent before may be dropped at once, and a home that has not answered yet is given up.
func (g *Gateway) Unreachable(peer uint64) {
	if peer != g.home.id {
		return
	}
	for _, q := range g.queries {
		q.home, q.after = 0, g.ticks+1
	}
	if g.home.stream == (wire.StreamID{}) {
		g.giveUp()
	}
}

// receiveReport takes what a home tells, in order. What is behind a gap is told again.
func (g *Gateway) receiveReport(from uint64, r wire.Report) error {
	h := &g.home
	if r.Row != nil && r.Row.Boot >= maxBoot || slices.ContainsFunc(r.Entries, func(e wire.EntryResults) bool { return e.Boot >= maxBoot }) {
		return fmt.Errorf("%w: node %d reports a start of %d or more", ErrBadMessage, from, uint64(maxBoot))
	}
	if r.Life != g.cfg.Boot || r.Number != h.number {
		return nil // of an earlier attachment
	}
	if from != h.id {
		if slices.Contains(g.near, from) && from != g.lead && r.Closed != "" && r.Leader != raft.None {
			g.better = from // it answers a knock
		}
		return nil
	}
	attached := h.stream != (wire.StreamID{})
	switch {
	case r.Closed != "":
		g.closed(attached && r.Stream == h.stream)
		return nil
	case !attached && r.Row == nil, attached && r.Stream != h.stream:
		return nil
	case !attached:
		h.stream, h.ledAt = r.Stream, g.ticks
		g.seen.Homes++
		g.lead, g.term = raft.None, 0
	}
	h.heardAt = g.ticks
	if r.Leader != raft.None {
		h.ledAt = g.ticks
	}
	next := h.received
	if r.Counted {
		next++
	}
	if r.Count != next {
		if r.Count > next {
			g.seen.Gaps++
		}
		return nil
	}
	h.received = r.Count
	g.takeReport(r)
	return nil
}

// takeReport takes the next report.
func (g *Gateway) takeReport(r wire.Report) {
	at := logMark{term: r.Term, index: r.Index}
	if len(r.Voters) > 0 {
		g.members = &pb.ConfState{Voters: r.Voters, Learners: r.Learners}
	}
	if r.Row != nil {
		g.takeRow(r.Row, at)
	}
	for _, e := range r.Entries {
		g.takeEntry(e)
	}
	if at.index > g.home.mark.index {
		g.home.mark = at
	}
	g.outbox.passed(at)
	if r.LeaderTerm >= g.term || g.ticks-g.hinted >= uint64(g.cfg.ElectionTick) { // by now the home would know, too
		g.follow(r.Leader, r.LeaderTerm)
	}
}

// takeRow settles the fate of batches that were applied before the stream began. At first nothing was sent: the boot
// is then the newest that the group has heard of.
func (g *Gateway) takeRow(row *wire.OriginRow, at logMark) {
	if !g.homed {
		g.homed = true
		g.outbox.raiseBoot(row.Boot)
	}
	before := len(g.outbox.batches)
	g.outbox.jumped(originTable{g.cfg.ID: {boot: row.Boot, floor: row.Floor, above: row.Above}}, at)
	g.seen.Superseded += uint64(before - len(g.outbox.batches))
}

// takeEntry ends the calls of an own batch with the results.
func (g *Gateway) takeEntry(e wire.EntryResults) {
	own := g.outbox.takeOwn(wire.CommandID{Origin: g.cfg.ID, Boot: e.Boot, Sequence: e.Sequence})
	g.outbox.bootTaken(e.Boot)
	if own == nil || own.withdrawn {
		return
	}
	if e.Lost || len(e.Results) != len(own.calls) {
		g.seen.Superseded++
		g.outbox.superseded(own)
		return
	}
	for i, c := range own.calls {
		if r := e.Results[i]; r.NoBytes == "" {
			g.finish(c, Done{Index: e.Index, Result: r.Data, Sent: c.sent, Committed: g.now})
		} else {
			c.open = true
			g.finishWith(c, fmt.Errorf("%w: %s", ErrNoBytes, r.NoBytes))
		}
	}
}

// Propose takes a command from a user. It ends with the bytes of the state machine's result. The command
// must not be changed any more.
func (g *Gateway) Propose(call Call, command []byte, deadline Deadline) {
	g.outbox.propose(call, command, deadline)
}

// Query asks the state machine of a replica, behind the read barrier that the options want. It ends with the answer,
// a []byte. The request must not be changed any more.
func (g *Gateway) Query(call Call, request []byte, o ReadOptions, deadline Deadline) {
	q := wire.Query{Life: g.cfg.Boot, Data: request}
	err := cmp.Or(g.admits(deadline), queryOptions(&q, o))
	switch queued := g.outbox.queued + g.asked; {
	case err != nil:
	case len(request) > g.cfg.MaxCommandBytes:
		err = fmt.Errorf("%w: a query of %d bytes, the bound is %d", ErrTooLarge, len(request), g.cfg.MaxCommandBytes)
	case queued+len(request) > g.cfg.MaxQueueBytes:
		err = fmt.Errorf("%w: %d bytes of commands and queries, the bound is %d; try again later", ErrOverloaded, queued, g.cfg.MaxQueueBytes)
	default:
		err = g.cfg.Budget.take(len(request))
	}
	if err != nil {
		g.refuseNow(call, opQuery, err)
		return
	}
	g.seen.Queries++
	g.numbers++
	q.Number = g.numbers
	g.asked += len(request)
	g.queries = append(g.queries, &gatewayQuery{pendingCall: g.begin(call, opQuery, deadline, "an answer of the gateway's home"), Query: q})
}

// queryOptions are the options of a read as a query has them.
func queryOptions(q *wire.Query, o ReadOptions) error {
	if o.Policy == nil {
		o.Policy = ReadIndex{}
	}
	spans, bad := o.key()
	if err := cmp.Or(checkPolicy(o.Policy), bad); err != nil {
		return err
	}
	if q.Spans = []byte(spans); len(o.Spans) == 0 {
		q.Spans = nil
	}
	switch p := o.Policy.(type) {
	case ReadIndex:
		q.Policy = wire.QueryReadIndex
	case AtResponder:
		q.Policy = wire.QueryAtResponder
	case LeaderLease:
		q.Policy = wire.QueryLeaderLease
	case QuorumRead:
		q.Policy = wire.QueryQuorum
	case BoundedStaleness:
		q.Policy, q.MaxAge, q.MaxEntries = wire.QueryStale, p.Max, p.MaxEntries
	case Local:
		q.Policy = wire.QueryLocal
	}
	return nil
}

// sendQueries sends the queries that are due to the home, and lets go of those that have ended.
func (g *Gateway) sendQueries() {
	g.queries = slices.DeleteFunc(g.queries, func(q *gatewayQuery) bool {
		if q.ended {
			g.asked -= len(q.Data)
			g.cfg.Budget.give(len(q.Data))
		}
		return q.ended
	})
	if g.home.stream == (wire.StreamID{}) {
		return
	}
	for _, q := range g.queries {
		if q.home == g.home.number && g.ticks-q.sentAt < uint64(g.cfg.ElectionTick) || g.ticks < q.after || q.deadline <= g.now {
			continue
		}
		if q.sentAt > 0 || q.home > 0 {
			g.seen.QueriesAgain++
		}
		q.home, q.sentAt, q.Patience = g.home.number, g.ticks, q.deadline-g.now
		g.post(g.home.id, q.Query)
	}
}

// receiveReply takes the answer to a query, of whatever sending: the barrier was later than the call.
func (g *Gateway) receiveReply(from uint64, r wire.Reply) {
	i, found := slices.BinarySearchFunc(g.queries, r.Number, func(q *gatewayQuery, number uint64) int { return cmp.Compare(q.Number, number) })
	if !found || r.Life != g.cfg.Boot {
		return
	}
	q, h := g.queries[i], &g.home
	if r.Code != wire.AskAgain {
		h.declines = 0
	} else if from == h.id && h.declines == 0 {
		h.declines = g.ticks
	}
	switch r.Code {
	case wire.Answered:
		g.finish(q.pendingCall, Done{Result: r.Data, Index: r.Index, Read: ReadResult{Index: r.Index, By: ServedBy(r.By), Lag: r.Lag, Age: r.Age}})
	case wire.QueryFails:
		g.finishWith(q.pendingCall, fmt.Errorf("%w: %s", ErrQuery, r.Reason))
	case wire.NoQueries:
		g.finishWith(q.pendingCall, ErrNoQueries)
	case wire.AskAgain:
		q.waiting = "a home that answers; the last one says: " + r.Reason
		q.home, q.after = 0, g.ticks+1
	}
}
