// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weftraft/weft/internal/wire"
)

// dropReason says why a message was not sent.
type dropReason uint8

// The reasons to drop a message. All but dropKind are reported to the message's
// group, as unreachable; dropFull only if nobody will ask for the message.
const (
	dropFull   dropReason = iota // its queue was full
	dropPeer                     // the peer is not known, or has no address
	dropDial                     // the peer could not be reached, lately or just now
	dropBroken                   // waited for a connection that broke
	dropSize                     // fits no frame
	dropKind                     // of a kind not taken by the peer
	dropClosed                   // the transport is closed, or the peer removed
	numDrops                     // how many there are
)

var dropNames = [numDrops]string{"queue full", "no address", "not reached", "connection broken", "too large", "kind not taken", "closed"}

// String returns the reason in words.
func (d dropReason) String() string { return nameOf(dropNames[:], "drop", uint8(d)) }

// refusalReason is the reason for refusing a connection to this node.
type refusalReason uint8

// The reasons to refuse a connection.
const (
	refusedCrowd       refusalReason = iota // there were too many others before its hello was complete
	refusedSilence                          // no complete hello came in time, or the connection broke before
	refusedHello                            // not a hello of a version known here
	refusedPlain                            // one end speaks TLS and the other does not
	refusedCertificate                      // the TLS handshake failed, or the certificate is not believed, or not the peer's
	refusedCluster                          // of another cluster
	refusedNode                             // looks for another node
	refusedPeer                             // the peer is not known here
	refusedClass                            // the class of messages is not known here
	refusedRival                            // two processes run under the peer's id
	numRefusals                             // how many there are
)

var refusalNames = [numRefusals]string{"crowd", "silence", "bad hello", "plain or TLS", "certificate", "other cluster", "other node", "unknown peer", "unknown class", "two processes"}

// String returns the reason in words.
func (r refusalReason) String() string { return nameOf(refusalNames[:], "refusal", uint8(r)) }

func nameOf(names []string, what string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", what, i)
}

// Traffic is the traffic between this node and a peer in one class, since the peer
// became known. Bytes are bytes of frames, with their headers; with TLS, before
// encryption. Fields not marked as a gauge only grow.
type Traffic struct {
	SentBytes    uint64 // written to the network
	SentFrames   uint64 // written completely
	SentMessages uint64 // in the frames

	ReceivedBytes    uint64 // read from the network, in complete frames
	ReceivedFrames   uint64 // with a right checksum
	ReceivedMessages uint64 // handed to their groups
	UnknownMessages  uint64 // of kinds unknown to this node, left out

	Connected    bool   // gauge: there is a connection to the peer
	Connects     uint64 // times this node connected to the peer; all but the first are reconnects
	Breaks       uint64 // connections to the peer that broke
	DialFailures uint64 // failures of this node to connect
	// Error is the last failure to dial or write; empty after a success.
	Error string

	QueueMessages int // gauge: waiting to be sent, or being written
	QueueBytes    int // gauge: their size; at most Config.QueueBytes, or one message
	// Dropped counts unsent messages, by reason: "queue full", "no address", "not
	// reached" (lately or just now), "connection broken", "too large" for a frame, "kind
	// not taken" by the peer, and "closed", the transport or the peer's membership. All
	// but "kind not taken" are reported to the message's group, as unreachable; "queue
	// full" only if nobody will ask for the message. Every reason has a count.
	Dropped map[string]uint64
	// Superseded counts appends taken out of the queue, because their leader had gone
	// back to an earlier place and sends everything from there.
	Superseded uint64
	// QueueTime is the sum over messages of the time in the queue; SentMessages is
	// their number.
	QueueTime time.Duration
	// WriteTime is how long writing took, waiting for the peer to read included.
	WriteTime time.Duration

	Receiving bool   // gauge: there is a connection from the peer
	BadFrames uint64 // connections from the peer closed for their contents
	// BudgetTime is how long frames of the peer waited for its receive budget.
	BudgetTime time.Duration
	// DeliverTime is the time of decoding and of handing messages to groups; if large,
	// mostly waiting for room in the groups' queues.
	DeliverTime time.Duration
}

