// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/weftraft/weft/ecraft/adaptive"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
)

// Message is a message between nodes, from the node From to the node To, for the group Group. Its
// class, 0 to 3, is control, append, bulk or background: a message must not wait behind messages of
// a higher class. MarshalBinary and UnmarshalBinary are for transports of the user's own; the
// contents of Body are internal to this module.
type Message = wire.Message

// Transport carries messages between the nodes of a cluster, for any number of groups. Package
// transport has a Transport over TCP.
//
// A Transport may have further methods, for which a host looks:
//
//   - HasAddress(node uint64) bool reports whether messages for a node can be sent, and does
//     not wait. A host logs once each member without an address, and names the member in
//     [Status].Unaddressed and in the errors of calls that time out.
//   - Identity() storage.Identity returns cluster and node. [New] refuses the transport of
//     another node, or of another cluster than the log's.
//   - Backlog(to uint64) (bytes int, known bool) returns the bytes of appends that wait at
//     this node until the network takes them, the system's buffers included, and does not
//     wait. A leader with coding asks before it appends a large entry, and uses the backlog to
//     choose the amount sent to each member (see raft.RawNode.QueueHint); without Backlog, the
//     leader uses the acknowledgements.
//   - MaxMessageBytes() int returns how large a message may be. [New] refuses a transport whose bound is below a
//     command, a batch, an append or a chunk with 1 MiB around it: the transport would drop the first such entry
//     each time that it is sent, and the group would commit nothing behind it.
//   - SealsLate() promises that messages are encoded by [Message.MarshalBinary] or by package
//     transport, which write each coded entry in the form of its receiver (see
//     raft.Coding.LateSeal). For another transport the core makes each form, at the cost of
//     more memory and processor time.
type Transport interface {
	// Join lets r receive the messages to this node in a group. A group has at most one receiver at
	// a time.
	Join(group uint64, r Receiver) error
	// Leave ends Join's effect. Calls of the receiver already under way may still end
	// afterwards.
	Leave(group uint64)
	// Send queues messages and returns at once. Messages of one class to one peer keep their order.
	// The transport reports a dropped message to the receiver of the message's group.
	Send(messages []Message)
	// SendWait waits until the queue has room, and queues a message. An error says that the peer
	// cannot be reached.
	SendWait(ctx context.Context, m Message) error
}

// lateSealer is a Transport with SealsLate.
type lateSealer interface{ SealsLate() }

// backlogged is a Transport with Backlog.
type backlogged interface {
	Backlog(to uint64) (bytes int, known bool)
}

// Receiver is a group at this node, as a Transport sees the group. The methods may be called from
// several goroutines. A [Host] is a Receiver, and also takes several messages together: see
// [Host.ReceiveNext].
type Receiver interface {
	// Receive takes a message. The transport has verified that m.From is the sender. Receive may
	// wait, unless m is of the class 0, control, and so slow the sender down: each connection
	// carries one class.
	Receive(m Message)
	// Unreachable reports a dropped message or a broken connection to a peer.
	Unreachable(peer uint64)
}

