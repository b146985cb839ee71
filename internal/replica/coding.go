// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// codingCore is the methods of a coding core beyond Core. Weft's core has them.
type codingCore interface {
	CodingStatus() raft.CodingStatus
	Densify(on bool)
	NextDeadline() (time.Duration, bool)
	Poll()
	QueueHint(to uint64, bytes int, rate float64)
}

// coding is a replica's part in coded replication. Without it core is nil.
type coding struct {
	core   codingCore
	counts CodingCounters
}

// codes completes the core's configuration, if entries are to be coded.
func (r *Replica) codes(cfg *raft.Config) {
	if r.cfg.Coding == nil {
		return
	}
	own := *r.cfg.Coding
	own.Recorder = &codingRecorder{counts: &r.coding.counts, next: own.Recorder}
	if names := r.cfg.Names; names != nil && names.Zone != nil {
		own.Zone = func(id uint64) string {
			if id != r.cfg.ID && !names.Relayed(id) {
				return ""
			}
			return names.Zone(id)
		}
	}
	cfg.Coding = &own
}

// body is what carries a message of the core.
func (r *Replica) body(m *pb.Message) wire.Raft {
	b := wire.Raft{Message: m, Digests: wire.Digests{First: r.founding.digest, Settings: r.settings.digest}}
	if c := r.cfg.Coding; c != nil && c.LateSeal && m.GetType() == pb.MsgApp {
		b.OwnForm, b.ClearPrefix = true, c.ClearPrefix
		for _, e := range m.GetEntries() {
			if o := ecraft.NewOutgoing(e.GetData(), c.ClearPrefix, r.cfg.ID, m.GetTo()); o != nil {
				b.Saves += len(e.GetData()) - o.Len()
				o.Free()
			}
		}
	}
	return b
}

// startCoding looks whether the core can code, if it should.
func (r *Replica) startCoding() error {
	if r.cfg.Coding == nil {
		return nil
	}
	var ok bool
	if r.coding.core, ok = r.core.(codingCore); !ok {
		return fmt.Errorf("%w: Coding is set, and the core does not code; want the core Weft, or no Coding", ErrInvalid)
	}
	return nil
}

// At gives the arrival time of the inputs that follow, in the driver's time.
func (r *Replica) At(now time.Duration) { r.now = max(r.now, now) }

// Deadline returns the time at which Poll is due, in the driver's time; false if no Poll is
// due before another input. A driver may ignore Deadline: work due between ticks is then
// done with the next tick or message.
func (r *Replica) Deadline() (Deadline, bool) {
	if r.coding.core == nil || r.err != nil || !r.leads() {
		return 0, false
	}
	at, due := r.coding.core.NextDeadline()
	return at - r.skew, due
}

// Poll does what is due between ticks. Flush follows, as after any input.
func (r *Replica) Poll(now time.Duration) {
	r.At(now)
	if r.coding.core != nil && r.err == nil {
		r.coding.core.Poll()
		r.dirty = true
	}
}

// Backlog tells a leader's core what waits to be sent to each member, where that
// is known. Flush follows, as after any input.
func (r *Replica) Backlog(of func(member uint64) (bytes int, known bool)) {
	if r.coding.core == nil || r.err != nil || !r.leads() {
		return
	}
	for _, members := range [][]uint64{r.host.conf.GetVoters(), r.host.conf.GetVotersOutgoing(), r.host.conf.GetLearners()} {
		for _, id := range members {
			if bytes, known := of(id); known {
				r.coding.core.QueueHint(id, bytes, 0)
			}
		}
	}
}

// Densify has the group append nothing coded any more, while on: before a
// downgrade. Status().Coding.Dense tells when this node's log has no coded entry
// left, as its host has dropped them. Flush follows, as after any input.
func (r *Replica) Densify(on bool) {
	if r.coding.core != nil && r.err == nil {
		r.coding.core.Densify(on)
		r.dirty = true
	}
}

// FindCoded returns the first coded entry of a log, or 0 if there is none. A node without
// coding must not be started on a log with a coded entry, because the node would take units
// for commands: first call Densify, and wait until the node's log is dense. clear is
// raft.Coding.ClearPrefix. FindCoded reads the whole log.
func FindCoded(log raft.Storage, clear int) (uint64, error) {
	first, err := log.FirstIndex()
	if err != nil {
		return 0, err
	}
	last, err := log.LastIndex()
	for err == nil && first <= last {
		var entries []*pb.Entry
		if entries, err = log.Entries(first, last+1, findCodedBytes); err != nil || len(entries) == 0 {
			break
		}
		for _, e := range entries {
			if e.GetType() == pb.EntryNormal && ecraft.IsEnvelope(e.GetData(), clear) {
				return e.GetIndex(), nil
			}
		}
		first += uint64(len(entries))
	}
	return 0, err
}

// findCodedBytes is how much of the log FindCoded reads at a time.
const findCodedBytes = 1 << 20

