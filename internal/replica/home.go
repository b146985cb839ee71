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
	"github.com/weftraft/weft/raft"
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
//
// A guest's entry is in one of these states:
//
//  1. at the apply stage: in the guests of an Apply (emit);
//  2. applied: its results are in entries, for the next report (take);
//  3. reported: in kept, and sent again now and then (sendAgain);
//  4. acknowledged: gone.
//
// Invariant: kept is the memory of the results in entries, and of the kept reports of all guests; a Flush leaves at most maxKeptBytes.
// Invariant: a guest with a row has no kept report, and its first report has the row.
// Invariant: queries are those that are waiting reads, or are with the driver, and asked counts them.
//
// A nil home has no guests.
type home struct {
	*facts
	post func(to uint64, body wire.Body)
	boot uint64 // constant

	guests  []*guest // ascending by id
	streams uint64   // so far
	kept    int      // bytes of results that are not acknowledged
	queries map[queryID]struct{}
	asked   int    // bytes of their requests
	closed  bool   // no query and no guest is taken any more
	since   uint64 // tick at which it was closed
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
	// guestPatience is how many election timeouts a gateway may be silent.
	guestPatience = 4
	// departs is how many parts of an election timeout a gateway has for the results of what is under way when its home is about
	// to stop, and stays, until when the home waits for the gateway.
	departs, stays = 3, 2
)

// stopping is what a gateway hears of a home that is about to stop.
const stopping = "this node is about to stop"

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
	bytes  int // in memory
	sentAt uint64
}

// guestEntry is an entry of a guest in a step of the state machine.
type guestEntry struct {
	*guest
	results  wire.EntryResults // without the results
	first, n int               // which of the step's results
}

// queryID names a query of a gateway.
type queryID struct{ from, life, number uint64 }

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

// has reports whether a stream goes on.
func (h *home) has(g *guest) bool {
	_, now := h.find(g.id)
	return now == g
}

// receive takes the word of a gateway. A word that comes late has no effect.
func (h *home) receive(from uint64, a wire.Attach) {
	i, g := h.find(from)
	later := 1
	if g != nil {
		later = cmp.Or(cmp.Compare(a.Life, g.life), cmp.Compare(a.Number, g.number))
	}
	switch {
	case later < 0:
		return
	case later > 0 && a.Stream != (wire.StreamID{}), later == 0 && a.Stream != (wire.StreamID{}) && a.Stream != g.stream:
		h.closeStream(from, a, "this node does not know the stream")
		return
	case later > 0 && a.Leaves:
		return
	case later > 0:
		if g != nil {
			h.forget(g)
		}
		h.welcome(i, from, a)
		return
	case a.Leaves:
		h.forget(g)
		return
	}
	g.heard = h.ticks
	h.acknowledged(g, a.Received)
	if !h.sendAgain(g) {
		h.tell(g, true)
	}
	if h.closed {
		h.sendAway(g)
	}
}

// close has guests leave, and takes no others. A guest goes when it has the results of what is under way; until then its
// stream goes on.
func (h *home) close() {
	if h.closed {
		return
	}
	h.closed, h.since = true, h.ticks
	for _, g := range h.guests {
		h.sendAway(g)
	}
}

// sendAway tells a guest that this node is about to stop. The stream's name says that the stream has not ended; a gateway that
// does not look at the name goes at once.
func (h *home) sendAway(g *guest) {
	h.post(g.id, wire.Report{Life: g.life, Number: g.number, Stream: g.stream, Closed: stopping})
}

// closed has a gateway leave its home: at once, or, if the stream goes on, when nothing is under way, and soon in any case.
func (g *Gateway) closed(goesOn bool) {
	switch h := &g.home; {
	case !goesOn:
		g.giveUp()
	case !h.leaves:
		h.leaves, g.drains = true, g.ticks+max(2, uint64(g.cfg.ElectionTick/departs))
	}
}

// leaving returns how many guests a host that stops is to wait for.
func (h *home) leaving() int {
	if h == nil || !h.closed {
		return 0
	}
	return len(h.guests)
}