// Config configures a [Host]. StateMachine, Transport, and in Replica the ID and
// the Log, must be set.
type Config struct {
	// Replica configures the decisions of the host. If its Boot is 0, New sets Boot from the wall clock.
	Replica ReplicaConfig
	// StateMachine is the replicated state. The host does not close it.
	StateMachine StateMachine
	// Transport may be shared by many hosts. The host does not close the transport. A transport must accept
	// messages a little larger than Replica.MaxCommandBytes, MaxBatchBytes and MaxAppendBytes, and ChunkBytes.
	Transport Transport

	// TickInterval is the length of a tick, 1 ms to 1 h; 0 means 100 ms. An election begins
	// after Replica.ElectionTick to twice as many ticks without a leader.
	TickInterval time.Duration
	// DefaultTimeout, at most a year, ends calls whose context has no deadline; 0 means 10 s.
	DefaultTimeout time.Duration
	// ChunkBytes is the size of the pieces in which snapshots are sent, at most 48 MiB; 0 means 256 KiB.
	ChunkBytes int
	// SnapshotTimeout is the time for which either end of a snapshot waits for the other end: a
	// state machine must take the next chunk within SnapshotTimeout, and return within
	// SnapshotTimeout after the last chunk. At most a year; 0 means 1 minute.
	SnapshotTimeout time.Duration
	// CatchUp, unless nil, bounds the bytes of snapshots and of missed entries under way over all groups that share it, most urgent first:
	// see [NewCatchUp]. A group alone sends at most two snapshots at a time, and takes one.
	CatchUp *CatchUp
	// Trials, unless nil, are shared by all groups of a process: together they find out whether coding pays. Without them
	// each group tries for itself, and among many groups such a trial shows little.
	Trials *adaptive.Trials
	// Names has this node, where it leads, send a follower a name in the place of each batch of 512
	// bytes or more that the follower has sent to it: a length and a checksum. The follower puts its
	// own copy of the batch in the name's place, or asks for the bytes. So a leader of N members whose
	// clients are spread evenly sends (N-1)(1-1/N) bytes for each byte of a command, not N-1. Names
	// serve entries that are not coded, go only to nodes that have announced that they know names,
	// and need package transport, or another [Transport] that tells what nodes have announced. A
	// follower needs no setting.
	//
	// Relays need no setting but zones, which the transport announces: see "Zones" in the package's documentation.
	Names bool
	// ReceiveBytes bounds the bytes of arrived messages that wait for a turn, for each class; 0
	// means 64 MiB. Control messages beyond the bound are dropped, and other messages wait in the
	// network.
	ReceiveBytes int

	// Recorder, unless nil, receives the durations of calls and snapshots. The module
	// github.com/weftraft/weft/rawnode/metrics has a Recorder for Prometheus.
	Recorder Recorder

	// Logger gets the log lines for operators, and also the lines of the core unless Replica.Logger
	// is set; nil means silence.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Replica.Logger == nil && c.Logger != nil {
		c.Replica.Logger = slogLogger{c.Logger.With("node", c.Replica.ID, "group", c.Replica.Group)}
	}
	c.Replica = ReplicaConfig(c.Replica.settings().WithDefaults())
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&c.TickInterval, 100 * time.Millisecond}, {&c.DefaultTimeout, 10 * time.Second}, {&c.SnapshotTimeout, time.Minute}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	c.leaseDefaults()
	if c.ChunkBytes == 0 {
		c.ChunkBytes = 256 << 10
	}
	if c.ReceiveBytes == 0 {
		c.ReceiveBytes = 64 << 20
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate returns an error that names every mistake, or nil.
func (c Config) Validate() error {
	if isNil(c.Replica.Log) {
		c.Replica.Log = nil // a nil pointer is none, either
	}
	if isNil(c.Transport) {
		c.Transport = nil
	}
	owners := c.checkOwners()
	c = c.withDefaults()
	errs := []error{c.Replica.Validate(), owners}
	bad := func(field string, value any, want string) {
		errs = append(errs, fmt.Errorf("%w: %s is %v, want %s", ErrInvalid, field, value, want))
	}
	if isNil(c.StateMachine) {
		bad("StateMachine", c.StateMachine, "the replicated state")
	}
	if isNil(c.Transport) {
		bad("Transport", c.Transport, "a way to the other nodes")
	}
	messageMistakes(bad, c.Transport, partOf{"Replica.MaxCommandBytes", c.Replica.MaxCommandBytes}, partOf{"Replica.MaxBatchBytes", c.Replica.MaxBatchBytes},
		partOf{"Replica.MaxAppendBytes", c.Replica.MaxAppendBytes}, partOf{"ChunkBytes", c.ChunkBytes})
	timeMistakes(bad, c.Replica.ElectionTick, c.TickInterval, c.DefaultTimeout, c.SnapshotTimeout)
	if l := c.Replica.Leases; l != nil && l.Tick != c.TickInterval {
		bad("Replica.Leases.Tick", l.Tick, fmt.Sprintf("0, or TickInterval (%v)", c.TickInterval))
	}
	if c.ChunkBytes < 1 || c.ChunkBytes > replica.MaxCommandBytes {
		bad("ChunkBytes", c.ChunkBytes, fmt.Sprintf("1 to %d", replica.MaxCommandBytes))
	}
	if c.ReceiveBytes < 1 {
		bad("ReceiveBytes", c.ReceiveBytes, "1 or more")
	}
	return errors.Join(errs...)
}

// Bounds with which no sum of times overflows, nor an election timeout times a small number.
const (
	maxTick     = time.Hour
	maxElection = 100_000 * maxTick
	maxTimeout  = 365 * 24 * time.Hour
)

// timeMistakes names times that are too long.
func timeMistakes(bad func(field string, value any, want string), election int, tick, call, snapshot time.Duration) {
	if tick > 0 && time.Duration(election) > maxElection/tick {
		bad("ElectionTick", election, fmt.Sprintf("at most %d ticks of %v", maxElection/tick, tick))
	}
	if tick < time.Millisecond || tick > maxTick {
		bad("TickInterval", tick, fmt.Sprintf("1ms to %v", maxTick))
	}
	if call < 0 || call > maxTimeout {
		bad("DefaultTimeout", call, fmt.Sprintf("0 to %v", maxTimeout))
	}
	if snapshot < 0 || snapshot > maxTimeout {
		bad("SnapshotTimeout", snapshot, fmt.Sprintf("0 to %v", maxTimeout))
	}
}

// partOf is a field that bounds the largest part of a message.
type partOf struct {
	field string
	bytes int
}

// messageRoom is more than a message has around its largest part: numbers, and the lengths of many small commands.
const messageRoom = 1 << 20

// largestPart returns how large a part of a message may be, if the transport says so.
func largestPart(t Transport) (bytes int, known bool) {
	if s, ok := t.(interface{ MaxMessageBytes() int }); ok && !isNil(t) {
		return s.MaxMessageBytes() - messageRoom, true
	}
	return 0, false
}

// messageMistakes names what does not fit a message of the transport.
func messageMistakes(bad func(field string, value any, want string), t Transport, parts ...partOf) {
	most, known := largestPart(t)
	for _, p := range parts {
		if known && p.bytes > most {
			bad(p.field, p.bytes, fmt.Sprintf("at most %d: the transport takes messages of at most %d bytes", most, most+messageRoom))
		}
	}
}

// isNil reports whether v is nil, or an interface around a nil pointer.
func isNil(v any) bool {
	r := reflect.ValueOf(v)
	return v == nil || r.Kind() == reflect.Pointer && r.IsNil()
}
