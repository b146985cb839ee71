// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/marked"
	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/internal/wire"
)

// The inbox takes proposals that other nodes send here, as to the leader of a term. The other end is an [outbox],
// of a member or of a gateway. A proposal ends in one of these ways:
//
//  1. dropped without an answer: it was delivered twice, or is for a term from before the start of this node;
//  2. refused: the answer says why, and that this sending never gets into the log;
//  3. appended: the answer says where, and may be left out once the origin meets its batch in the log (answer);
//  4. held by the core until the log is safe under it: there is no answer, and the origin asks again.
//
// While this leader's processors are busy, a batch that comes before the last ones are committed waits for their commit: all
// batches that have come by then share a write of the log, an append to each follower and the acknowledgements, and the
// commit index of the last round rides on the appends of the next. Such a round costs a leader about as much with one batch as
// with ten. Nothing waits where rounds take longer than busyEvery: there members are far from each other, or disks slow.
//
// Invariant: a node has a row in seen if a proposal of the node had an answer or was held, and at most
// maxOrigins nodes that are no members, and have no row in the table of origins, have one.
// Invariant: an answer that waits is about a batch that was appended in the term of the answer.
// Invariant: waits has batches only, waiting is their bytes, and a Flush leaves at most MaxBatchBytes.
// Invariant: granted[id] > 0 implies that id was no member when this node appended entries of id, in the present term,
// of which so many bytes are not at the apply stage.
type inbox struct {
	*facts
	around aroundInbox

	bornTerm uint64             // the term at the start; constant
	seen     map[uint64]sending // by node: its last proposal
	answers  []lateAnswer
	waits    []waitingProposal
	waiting  int
	round    uint64        // the last entry appended here for others, or 0: it is committed
	began    time.Duration // when it was appended
	typical  time.Duration // about how long a round is under way
	// granted is the credit in use: a leader gives each gateway a credit of bytes of entries that are in the log and
	// not at the apply stage.
	granted map[uint64]int
}

// aroundInbox is what the inbox needs of what is around it.
type aroundInbox interface {
	appendProposal(wire.Proposal) wire.Verdict
	post(to uint64, body wire.Body)
}

// waitingProposal is a checked proposal of a node.
type waitingProposal struct {
	from uint64
	wire.Proposal
}

// sending names a proposal of a node.
type sending struct{ boot, number uint64 }

// lateAnswer is a leader's word that a batch was appended. The answer waits for a tick: an
// origin that meets its batch in the log by then needs no answer, and any other origin must
// hear the answer before sending the batch again.
type lateAnswer struct {
	to      uint64
	verdict wire.Verdict
}

// maxAnswers bounds the waiting answers.
const maxAnswers = 4096

// crowded reports whether a node is the first proposal's sender beyond the bound. A gateway that the group has a row of is none,
// or ids without rows could take its place.
func (i *inbox) crowded(from uint64) bool {
	_, known := i.seen[from]
	return !known && len(i.seen) >= maxOrigins && i.host.origins[from] == nil
}

func (i *inbox) leaderChanged() { i.granted, i.round = nil, 0 }

// receive answers a proposal of another node. An error describes a faulty proposal.
//
// After a restart, a proposal for a term from before the restart gets no answer. The network may
// bring a message twice: this node may have led that term, and may have appended the proposal, in
// its earlier life. Its origin hears the fate of the proposal from the log of a later term.
func (i *inbox) receive(from uint64, p wire.Proposal) error {
	i.count.ForwardedIn++
	if p.Term <= i.bornTerm {
		return nil
	}
	if p.ID.Boot >= maxBoot { // no later start of the node would be above it
		return fmt.Errorf("%w: node %d proposes with a start of %d, want less than %d", ErrBadMessage, from, p.ID.Boot, uint64(maxBoot))
	}
	seen := i.seen[from]
	switch {
	case p.ID.Boot < seen.boot:
		// Of an earlier life; or of this one, if its clock was set back meanwhile.
		i.around.post(from, wire.Verdict{ID: p.ID, Number: p.Number, Outcome: wire.Busy, Term: i.state.Term, Index: seen.boot})
		return nil
	case p.ID.Boot == seen.boot && p.Number <= seen.number:
		return nil // delivered twice, or behind a later one: see wire.Proposal.Number
	}
	if i.seen == nil {
		i.seen = map[uint64]sending{}
	}
	i.seen[from] = sending{boot: p.ID.Boot, number: p.Number}
	v, err := i.check(from, p)
	switch {
	case v.Outcome != 0:
		i.reply(from, p, v)
	case p.ConfChange:
		i.append(from, p)
	default:
		i.waits, i.waiting = append(i.waits, waitingProposal{from, p}), i.waiting+len(p.Data)
	}
	return err
}

