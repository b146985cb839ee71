// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/internal/wire"
)

// home is what a replica does for gateways, which have no replica: see [Gateway]. Any replica can be a
// gateway's home, also one that follows or learns, and keeps for each gateway a stream of reports.
//
// A stream begins with the origin table's row of the gateway, as of the last entry handed to the
// apply stage. From there on each report has the results of the gateway's entries, in the order of
// the log, and names an entry up to which there are no others. So a gateway that has the
// reports without a gap knows what a replica knows that hands these entries to its apply stage.
// A report is kept until the gateway has acknowledged it. Where that is not possible, because there
// is no room or the replica has entries by a snapshot, the stream ends, and the gateway begins another.
type home struct {
	guests  []*guest // ascending by id
	streams uint64   // so far
	kept    int      // bytes of results that are not acknowledged
	queries int      // under way
	asked   int      // bytes of their requests
	// granted is, at a leader, the bytes of each gateway's entries that this node has appended as
	// the leader of the present term, and not handed to the apply stage.
	granted map[uint64]int
}

// Bounds of what a replica does for gateways.
const (
	maxGuests       = 1024
	maxKeptBytes    = 64 << 20 // of results
	maxResultBytes  = 8 << 20  // of one result
	maxBatchResults = 16 << 20 // of all results of a batch
	maxReasonBytes  = 512      // for a result that has none
	maxReportBytes  = 1 << 20  // from which on the next report begins
	maxAgainBytes   = 4 << 20  // sent again at a time
	maxQueries      = 4096     // under way
	maxOrigins      = 1 << 16  // rows of the origin table, and senders of proposals
	// guestPatience is how many election timeouts a gateway may be silent.
	guestPatience = 4
)

// guest is a gateway whose home this replica is.
type guest struct {
	id           uint64
	life, number uint64 // of the attachment
	stream       wire.StreamID
	heard        uint64 // tick
	row          *wire.OriginRow
	first        logMark             // of the row
	count        uint64              // counted reports so far
	entries      []wire.EntryResults // for the next report
	bytes        int                 // of entries
	members      *pb.ConfState       // as told
	told         CoreState           // leader and term, likewise
	toldTerm     uint64              // of the mark, likewise
	kept         []keptReport
}

// keptReport is a report that is not acknowledged.
type keptReport struct {
	wire.Report
	bytes  int // of results
	sentAt uint64
}

// guestEntry is an entry of a guest in a step of the state machine.
type guestEntry struct {
	*guest
	results  wire.EntryResults // without the results
	first, n int               // which of the step's results
}

func (h *home) find(id uint64) (i int, g *guest) {
	i, ok := slices.BinarySearchFunc(h.guests, id, func(g *guest, id uint64) int { return cmp.Compare(g.id, id) })
	if !ok {
		return i, nil
	}
	return i, h.guests[i]
}

// forget lets go of a guest.
func (h *home) forget(g *guest) {
	if i, now := h.find(g.id); now == g {
		h.guests = slices.Delete(h.guests, i, i+1)
		h.kept -= g.bytes
		for _, k := range g.kept {
			h.kept -= k.bytes
		}
	}
}

// atHome reports whether a stream goes on.
func (r *Replica) atHome(g *guest) bool {
	if r.home == nil {
		return false
	}
	_, now := r.home.find(g.id)
	return now == g
}

// receiveAttach takes the word of a gateway. One that comes late has no effect.
func (r *Replica) receiveAttach(from uint64, a wire.Attach) error {
	if members.Has(r.host.conf, from) {
		return fmt.Errorf("%w: member %d attaches as a gateway", ErrBadMessage, from)
	}
	if r.home == nil {
		r.home = &home{}
	}
	i, g := r.home.find(from)
	later := 1
	if g != nil {
		later = cmp.Or(cmp.Compare(a.Life, g.life), cmp.Compare(a.Number, g.number))
	}
	switch {
	case later < 0:
		return nil
	case later > 0 && a.Stream != (wire.StreamID{}), later == 0 && a.Stream != (wire.StreamID{}) && a.Stream != g.stream:
		r.closeStream(from, a, "this node does not know the stream")
		return nil
	case later > 0 && a.Leaves:
		return nil
	case later > 0:
		if g != nil {
			r.home.forget(g)
		}
		return r.welcome(i, from, a)
	case a.Leaves:
		r.home.forget(g)
		return nil
	}
	g.heard = r.ticks
	r.acknowledged(g, a.Received)
	if !r.sendAgain(g) {
		r.tellGuest(g, true)
	}
	return nil
}

