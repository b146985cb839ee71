// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
)

// Message is a message between nodes, of the node From to the node To, for the group Group.
// Its class, 0 to 3, says which messages must not wait behind which: control, append, bulk
// and background. MarshalBinary and UnmarshalBinary are for transports of the user's own;
// what a Body is, is this module's own business.
type Message = wire.Message

// Transport carries messages between the nodes of a cluster, for any number of
// groups. Package transport has one over TCP.
//
// A Transport may have further methods, which a host looks for:
//
//   - HasAddress(node uint64) bool says whether messages for a node can be sent, and does
//     not wait. A host logs a member that it cannot send to, once, and names the member in
//     [Status].Unaddressed and in the errors of calls that time out.
//   - Identity() storage.Identity returns cluster and node. [New] refuses the transport of
//     another node, or of another cluster than the log's.
//   - Backlog(to uint64) (bytes int, known bool) returns how many bytes of appends wait at
//     this node until the network takes them, the system's buffers included, and does not
//     wait. A leader that codes chooses by it how much it sends to whom (see
//     raft.RawNode.QueueHint); without it, the leader goes by what comes back.
//   - SealsLate() says that messages are encoded by [Message.MarshalBinary] or by package
//     transport, which make of coded entries what each receiver is to have as they write
//     them (see raft.Coding.LateSeal). For another transport, the core does, which takes
//     more memory and processor time.
type Transport interface {
	// Join lets r receive the messages to this node in a group. One receiver at a time can
	// join a group.
	Join(group uint64, r Receiver) error
	// Leave ends Join's effect. Calls of the receiver already under way may still end
	// afterwards.
	Leave(group uint64)
	// Send queues messages and returns at once. Messages of one class to one peer keep
	// their order. A dropped message is reported to the receiver of its group.
	Send(messages []Message)
	// SendWait queues a message, waiting until the queue has room. An error says that the peer
	// cannot be reached.
	SendWait(ctx context.Context, m Message) error
}

// lateSealer is a Transport with SealsLate.
type lateSealer interface{ SealsLate() }

// backlogged is a Transport with Backlog.
type backlogged interface {
	Backlog(to uint64) (bytes int, known bool)
}

// Receiver is a group at this node, as a Transport sees it. Its methods may be called from
// several goroutines. A [Host] is a Receiver, and also takes several messages together: see
// [Host.ReceiveNext].
type Receiver interface {
	// Receive takes a message. The transport has made sure that m.From sent it. Receive
	// may wait, unless m is of the class 0, control, and so slow the sender down:
	// connections carry one class each.
	Receive(m Message)
	// Unreachable reports a dropped message or a broken connection to a peer.
	Unreachable(peer uint64)
}

// Config configures a [Host]. StateMachine, Transport, and in Replica the ID and
// the Log, must be set.
type Config struct {
	// Replica configures what the host decides. New sets Applied, HostState
	// and, if it is 0, Boot (from the wall clock).
	Replica ReplicaConfig
	// StateMachine is the replicated state. The host does not close it.
	StateMachine StateMachine
	// Transport may be shared by many hosts. The host does not close it. It must
	// take messages of Replica.MaxCommandBytes and some more.
	Transport Transport

	// TickInterval is the length of a tick; 0 means 100 ms. An election begins
	// after Replica.ElectionTick to twice as many ticks without a leader.
	TickInterval time.Duration
	// DefaultTimeout ends calls whose context has no deadline; 0 means 10 s.
	DefaultTimeout time.Duration
	// ChunkBytes is the size of the pieces that snapshots are sent in; 0 means
	// 256 KiB.
	ChunkBytes int
	// SnapshotTimeout is how long either end of a snapshot waits for a sign of
	// the other; so a state machine must take the next chunk, and end after the
	// last, within it. 0 means 1 minute.
	SnapshotTimeout time.Duration
	// ReceiveBytes bounds the messages that have arrived and were not looked
	// at, for each class; 0 means 64 MiB. Beyond it control messages are
	// dropped, and others wait in the network.
	ReceiveBytes int

	// Recorder, unless nil, is told how long calls and snapshots take. The module
	// github.com/weftraft/weft/metrics has one for Prometheus.
	Recorder Recorder

	// Logger is told what an operator may want to know, also by the core unless
	// that has a logger of its own; nil means silence.
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
	owners := c.checkOwners()
	c = c.withDefaults()
	errs := []error{c.Replica.Validate(), owners}
	bad := func(field string, value any, want string) {
		errs = append(errs, fmt.Errorf("%w: %s is %v, want %s", ErrInvalid, field, value, want))
	}
	if c.StateMachine == nil {
		bad("StateMachine", c.StateMachine, "the replicated state")
	}
	if c.Transport == nil {
		bad("Transport", c.Transport, "a way to the other nodes")
	}
	if c.TickInterval < time.Millisecond {
		bad("TickInterval", c.TickInterval, "1ms or more")
	}
	if l := c.Replica.Leases; l != nil && l.Tick != c.TickInterval {
		bad("Replica.Leases.Tick", l.Tick, fmt.Sprintf("0, or TickInterval (%v)", c.TickInterval))
	}
	if c.DefaultTimeout < 0 {
		bad("DefaultTimeout", c.DefaultTimeout, "0 or more")
	}
	if c.SnapshotTimeout < 0 {
		bad("SnapshotTimeout", c.SnapshotTimeout, "0 or more")
	}
	if c.ChunkBytes < 1 || c.ChunkBytes > replica.MaxCommandBytes {
		bad("ChunkBytes", c.ChunkBytes, fmt.Sprintf("1 to %d", replica.MaxCommandBytes))
	}
	if c.ReceiveBytes < 1 {
		bad("ReceiveBytes", c.ReceiveBytes, "1 or more")
	}
	return errors.Join(errs...)
}