// appendRound appends what waits, unless it waits for the last round.
func (i *inbox) appendRound() {
	if i.round > 0 && i.round <= i.emitted.index {
		i.typical += (i.now - i.began - i.typical) / 8
		i.round = 0
	}
	switch {
	case len(i.waits) == 0:
		return
	case i.holds():
		i.count.HeldIn++
		return
	}
	for _, w := range i.waits {
		i.append(w.from, w.Proposal)
	}
	clear(i.waits)
	i.waits, i.waiting = i.waits[:0], 0
}

// holds reports whether batches wait for the last round.
func (i *inbox) holds() bool {
	return i.round > 0 && i.busy() && i.typical < i.moment() && i.now-i.began < i.moment() && i.waiting < i.cfg.MaxBatchBytes
}

// append appends a checked proposal, or refuses it.
func (i *inbox) append(from uint64, p wire.Proposal) {
	v := i.overCredit(from, p)
	if v.Outcome == 0 {
		if v = i.around.appendProposal(p); v.Outcome == 0 {
			return // the core holds it: see appendProposal
		}
	}
	if v.Outcome == wire.Accepted {
		i.grant(from, p)
		i.round, i.began = v.Index, i.now
	}
	i.reply(from, p, v)
}

// reply answers a proposal, now or later.
func (i *inbox) reply(from uint64, p wire.Proposal, v wire.Verdict) {
	if v.Outcome != wire.Accepted {
		i.count.RefusedIn++
	}
	v.ID, v.Number = p.ID, p.Number
	if v.Outcome == wire.Accepted && !p.ConfChange && v.Index > i.emitted.index && len(i.answers) < maxAnswers {
		i.answers = append(i.answers, lateAnswer{from, v})
		return
	}
	i.around.post(from, v)
}

// answer sends the waiting answers, except for committed batches: their origins are about
// to hear of the commit.
func (i *inbox) answer() {
	for _, a := range i.answers {
		if a.verdict.Index > i.emitted.index {
			i.around.post(a.to, a.verdict)
		}
	}
	i.answers = i.answers[:0]
}