// Stats are a transport's counters.
type Stats struct {
	// Peers has the traffic with each known node, by class.
	Peers map[uint64][wire.NumClasses]Traffic
	// ReceiveBytes is a gauge: the bytes of frames in memory for each known node.
	ReceiveBytes map[uint64]int

	Dropped     uint64 // messages not sent, for any reason, also to unknown nodes
	Unsupported uint64 // messages of kinds unknown to either end
	NoGroup     uint64 // messages for groups not joined here
	Refused     uint64 // connections refused, for any reason
	BadFrames   uint64 // connections closed for their contents
	// MemoryRefusals counts the BadFrames with a message beyond wire.MaxObjectBytes.
	MemoryRefusals uint64
	// Refusals counts refused connections by reason: "crowd", too many others whose
	// hello was not complete; "silence", no complete hello came in time; "bad hello", of
	// no version known here; "plain or TLS", the ends differ in that; "certificate", it
	// is not believed, or not the peer's; "other cluster"; "other node", the peer wants
	// another one; "unknown peer"; "unknown class" of messages; "two processes" under the peer's id. Every reason has a count.
	Refusals map[string]uint64
	// Strangers is a gauge: connections before their hello.
	Strangers int
	// CertificateErrors counts connections for which the certificate from before
	// was used, because the files of Config.TLS had changed and were no good.
	CertificateErrors uint64
	// CertificateExpiry is when this node's certificate expires, or its authority does; 0 without TLS.
	CertificateExpiry time.Time
}

type counters struct {
	dropped, unsupported, noGroup              atomic.Uint64
	badFrames, memoryRefusals, badCertificates atomic.Uint64
	refusals                                   [numRefusals]atomic.Uint64
}

type traffic struct {
	sentBytes, sentFrames, sentMessages             atomic.Uint64
	receivedBytes, receivedFrames, receivedMessages atomic.Uint64
	unknown, connects, breaks, dialFailures, bad    atomic.Uint64
	superseded                                      atomic.Uint64
	queueTime, writeTime, budgetTime, deliverTime   atomic.Int64 // nanoseconds
	dropped                                         [numDrops]atomic.Uint64
}

func (c *traffic) load() Traffic {
	t := Traffic{
		Dropped:   make(map[string]uint64, numDrops),
		SentBytes: c.sentBytes.Load(), SentFrames: c.sentFrames.Load(), SentMessages: c.sentMessages.Load(),
		ReceivedBytes: c.receivedBytes.Load(), ReceivedFrames: c.receivedFrames.Load(), ReceivedMessages: c.receivedMessages.Load(),
		UnknownMessages: c.unknown.Load(), Connects: c.connects.Load(), Breaks: c.breaks.Load(), DialFailures: c.dialFailures.Load(),
		BadFrames: c.bad.Load(), Superseded: c.superseded.Load(), QueueTime: time.Duration(c.queueTime.Load()), WriteTime: time.Duration(c.writeTime.Load()),
		BudgetTime: time.Duration(c.budgetTime.Load()), DeliverTime: time.Duration(c.deliverTime.Load()),
	}
	for i := range c.dropped {
		t.Dropped[dropNames[i]] = c.dropped[i].Load()
	}
	return t
}

// Stats returns the counters.
func (t *TCP) Stats() Stats {
	s := Stats{
		Refusals: make(map[string]uint64, numRefusals),
		Peers:    map[uint64][wire.NumClasses]Traffic{}, ReceiveBytes: map[uint64]int{},
		Dropped: t.count.dropped.Load(), Unsupported: t.count.unsupported.Load(), NoGroup: t.count.noGroup.Load(),
		BadFrames: t.count.badFrames.Load(), MemoryRefusals: t.count.memoryRefusals.Load(), Strangers: t.strangers.Len(), CertificateErrors: t.count.badCertificates.Load(),
	}
	for i := range t.count.refusals {
		n := t.count.refusals[i].Load()
		s.Refusals[refusalNames[i]] = n
		s.Refused += n
	}
	if t.keys != nil {
		c, _ := t.keys.Current() // an error is for the next connection to count
		s.CertificateExpiry = c.NotAfter
	}
	t.mu.Lock() // for incoming
	defer t.mu.Unlock()
	for id, p := range *t.peers.Load() {
		var classes [wire.NumClasses]Traffic
		for c := range classes {
			classes[c] = p.traffic[c].load()
			classes[c].Receiving = p.incoming[c] != nil
			if l := p.sending[c].Load(); l != nil {
				l.gauges(&classes[c])
			}
		}
		s.Peers[id] = classes
		s.ReceiveBytes[id] = p.receive.inUse()
	}
	return s
}
