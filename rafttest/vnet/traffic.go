// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package vnet

import (
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft"
)

// Kind is the purpose of bytes.
type Kind uint8

// The kinds of bytes. A message is of one kind, but for riders, because riders
// are parts of entries.
const (
	Control    Kind = iota // heartbeats, answers, votes, commit indexes
	appendKind             // entries and snapshots
	Rider                  // more units of older entries
	gossipKind             // units between members, and requests for units
	kinds
)

// String returns the kind's name.
func (k Kind) String() string {
	return [...]string{"control", "append", "rider", "gossip"}[k]
}

// Traffic is the bytes and messages sent, by kind.
type Traffic struct {
	// Bytes are the bytes of the messages, as encoded.
	Bytes [kinds]uint64
	// Messages counts the messages.
	Messages uint64
}

// Total returns the bytes of all kinds.
func (t Traffic) Total() (sum uint64) {
	for _, b := range t.Bytes {
		sum += b
	}
	return sum
}

// Plus returns the sum of two.
func (t Traffic) Plus(o Traffic) Traffic {
	for k := range t.Bytes {
		t.Bytes[k] += o.Bytes[k]
	}
	t.Messages += o.Messages
	return t
}

// Minus returns the traffic since o.
func (t Traffic) Minus(o Traffic) Traffic {
	for k := range t.Bytes {
		t.Bytes[k] -= o.Bytes[k]
	}
	t.Messages -= o.Messages
	return t
}

// classes of messages, in the order in which a card sends them.
type class uint8

const (
	control class = iota
	bulk
	gossip
	classes
)

// classify returns how urgent a message is. All appends are bulk, also appends
// without entries: an append that overtakes another would be refused.
func classify(m *pb.Message) class {
	switch m.GetType() {
	case pb.MsgApp, pb.MsgSnap:
		return bulk
	case raft.MsgUnits:
		return gossip
	}
	return control
}

// sizeOf returns the encoded size of a message, and the part for riders.
func sizeOf(m *pb.Message) (k Kind, size, riders int) {
	size = proto.Size(m)
	switch m.GetType() {
	case pb.MsgApp:
		if len(m.GetEntries()) == 0 {
			return Control, size, 0
		}
		return appendKind, size, riderBytes(m)
	case pb.MsgSnap:
		return appendKind, size, 0
	case raft.MsgUnits, raft.MsgUnitsAsk:
		return gossipKind, size, 0
	}
	return Control, size, 0
}

// riderBytes returns how many bytes of an append are for riders: all of a
// carrier, and of other entries what they would not have without riders.
func riderBytes(m *pb.Message) (sum int) {
	for _, e := range m.GetEntries() {
		if data := e.GetData(); ecraft.IsEnvelope(data, 0) {
			h, _, err := ecraft.ParseHeader(data, 0)
			switch {
			case err != nil || len(h.Riders) == 0:
			case h.Kind == ecraft.Carrier:
				sum += len(data)
			default:
				h.Riders = nil
				sum += len(data) - ecraft.SealedLen(h, m.GetTo(), 0, nil)
			}
		}
	}
	return sum
}