// welcome begins a stream.
func (r *Replica) welcome(place int, from uint64, a wire.Attach) error {
	switch {
	case len(r.home.guests) >= maxGuests:
		r.closeStream(from, a, fmt.Sprintf("this node is the home of %d gateways, and of no more", maxGuests))
		return nil
	case r.host.at.index == 0 || r.stall.reason != nil || !members.Has(r.host.conf, r.cfg.ID):
		r.closeStream(from, a, "this node has no state, cannot write, or is no member")
		return nil
	}
	h := r.home
	h.streams++
	g := &guest{id: from, life: a.Life, number: a.Number, heard: r.ticks, row: &wire.OriginRow{},
		stream: wire.StreamID{Boot: r.reads.boot, Number: h.streams}, first: r.host.at}
	if row := r.host.origins[from]; row != nil {
		*g.row = wire.OriginRow{Boot: row.boot, Floor: row.floor, Above: slices.Clone(row.above)}
	}
	if len(g.row.Above) > wire.MaxAbove {
		r.closeStream(from, a, "the origin has too many batches under way")
		return nil
	}
	h.guests = slices.Insert(h.guests, place, g)
	r.count.GatewaysAttached++
	r.tellGuest(g, false)
	return nil
}

// closeStream tells a gateway that this node is not its home, and whether it could be.
func (r *Replica) closeStream(to uint64, a wire.Attach, why string) {
	r.post(to, wire.Report{Life: a.Life, Number: a.Number, Leader: r.state.Lead, LeaderTerm: r.state.Term, Closed: why})
}

// endStream ends the stream of a guest.
func (r *Replica) endStream(g *guest, why string) {
	r.home.forget(g)
	r.closeStream(g.id, wire.Attach{Life: g.life, Number: g.number}, why)
}

// endStreams ends all streams.
func (r *Replica) endStreams(why string) {
	for r.home != nil && len(r.home.guests) > 0 {
		r.endStream(r.home.guests[0], why)
	}
}

// acknowledged lets go of the reports that have come.
func (r *Replica) acknowledged(g *guest, received uint64) {
	for len(g.kept) > 0 && g.kept[0].Count <= received {
		r.home.kept -= g.kept[0].bytes
		g.kept = g.kept[1:]
	}
}

// sendAgain sends the reports again that should have come by now, and reports whether there are any.
func (r *Replica) sendAgain(g *guest) (sent bool) {
	bytes := 0
	for i := range g.kept {
		k := &g.kept[i]
		if r.ticks-k.sentAt < 2 || bytes > maxAgainBytes {
			break
		}
		k.sentAt, sent = r.ticks, true
		bytes += k.bytes
		r.count.ReportsAgain++
		r.post(g.id, k.Report)
	}
	return sent
}

// emittedEntry notes an entry that is about to be applied, if it is a guest's. The entry's commands are the
// last ones of the step.
func (r *Replica) emittedEntry(a *Apply, id wire.CommandID, at logMark, n int) {
	if r.home == nil {
		return
	}
	if _, g := r.home.find(id.Origin); g != nil {
		a.guests = append(a.guests, guestEntry{guest: g, first: len(a.Batch.Commands) - n, n: n,
			results: wire.EntryResults{Boot: id.Boot, Sequence: id.Sequence, Index: at.index}})
	}
}

// appliedEntries takes the results of guests' entries.
func (r *Replica) appliedEntries(a Apply, results []any) {
	for _, e := range a.guests {
		if !r.atHome(e.guest) {
			continue
		}
		res := e.results
		if res.Lost = e.n > wire.MaxResults || e.first+e.n > len(results); !res.Lost {
			res.Results = r.encodeResults(results[e.first : e.first+e.n])
		}
		size := res.Size()
		e.entries, e.bytes = append(e.entries, res), e.bytes+size
		r.count.GatewayBatches++
		if r.home.kept += size; r.home.kept > maxKeptBytes {
			r.endStream(e.guest, "there is no room for results that the gateway has not acknowledged")
		}
	}
}

// encodeResults makes bytes of results.
func (r *Replica) encodeResults(results []any) []wire.CommandResult {
	encoded, room := make([]wire.CommandResult, len(results)), maxBatchResults
	for i, v := range results {
		b, err := r.encodeResult(v)
		if err == nil && len(b) > min(maxResultBytes, room) {
			err = fmt.Errorf("it has %d bytes, the bound is %d for one result, and %d for the results of a batch", len(b), maxResultBytes, maxBatchResults)
		}
		if err != nil {
			encoded[i].NoBytes = reasonIn(err, room)
			room -= len(encoded[i].NoBytes)
			continue
		}
		room -= len(b)
		encoded[i].Data = bytes.Clone(b)
	}
	return encoded
}

// reasonIn returns the reason why a result has no bytes, in few bytes.
func reasonIn(err error, room int) string {
	reason := cmp.Or(err.Error(), "no reason is given")
	if reason = reason[:min(len(reason), maxReasonBytes)]; len(reason) > room {
		return "others of the batch have no bytes, either"
	}
	return reason
}

func (r *Replica) encodeResult(v any) ([]byte, error) {
	if r.cfg.EncodeResult != nil {
		return r.cfg.EncodeResult(v)
	}
	return EncodeResult(v)
}