// CodingState is a replica's view of coded replication.
type CodingState struct {
	raft.CodingStatus
	Counters CodingCounters
}

// codingState returns nil without coding.
func (r *Replica) codingState() *CodingState {
	if r.coding.core == nil {
		return nil
	}
	return &CodingState{CodingStatus: r.coding.core.CodingStatus(), Counters: r.coding.counts}
}

// codingLevels is the number of levels counted one by one.
const codingLevels = 8

// CodingCounters count the work of coding since the start of a replica. Bytes are of
// payloads or of units, without the headers around both.
type CodingCounters struct {
	// Encoded counts the entries coded by this node as a leader, EncodedBytes their payloads.
	// Levels has the number at each level: unbalanced entries in the first place, levels
	// beyond codingLevels in the last. Whole counts large payloads sent whole.
	Encoded, EncodedBytes uint64
	Levels                [codingLevels + 1]uint64
	Whole, WholeBytes     uint64
	// SentEntries are coded entries and carriers in appends to peers.
	SentEntries, SentBytes uint64
	// Pushed counts units sent to other followers as soon as durable; Asked the entries for
	// whose units this node asked; Answered the entries for which peers asked this node.
	Pushed, PushedBytes     uint64
	Asked                   uint64
	Answered, AnsweredBytes uint64
	// Completed counts payloads put together from units by this node.
	Completed, CompletedBytes uint64
	// Delays is how long committed entries waited for that, summed over
	// Delayed entries, and MaxDelay the longest.
	Delayed          uint64
	Delays, MaxDelay time.Duration
	// HeldBack is how often committed entries had to wait for a payload.
	HeldBack uint64
	// Rejected are units and envelopes of peers that were no good.
	Rejected uint64
	// Fallbacks and Hedges are entries that got more units as members were
	// lost, or as they were late; RiderCommits those that needed them.
	Fallbacks, Hedges, HedgeBytes, RiderCommits uint64
	// Recovered are entries that this node had to complete before it led, in
	// Recoveries elections, and RecoveryTicks how long that took; Cut are those
	// that nobody can have committed.
	Recovered, Recoveries, RecoveryTicks, Cut uint64
	// Stuck is how often nobody had what an entry lacked; StuckSnapshots went to
	// members in that place, and HandOvers gave up leadership there.
	Stuck, StuckSnapshots, HandOvers uint64
	// LeftOut are riders that were released before they could be sent; Checked
	// changes of members that waited.
	LeftOut, Checked uint64
}

// codingRecorder counts.
type codingRecorder struct {
	counts *CodingCounters
	next   raft.CodingRecorder // nil: none
}

// RecordCoding implements raft.CodingRecorder.
func (c *codingRecorder) RecordCoding(e raft.CodingEvent) {
	c.counts.note(e)
	if c.next != nil {
		c.next.RecordCoding(e)
	}
}

func (c *CodingCounters) note(e raft.CodingEvent) {
	count, bytes := uint64(max(e.Count, 0)), uint64(max(e.Bytes, 0))
	switch e.Kind {
	case raft.CodingEncoded:
		c.Encoded++
		c.EncodedBytes += bytes
		c.Levels[min(max(e.Level, 0), codingLevels)]++
	case raft.CodingWhole:
		c.Whole++
		c.WholeBytes += bytes
	case raft.CodingSent:
		c.SentEntries += count
		c.SentBytes += bytes
	case raft.CodingPushed:
		c.Pushed += count
		c.PushedBytes += bytes
	case raft.CodingAsked:
		c.Asked += count
	case raft.CodingAnswered:
		c.Answered += count
		c.AnsweredBytes += bytes
	case raft.CodingCompleted:
		c.Completed++
		c.CompletedBytes += bytes
	case raft.CodingDelayed:
		d := time.Duration(e.Count) * time.Microsecond
		c.Delayed++
		c.Delays += d
		c.MaxDelay = max(c.MaxDelay, d)
	default:
		c.noteTrouble(e.Kind, count, bytes)
	}
}

// noteTrouble counts what does not happen while all is well.
func (c *CodingCounters) noteTrouble(kind raft.CodingEventKind, count, bytes uint64) {
	switch kind {
	case raft.CodingHeldBack:
		c.HeldBack++
	case raft.CodingRejected:
		c.Rejected++
	case raft.CodingFallback:
		c.Fallbacks += count
	case raft.CodingHedged:
		c.Hedges += count
		c.HedgeBytes += bytes
	case raft.CodingRiderCommit:
		c.RiderCommits++
	case raft.CodingRecovery:
		c.Recovered += count
	case raft.CodingRecovered:
		c.Recoveries++
		c.RecoveryTicks += count
	case raft.CodingCut:
		c.Cut += count
	case raft.CodingStuck:
		c.Stuck++
	case raft.CodingSnapshot:
		c.StuckSnapshots++
	case raft.CodingHandOver:
		c.HandOvers++
	case raft.CodingLeftOut:
		c.LeftOut++
	case raft.CodingChecked:
		c.Checked++
	}
}