// welcome begins a stream.
func (h *home) welcome(place int, from uint64, a wire.Attach) {
	switch {
	case len(h.guests) >= maxGuests:
		h.closeStream(from, a, fmt.Sprintf("this node is the home of %d gateways, and of no more", maxGuests))
		return
	case h.closed || h.host.at.index == 0 || h.stalled != nil || !members.Has(h.host.conf, h.cfg.ID):
		h.closeStream(from, a, "this node is about to stop, has no state, cannot write, or is no member")
		return
	}
	h.streams++
	g := &guest{id: from, life: a.Life, number: a.Number, heard: h.ticks, row: &wire.OriginRow{},
		stream: wire.StreamID{Boot: h.boot, Number: h.streams}, first: h.host.at}
	if row := h.host.origins[from]; row != nil {
		*g.row = wire.OriginRow{Boot: row.boot, Floor: row.floor, Above: slices.Clone(row.above)}
	}
	if len(g.row.Above) > wire.MaxAbove {
		h.closeStream(from, a, "the origin has too many batches under way")
		return
	}
	h.guests = slices.Insert(h.guests, place, g)
	h.count.GatewaysAttached++
	h.tell(g, false)
}

// closeStream tells a gateway that this node is not its home, and whether it could be.
func (h *home) closeStream(to uint64, a wire.Attach, why string) {
	now := h.heardOf()
	h.post(to, wire.Report{Life: a.Life, Number: a.Number, Leader: now.Lead, LeaderTerm: now.Term, Closed: why})
}

// heardOf is the core's state, without a leader that this node does not hear for an election timeout: in the next one the gateway finds
// a home that does. A learner follows the leader without end, also behind its own removal.
func (h *home) heardOf() CoreState {
	now := h.state
	if at, heard := h.heard[now.Lead]; !h.leads() && (!heard || h.ticks-at > uint64(h.cfg.ElectionTick)) {
		now.Lead = raft.None
	}
	return now
}

// endStream ends the stream of a guest.
func (h *home) endStream(g *guest, why string) {
	h.forget(g)
	h.closeStream(g.id, wire.Attach{Life: g.life, Number: g.number}, why)
}

// endStreams ends all streams.
func (h *home) endStreams(why string) {
	for h != nil && len(h.guests) > 0 {
		h.endStream(h.guests[0], why)
	}
}

// acknowledged lets go of the reports that have come.
func (h *home) acknowledged(g *guest, received uint64) {
	for len(g.kept) > 0 && g.kept[0].Count <= received {
		h.kept -= g.kept[0].bytes
		g.kept[0], g.kept = keptReport{}, g.kept[1:] // the array would keep its results
	}
}

// sendAgain sends the reports again that should have come by now, and reports whether there are any.
func (h *home) sendAgain(g *guest) (sent bool) {
	bytes := 0
	for i := range g.kept {
		k := &g.kept[i]
		if h.ticks-k.sentAt < 2 || bytes > maxAgainBytes {
			break
		}
		k.sentAt, sent = h.ticks, true
		bytes += k.bytes
		h.count.ReportsAgain++
		h.post(g.id, k.Report)
	}
	return sent
}

// emit notes an entry that is about to be applied, if it is a guest's. The entry's commands are the
// last ones of the step.
func (h *home) emit(a *Apply, id wire.CommandID, at logMark, n int) {
	if h == nil {
		return
	}
	if _, g := h.find(id.Origin); g != nil {
		a.guests = append(a.guests, guestEntry{guest: g, first: len(a.Batch.Commands) - n, n: n,
			results: wire.EntryResults{Boot: id.Boot, Sequence: id.Sequence, Index: at.index}})
	}
}

// take takes the results of guests' entries.
func (h *home) take(a Apply, results []any) {
	for _, e := range a.guests {
		if !h.has(e.guest) {
			continue
		}
		res := e.results
		if res.Lost = e.n > wire.MaxResults || e.first+e.n > len(results); !res.Lost {
			res.Results = h.encodeResults(results[e.first : e.first+e.n])
		}
		size := memoryOf(&res)
		e.entries, e.bytes = append(e.entries, res), e.bytes+size
		h.count.GatewayBatches++
		h.kept += size
		h.makeRoom()
	}
}

func (h *home) makeRoom() {
	for h.kept > maxKeptBytes {
		h.endStream(h.fattest(), "there is no room for results that the gateway has not acknowledged")
	}
}

// fattest returns the guest of whose results most bytes are kept: a gateway that acknowledges nothing takes the room
// of no other.
func (h *home) fattest() *guest {
	return slices.MaxFunc(h.guests, func(a, b *guest) int { return cmp.Compare(a.keeps(), b.keeps()) })
}