// EncodeResult returns the bytes of a result that has some without the state machine's help.
func EncodeResult(v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []byte:
		return v, nil
	}
	return nil, fmt.Errorf("it is of type %T, and the state machine does not implement EncodeResult", v)
}

// tellGuests sends guests what is new.
func (r *Replica) tellGuests() {
	if r.home == nil || r.err != nil {
		return
	}
	for _, g := range r.home.guests {
		r.tellGuest(g, false)
	}
}

// tellGuest sends a guest what is new, and something in any case if must is set.
func (r *Replica) tellGuest(g *guest, must bool) {
	for g.row != nil || len(g.entries) > 0 || g.members != r.host.conf {
		r.reportCounted(g)
		must = false
	}
	if must || g.told.Lead != r.state.Lead || g.told.Term != r.state.Term || g.toldTerm != r.applied.at.term {
		r.post(g.id, r.newReport(g))
	}
}

// newReport returns a report without news.
func (r *Replica) newReport(g *guest) wire.Report {
	g.told, g.toldTerm = r.state, r.applied.at.term
	return wire.Report{Life: g.life, Number: g.number, Stream: g.stream, Count: g.count,
		Leader: r.state.Lead, LeaderTerm: r.state.Term, Term: r.applied.at.term, Index: r.applied.at.index}
}

// reportCounted sends a report that the guest has to acknowledge. A report with more entries to come names
// no later entry than its last one.
func (r *Replica) reportCounted(g *guest) {
	g.count++
	k := keptReport{Report: r.newReport(g), sentAt: r.ticks}
	k.Counted = true
	if g.members != r.host.conf {
		g.members = r.host.conf
		k.Voters = members.Voters(g.members)
		k.Learners = slices.DeleteFunc(members.IDs(g.members), func(id uint64) bool { return slices.Contains(k.Voters, id) })
	}
	if k.Row = g.row; g.row != nil {
		g.row, k.Term, k.Index = nil, g.first.term, g.first.index
	} else {
		n := 0
		for n < len(g.entries) && n < wire.MaxReportEntries && (n == 0 || k.bytes+g.entries[n].Size() <= maxReportBytes) {
			k.bytes += g.entries[n].Size()
			n++
		}
		k.Entries = slices.Clone(g.entries[:n])
		g.entries = slices.Delete(g.entries, 0, n)
		g.bytes -= k.bytes
		if len(g.entries) > 0 {
			k.Term, k.Index, g.toldTerm = 0, 0, 0 // the entries to come may be before the applied one
		}
	}
	g.kept = append(g.kept, k)
	r.post(g.id, k.Report)
}

// tickHome lets silent guests go.
func (r *Replica) tickHome() {
	if r.home == nil {
		return
	}
	for i := len(r.home.guests) - 1; i >= 0; i-- {
		if g := r.home.guests[i]; r.ticks-g.heard > guestPatience*uint64(r.cfg.ElectionTick) {
			r.home.forget(g)
		}
	}
}

// A leader gives each gateway a credit: of its entries, so many bytes may be in the log and not at the
// apply stage.

// overCredit returns why a leader does not take a proposal from a gateway now, or no verdict.
func (r *Replica) overCredit(from uint64, p wire.Proposal) wire.Verdict {
	if members.Has(r.host.conf, from) {
		return wire.Verdict{}
	}
	if r.host.origins[from] == nil && len(r.host.origins) >= maxOrigins {
		return wire.Verdict{Outcome: wire.Malformed, Term: r.state.Term, Reason: fmt.Sprintf("the group has had entries of %d nodes and gateways, and takes none of others: use an id again", maxOrigins)}
	}
	if r.home != nil && r.home.granted[from] > 0 && r.home.granted[from]+len(p.Data) > r.cfg.MaxQueueBytes {
		return wire.Verdict{Outcome: wire.Busy, Term: r.state.Term}
	}
	return wire.Verdict{}
}

// grant notes an entry that was appended for a gateway.
func (r *Replica) grant(from uint64, p wire.Proposal) {
	if members.Has(r.host.conf, from) {
		return
	}
	if r.home == nil {
		r.home = &home{}
	}
	if r.home.granted == nil {
		r.home.granted = map[uint64]int{}
	}
	r.home.granted[from] += len(p.Data)
}

// redeem gives back the credit of an entry.
func (r *Replica) redeem(origin, term uint64, bytes int) {
	if r.home == nil || r.home.granted == nil || term != r.state.Term {
		return
	}
	if left := r.home.granted[origin] - bytes; left > 0 {
		r.home.granted[origin] = left
	} else {
		delete(r.home.granted, origin)
	}
}

// crowded reports whether a node is the first proposal's sender beyond the bound.
func (r *Replica) crowded(from uint64) bool {
	_, known := r.sendings[from]
	return !known && len(r.sendings) >= maxOrigins
}
