// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"sync/atomic"

	"github.com/weftraft/weft/rawnode/wire"
)

// Traffic counts what went between this node and a peer in one class, since the
// peer became known. Bytes are those of frames, with their headers.
type Traffic struct {
	SentBytes, SentFrames, SentMessages             uint64
	ReceivedBytes, ReceivedFrames, ReceivedMessages uint64
	Connects                                        uint64 // times this node connected to the peer
}

// Stats are a transport's counters.
type Stats struct {
	// Peers has the traffic with each known node, by class.
	Peers map[uint64][wire.NumClasses]Traffic

	Dropped     uint64 // messages not sent: no room, or no connection
	Unsupported uint64 // messages of kinds that one end does not know
	NoGroup     uint64 // messages for groups that nobody here has joined
	Refused     uint64 // connections refused
	BadFrames   uint64 // connections closed for what they carried
}

type counters struct {
	dropped, unsupported, noGroup, refused, badFrames atomic.Uint64
}

type traffic struct {
	sentBytes, sentFrames, sentMessages             atomic.Uint64
	receivedBytes, receivedFrames, receivedMessages atomic.Uint64
	connects                                        atomic.Uint64
}

func (c *traffic) load() Traffic {
	return Traffic{
		SentBytes: c.sentBytes.Load(), SentFrames: c.sentFrames.Load(), SentMessages: c.sentMessages.Load(),
		ReceivedBytes: c.receivedBytes.Load(), ReceivedFrames: c.receivedFrames.Load(),
		ReceivedMessages: c.receivedMessages.Load(), Connects: c.connects.Load(),
	}
}

// Stats returns the counters.
func (t *TCP) Stats() Stats {
	s := Stats{
		Peers:   map[uint64][wire.NumClasses]Traffic{},
		Dropped: t.count.dropped.Load(), Unsupported: t.count.unsupported.Load(),
		NoGroup: t.count.noGroup.Load(), Refused: t.count.refused.Load(), BadFrames: t.count.badFrames.Load(),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, p := range t.peers {
		var classes [wire.NumClasses]Traffic
		for c := range classes {
			classes[c] = p.traffic[c].load()
		}
		s.Peers[id] = classes
	}
	return s
}