// check looks for data that a leader must not put into its log, because the log's
// readers cannot decode the data and stop there, or because a gateway has no say in the data.
// The result is a verdict against the proposal, or none, and an error if the proposal is malformed.
func (i *inbox) check(from uint64, p wire.Proposal) (wire.Verdict, error) {
	malformed := func(format string, args ...any) (wire.Verdict, error) {
		reason := fmt.Sprintf(format, args...)
		return wire.Verdict{Outcome: wire.Malformed, Term: i.state.Term, Reason: reason},
			fmt.Errorf("%w: proposal %v from node %d: %s", ErrBadMessage, p.ID, from, reason)
	}
	if p.ID.Origin != from {
		return malformed("proposal %v from node %d", p.ID, from)
	}
	if len(p.Data) > maxEntryBytes {
		return malformed("an entry of %d bytes, the bound is %d", len(p.Data), maxEntryBytes)
	}
	var env envelope
	if p.ConfChange {
		if n := changesIn(p.Data); n > maxChanges {
			return malformed("a configuration change has %d changes at once, the bound is %d", n, maxChanges)
		}
		cc := &pb.ConfChangeV2{}
		if err := proto.Unmarshal(p.Data, cc); err != nil {
			return malformed("configuration change: %v", err)
		}
		var ok bool
		if env, ok = decodeConfContext(cc.GetContext()); !ok {
			return malformed("configuration change without an id")
		}
	} else {
		if n := commandsIn(p.Data); n > maxBatchCommands {
			return malformed("a batch of %d commands, the bound is %d", n, maxBatchCommands)
		}
		var err error
		if env, err = decodeEnvelope(p.Data); err != nil {
			return malformed("%v", err)
		}
	}
	if env.id != p.ID {
		return malformed("proposal %v contains %v", p.ID, env.id)
	}
	if err := i.foreign(from, env.commands); err != nil {
		return wire.Verdict{Outcome: wire.Malformed, Term: i.state.Term, Reason: err.Error()}, nil
	}
	switch applied := i.host.origins.applied(env.id); {
	case applied && i.leads() && p.Term == i.state.Term: // the origin, or its home, is behind: it will meet the batch by this index
		return wire.Verdict{Outcome: wire.Accepted, Index: i.emitted.index, Term: p.Term}, nil
	case applied, env.id.Sequence-env.floor > i.window(from):
		return wire.Verdict{Outcome: wire.Busy, Term: i.state.Term}, nil // until the origin knows more
	}
	return wire.Verdict{}, nil
}

// foreign returns why commands are not taken of a node that is no member: of a gateway, or of a node that was a member a
// moment ago, which is no fault.
func (i *inbox) foreign(from uint64, commands [][]byte) error {
	if members.Has(i.host.conf, from) {
		return nil
	}
	for _, c := range commands {
		if marked.Is(c) {
			return fmt.Errorf("a command begins with %q: such a command says where members are, and who is none any more, and node %d is no member", marked.Mark, from)
		}
		if i.cfg.AdmitFromGateway == nil {
			continue
		}
		if err := i.cfg.AdmitFromGateway(c); err != nil {
			return fmt.Errorf("node %d is no member: %w", from, err)
		}
	}
	return nil
}

// window returns how far a node may go on behind a batch whose fate is open. Each batch in the log may take 4 bytes of the table.
func (i *inbox) window(from uint64) uint64 {
	switch {
	case members.Has(i.host.conf, from):
		return maxWindow
	case uint64(i.host.size)+4*(i.last-min(i.last, i.host.at.index)) > largeTable:
		return smallWindow
	}
	return gatewayWindow
}

// overCredit returns why a leader does not take a proposal from a gateway now, or no verdict.
func (i *inbox) overCredit(from uint64, p wire.Proposal) wire.Verdict {
	if members.Has(i.host.conf, from) {
		return wire.Verdict{}
	}
	if i.host.origins[from] == nil && len(i.host.origins) >= maxOrigins {
		return wire.Verdict{Outcome: wire.Malformed, Term: i.state.Term, Reason: fmt.Sprintf("the group has had entries of %d nodes and gateways, and takes none of others, such as %d: use an id again. A copy of the state, restored as another cluster, has had none", maxOrigins, from)}
	}
	if granted := i.granted[from]; granted > 0 && granted+len(p.Data) > i.cfg.MaxQueueBytes {
		return wire.Verdict{Outcome: wire.Busy, Term: i.state.Term}
	}
	return wire.Verdict{}
}

// grant notes an entry that was appended for a gateway.
func (i *inbox) grant(from uint64, p wire.Proposal) {
	if members.Has(i.host.conf, from) {
		return
	}
	if i.granted == nil {
		i.granted = map[uint64]int{}
	}
	i.granted[from] += len(p.Data)
}

// redeem gives back the credit of an entry.
func (i *inbox) redeem(origin, term uint64, bytes int) {
	if i.granted == nil || term != i.state.Term {
		return
	}
	if left := i.granted[origin] - bytes; left > 0 {
		i.granted[origin] = left
	} else {
		delete(i.granted, origin)
	}
}