// memoryOf is about what the results of a batch take in memory, with a report of their own: small ones take several times
// their encoded size.
func memoryOf(r *wire.EntryResults) int {
	const result = 56
	return r.Size() + reportBytes + result*len(r.Results)
}

// reportBytes is what a report takes in memory, beside what is in it.
const reportBytes = 400

// keeps returns the bytes of results that are not acknowledged.
func (g *guest) keeps() int {
	n := g.bytes
	for i := range g.kept {
		n += g.kept[i].bytes
	}
	return n
}

// encodeResults makes bytes of results.
func (h *home) encodeResults(results []any) []wire.CommandResult {
	most := h.cfg.fits(maxBatchResults)
	encoded, room, one := make([]wire.CommandResult, len(results)), most, min(maxResultBytes, most)
	for i, v := range results {
		b, err := h.encodeResult(v)
		if err == nil && len(b) > min(one, room) {
			err = fmt.Errorf("it has %d bytes, the bound is %d for one result, and %d for the results of a batch", len(b), one, most)
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

func (h *home) encodeResult(v any) ([]byte, error) {
	if h.cfg.EncodeResult != nil {
		return h.cfg.EncodeResult(v)
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

// tellAll sends guests what is new.
func (h *home) tellAll() {
	if h == nil {
		return
	}
	for _, g := range h.guests {
		h.tell(g, false)
	}
	h.makeRoom()
}

// tell sends a guest what is new, and something in any case if must is set.
func (h *home) tell(g *guest, must bool) {
	for g.row != nil || len(g.entries) > 0 || g.members != h.host.conf {
		h.reportCounted(g)
		must = false
	}
	if now := h.heardOf(); must || g.told.Lead != now.Lead || g.told.Term != now.Term || g.toldTerm != h.applied.at.term {
		h.post(g.id, h.newReport(g))
	}
}

// newReport returns a report without news.
func (h *home) newReport(g *guest) wire.Report {
	g.told, g.toldTerm = h.heardOf(), h.applied.at.term
	return wire.Report{Life: g.life, Number: g.number, Stream: g.stream, Count: g.count,
		Leader: g.told.Lead, LeaderTerm: g.told.Term, Term: h.applied.at.term, Index: h.applied.at.index}
}

// reportCounted sends a report that the guest has to acknowledge. A report with more entries to come names
// no later entry than its last one.
func (h *home) reportCounted(g *guest) {
	g.count++
	k := keptReport{Report: h.newReport(g), sentAt: h.ticks}
	k.Counted = true
	if g.members != h.host.conf {
		g.members = h.host.conf
		k.Voters = members.Voters(g.members)
		k.Learners = slices.DeleteFunc(members.IDs(g.members), func(id uint64) bool { return slices.Contains(k.Voters, id) })
	}
	if k.Row = g.row; g.row != nil {
		g.row, k.Term, k.Index = nil, g.first.term, g.first.index
	} else {
		n := 0
		for n < len(g.entries) && n < wire.MaxReportEntries && (n == 0 || k.bytes+memoryOf(&g.entries[n]) <= maxReportBytes) {
			k.bytes += memoryOf(&g.entries[n])
			n++
		}
		k.Entries = slices.Clone(g.entries[:n])
		g.entries = slices.Delete(g.entries, 0, n)
		g.bytes -= k.bytes
		if len(g.entries) > 0 {
			k.Term, k.Index, g.toldTerm = 0, 0, 0 // the entries to come may be before the applied one
		}
	}
	if len(k.Entries) == 0 { // the members, or the row, whose bytes are bounded by those of the table
		k.bytes = reportBytes + 8*(len(k.Voters)+len(k.Learners))
		h.kept += k.bytes
	}
	g.kept = append(g.kept, k)
	h.post(g.id, k.Report)
}

// tick lets silent guests go.
func (h *home) tick() {
	if h == nil {
		return
	}
	if h.closed && h.ticks-h.since > uint64(h.cfg.ElectionTick/stays)+1 {
		h.endStreams(stopping)
	}
	for i := len(h.guests) - 1; i >= 0; i-- {
		if g := h.guests[i]; h.ticks-g.heard > guestPatience*uint64(h.cfg.ElectionTick) {
			h.forget(g)
		}
	}
}
