// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weftraft/weft/internal/address"
	"github.com/weftraft/weft/internal/book"
	"github.com/weftraft/weft/internal/invalid"
	"github.com/weftraft/weft/internal/marked"
	"github.com/weftraft/weft/internal/placement"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/session"
	"github.com/weftraft/weft/rawnode/transport"
	"github.com/weftraft/weft/storage"
)

// Options configures a [Node]. Cluster, ID, Dir, and Listen or Peers must be set; of a gateway, Cluster, ID, Listen and Peers.
type Options struct {
	// Cluster is a number of the user's own, 1 or more. Nodes of different clusters refuse each
	// other.
	Cluster uint64
	// ID is the node's identity in all groups, 1 to [MaxID]. An id is used once: a node that was
	// removed, or has lost its directory, comes back under another id.
	ID uint64
	// Dir is the directory for the log and the addresses of members, made if there is none. It
	// belongs to this node as long as the node is a member.
	Dir string
	// Listen is the address to listen at, host:port; empty means Peers[ID].
	Listen string
	// Advertise is the address at which other nodes reach this one; empty means Peers[ID], or,
	// without one, the address of the listener. It is replicated: see [Group.SetAddress].
	Advertise string
	// Peers are the addresses of the first members, this node among them, and the same at each
	// of these nodes. A group that has no log yet begins with these members
	// ([FirstMembers] names others). Empty means that this node is alone. For a node that joins, Peers are
	// members to ask. Replicated addresses are newer than Peers, unless Peers has changed
	// since the last start.
	Peers map[uint64]string
	// Gateway says that this is no node, but a gateway: a process without a replica, log or directory, whose
	// groups ([Node.Group], with nil) send commands to the leader and queries to a replica, in batches. Its ID is that of no node, and is used
	// again after a restart. Peers are nodes to ask. Listen is where nodes reach the gateway, or Advertise, if
	// that is another address.
	Gateway bool
	// Join says that this node begins no group, and waits to be added.
	Join bool
	// TLS names the files by which nodes prove their identity; empty means that a node's word is
	// believed.
	TLS TLS

	// TickInterval is the clock of all groups, 1 ms to 1 h; 0 means 100 ms.
	TickInterval time.Duration
	// ElectionTicks is the election timeout, 2 to 100,000 ticks; 0 means 10, so a second by default. An election begins after
	// one to two election timeouts without a word from the leader, after little more than one if the leader's process has
	// ended. All nodes should have the same TickInterval and ElectionTicks, and so should gateways, which leave a home that is
	// silent for an election timeout. Nodes are compared in units of it ([rawnode.Placement]), so [Configure] should set no other.
	ElectionTicks int
	// BudgetBytes bounds the commands that wait, over all groups, and the entries that arrive while the node cannot write; 0
	// means 256 MiB. Commands beyond the bound are refused with [ErrOverloaded], and a command that is larger than the bound
	// with [ErrTooLarge].
	BudgetBytes int64
	// CatchUpBytes bounds the bytes of snapshots and of missed entries under way, over all groups, once for those that the node sends and
	// once for those that it takes; 0 means 64 MiB. The most urgent are first: see [rawnode.CatchUp].
	CatchUpBytes int64
	// Balance is the time between two looks at which node leads how many groups, 1 ms or more; 0
	// means 5 s, and less than 0 never.
	Balance time.Duration
	// LeaderWeight is the node's weight as a leader, 1 to 1000; 0 means 100, and less than 0 the weight 0: the
	// node leads only if no other member can. A leader hands over to a member that is faster, or is as fast and has a
	// larger weight: see [rawnode.Placement]. [Node.SetLeaderWeight] changes the weight, and
	// [Group.SetLeaderWeight] that of one group.
	LeaderWeight int
	// Zone is where the node stands, such as a data centre; empty: not said. Where members have zones, a leader sends the
	// data of a whole entry of 512 bytes and more once into each other zone, and a member there passes it on; units of coded
	// entries come into a zone once from the others. A
	// gateway with a zone rather has a home there. At most 64 bytes. It may change at a restart.
	Zone string
	// Metrics, unless nil, is told what the node and its groups do: for Prometheus a *metrics.Set.
	Metrics Metrics `json:"-"`
	// Calls, unless nil, is called when a group is opened, and returns what [Group.Propose] and
	// [Group.Read] call in place of the group's host: for OpenTelemetry the result of tracing.Wrap. At a gateway
	// [Group.Query] is the read, and the context of the call must reach the given Calls.
	Calls func(group uint64, host Calls) Calls `json:"-"`
	// ExitAfterHang ends the process, with status 1 and a line in Logger, when writes to the log wait
	// and none has ended for so long: the disk hangs, and a supervisor can start the node elsewhere.
	// A minute is usual, 1 ms the least; 0 means never. The group goes on without the node in the meantime.
	ExitAfterHang time.Duration
	// ConfigureLog and ConfigureTransport, unless nil, change settings of the log and of the transport, except
	// for those that the node sets: who the node is, its recorder, and, of the transport, Listen,
	// Peers, Zone and TLS. With a Listener of the transport, Listen is not listened at. See [Configure] for
	// the settings of a group.
	ConfigureLog       func(*storage.Options)  `json:"-"`
	ConfigureTransport func(*transport.Config) `json:"-"`
	// Logger is told what an operator may want to know; nil means silence. Lines have the field part: log,
	// transport, balancer or host, unless they are of the node itself.
	Logger *slog.Logger
}

// TLS names PEM files. When a file changes, the next connection uses the new one.
type TLS struct {
	Cert string // the node's certificate, and intermediates behind it, if any
	Key  string // its private key
	CA   string // the authorities whose certificates are believed
}

// Bounds of options.
const (
	// MaxID is the highest id of a node.
	MaxID = book.MaxID
	// MaxAddressBytes bounds an address.
	MaxAddressBytes = address.MaxBytes

	defaultTick     = 100 * time.Millisecond
	maxTick         = time.Hour
	defaultElection = 10 // ticks
	maxElection     = 100_000
	defaultBudget   = 256 << 20
	defaultCatchUp  = 64 << 20
	defaultBalance  = 5 * time.Second
)

func (o Options) withDefaults() Options {
	o.Peers = maps.Clone(o.Peers)
	if o.Listen == "" {
		o.Listen = o.Peers[o.ID]
	}
	if o.Advertise == "" {
		o.Advertise = o.Peers[o.ID]
	}
	if o.TickInterval == 0 {
		o.TickInterval = defaultTick
	}
	if o.ElectionTicks == 0 {
		o.ElectionTicks = defaultElection
	}
	if o.BudgetBytes == 0 {
		o.BudgetBytes = defaultBudget
	}
	if o.CatchUpBytes == 0 {
		o.CatchUpBytes = defaultCatchUp
	}
	if o.Balance == 0 {
		o.Balance = defaultBalance
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Validate returns an error that names every mistake, or nil.
func (o Options) Validate() error {
	o = o.withDefaults()
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, invalid.Errorf("Options."+format, args...)) }
	if o.Cluster == 0 {
		bad("Cluster is 0, want 1 or more, the same at all nodes")
	}
	if o.ID == 0 || o.ID > MaxID {
		bad("ID is %d, want 1 to %d", o.ID, uint64(MaxID))
	}
	if o.Dir == "" && !o.Gateway {
		bad("Dir is empty, want a directory of this node's own")
	}
	if o.Listen == "" {
		bad("Listen is empty, and so is Peers[%d]: want an address such as 127.0.0.1:7000", o.ID)
	} else if _, _, err := net.SplitHostPort(o.Listen); err != nil {
		bad("Listen is %q, want host:port: %w", o.Listen, err)
	}
	if o.Advertise != "" {
		if err := address.Check(o.Advertise); err != nil {
			bad("Advertise: %w", err)
		}
		for _, id := range slices.Sorted(maps.Keys(o.Peers)) {
			if !o.Join && id != o.ID && o.Peers[id] == o.Advertise { // a node that joins may replace another
				bad("Advertise is %s, and so is Peers[%d]: want an address for each node", o.Advertise, id)
			}
		}
	}
	if o.Gateway {
		errs = append(errs, o.validateGateway()...)
	} else {
		errs = append(errs, o.validatePeers()...)
	}
	if o.TLS != (TLS{}) && (o.TLS.Cert == "" || o.TLS.Key == "" || o.TLS.CA == "") {
		bad("TLS is %+v, want all three files, or none", o.TLS)
	}
	if o.TickInterval < time.Millisecond || o.TickInterval > maxTick {
		bad("TickInterval is %v, want 1ms to %v", o.TickInterval, maxTick)
	}
	if o.ElectionTicks < 2 || o.ElectionTicks > maxElection {
		bad("ElectionTicks is %d, want 2 to %d, or 0 for %d", o.ElectionTicks, maxElection, defaultElection)
	}
	if o.ExitAfterHang != 0 && o.ExitAfterHang < time.Millisecond { // a number without a unit is nanoseconds
		bad("ExitAfterHang is %v, want 1ms or more, or 0 for never", o.ExitAfterHang)
	}
	if o.Balance > 0 && o.Balance < time.Millisecond {
		bad("Balance is %v, want 1ms or more, or less than 0 for never", o.Balance)
	}
	if o.LeaderWeight > placement.MaxWeight {
		bad("LeaderWeight is %d, want at most %d", o.LeaderWeight, placement.MaxWeight)
	}
	if len(o.Zone) > address.MaxZoneBytes {
		bad("Zone is %d bytes long, want at most %d", len(o.Zone), address.MaxZoneBytes)
	}
	if o.BudgetBytes < 0 {
		bad("BudgetBytes is %d, want 0 or more", o.BudgetBytes)
	}
	if o.CatchUpBytes < 0 {
		bad("CatchUpBytes is %d, want 0 or more", o.CatchUpBytes)
	}
	return errors.Join(errs...)
}

// electionTimeout is the least time without a leader before an election.
func (o Options) electionTimeout() time.Duration {
	return time.Duration(o.ElectionTicks) * o.TickInterval
}

func (o Options) validatePeers() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, invalid.Errorf("Options.Peers"+format, args...)) }
	seen := map[string]uint64{}
	for _, id := range slices.Sorted(maps.Keys(o.Peers)) {
		at := o.Peers[id]
		if id == 0 || id > MaxID {
			bad(" has the id %d (%s), want 1 to %d", id, at, uint64(MaxID))
		}
		if err := address.Check(at); err != nil {
			bad("[%d]: %w", id, err)
		} else if other, twice := seen[at]; twice {
			bad("[%d] and Peers[%d] are both %s: want an address for each node", other, id, at)
		}
		seen[at] = id
	}
	_, named := o.Peers[o.ID]
	switch {
	case o.Join && len(o.Peers) == 0:
		bad(" is empty: a node that joins needs the address of at least one member")
	case o.Join && named && len(o.Peers) == 1:
		bad(" has this node (%d) alone: a node that joins needs the address of at least one member", o.ID)
	case !o.Join && len(o.Peers) > 0 && !named:
		bad(" are %v, this node (%d) is not among them: name the same first members at all of them, or set Join if this node is to be added to a group that runs",
			slices.Sorted(maps.Keys(o.Peers)), o.ID)
	}
	return errs
}

// book returns what the book is told.
func (o Options) book() book.Config {
	return book.Config{Cluster: o.Cluster, Node: o.ID, Dir: o.Dir, Peers: o.Peers, Logger: o.Logger}
}

// part returns the logger of a part of the node.
func (o Options) part(name string) *slog.Logger { return o.Logger.With("part", name) }

// transportConfig returns what the transport is told.
func (o Options) transportConfig(peers map[uint64]string) transport.Config {
	c := transport.Config{Logger: o.part("transport")}
	if o.ConfigureTransport != nil {
		o.ConfigureTransport(&c)
	}
	c.Cluster, c.Node, c.Gateway, c.Listen, c.Peers, c.Zone = o.Cluster, o.ID, "", o.Listen, peers, o.Zone
	c.TLS.Cert, c.TLS.Key, c.TLS.CA = o.TLS.Cert, o.TLS.Key, o.TLS.CA
	return c
}

// logOptions returns what the log is told.
func (o Options) logOptions() storage.Options {
	logger := o.part("log")
	s := storage.Options{Logf: func(format string, args ...any) { logger.Info(fmt.Sprintf(format, args...), "node", o.ID) }}
	if o.ExitAfterHang > 0 {
		s.HungAfter, s.Hung = o.ExitAfterHang, func() { os.Exit(1) }
	}
	if o.ConfigureLog != nil {
		o.ConfigureLog(&s)
	}
	_, err := os.Stat(filepath.Join(o.Dir, book.FileName))
	s.Begun = s.Begun || !errors.Is(err, os.ErrNotExist) // a log is there before a book is
	s.Identity, s.Recorder = storage.Identity{Cluster: o.Cluster, Node: o.ID}, o.recordLog()
	return s
}

// Metrics is told what a node and its groups do: *metrics.Set, of the module
// github.com/weftraft/weft/rawnode/metrics, is one. The recorders get the durations of syncs, calls and
// snapshots; numbers that a part counts itself are asked of the node.
type Metrics interface {
	// Log returns the recorder of the log, and Host the one of a group. A group that is opened again
	// may get the same recorder.
	Log() storage.Recorder
	Host(group uint64) rawnode.Recorder
	// NodeOpened is called when a node is open, and closed when the node has closed.
	NodeOpened(n *Node) (closed func())
}

// Calls are the calls of a group that can be traced: see [Options.Calls].
type Calls interface {
	Propose(ctx context.Context, command []byte) (Result, error)
	ReadWith(ctx context.Context, o rawnode.ReadOptions) (ReadResult, error)
}

// recordLog returns the recorder of the log, or nil.
func (o Options) recordLog() storage.Recorder {
	if o.Metrics == nil {
		return nil
	}
	return o.Metrics.Log()
}

// recordGroup returns the recorder of a group, or nil.
func (o Options) recordGroup(id uint64) rawnode.Recorder {
	if o.Metrics == nil {
		return nil
	}
	return o.Metrics.Host(id)
}

// wrap returns the calls of a group's host, as Options.Calls wants these.
func (o Options) wrap(group uint64, host Calls) (Calls, error) {
	if o.Calls == nil {
		return host, nil
	}
	wrapped := o.Calls(group, host)
	if invalid.IsNil(wrapped) {
		return nil, invalid.Errorf("Options.Calls returned nil for group %d, want the calls that it was given, or others around these", group)
	}
	return wrapped, nil
}

// GroupOption is a setting of one group.
type GroupOption func(*groupConfig)

// groupConfig is what options set.
type groupConfig struct {
	host         rawnode.Config
	first        []uint64
	named        bool // first was set
	joins        bool
	peek         bool            // for sessions alone: the host is not configured
	sessions     *session.Limits // of Replicate
	compareEvery time.Duration
	errs         []error
}

// FirstMembers names the first voters of a new group, if they are fewer than
// [Options.Peers]. Every first voter must name the same ones. A group that has a log ignores
// the option.
func FirstMembers(ids ...uint64) GroupOption {
	return func(c *groupConfig) { c.first, c.named = slices.Clone(ids), true }
}

// Joining says that this node begins no group of this id, and waits to be added.
func Joining() GroupOption { return func(c *groupConfig) { c.joins = true } }

// CompareEvery sets how often the replicas of the group are compared, if the state machine is
// [Comparable]: 1 ms or more; 0 means 1 min, and less than 0 never. The leader's setting counts. Nothing is compared
// while there are no commands, and after a comparison for which the state was read for long, the leader
// waits 100 times as long.
func CompareEvery(interval time.Duration) GroupOption {
	return func(c *groupConfig) {
		if c.compareEvery = interval; interval > 0 && interval < time.Millisecond { // a number without a unit is nanoseconds
			c.errs = append(c.errs, invalid.Errorf("CompareEvery is %v, want 1ms or more, 0 for 1m, or less than 0 for never", interval))
		}
	}
}

// Configure lets f change any setting of the group's host, except for log, transport, state machine, first
// members, and who the node is.
func Configure(f func(*rawnode.Config)) GroupOption {
	return func(c *groupConfig) {
		if f == nil {
			c.errs = append(c.errs, invalid.Errorf("Configure got nil, want a function"))
			return
		}
		if c.peek {
			return
		}
		was := c.host
		f(&c.host)
		is := &c.host
		for _, set := range []struct {
			name    string
			changed bool
		}{
			{"Replica.ID", is.Replica.ID != was.Replica.ID},
			{"Replica.Group", is.Replica.Group != was.Replica.Group},
			{"Replica.Peers", !slices.Equal(is.Replica.Peers, was.Replica.Peers)},
			{"Replica.Log", is.Replica.Log != was.Replica.Log},
			{"StateMachine", is.StateMachine != was.StateMachine},
			{"Transport", is.Transport != was.Transport},
		} {
			if set.changed {
				c.errs = append(c.errs, invalid.Errorf("Configure changed %s, which the node sets", set.name))
			}
		}
	}
}

// hideOwnCommands keeps this package's commands, which write no key, from the user's Leases.Spans.
func (c *groupConfig) hideOwnCommands() {
	l := c.host.Replica.Leases
	if l == nil || l.Spans == nil {
		return
	}
	own := *l
	own.Spans = func(command []byte) []leases.Span {
		if marked.Is(command) {
			return []leases.Span{} // not nil, which is every key
		}
		return l.Spans(command)
	}
	c.host.Replica.Leases = &own
}

// take takes the options of a group.
func (c *groupConfig) take(group uint64, options []GroupOption) error {
	for i, option := range options {
		if option == nil {
			return invalid.Errorf("option %d of %d for group %d is nil", i+1, len(options), group)
		}
		option(c)
	}
	return errors.Join(c.errs...)
}

// firstMembers returns whom the group begins with if it has no log, or nobody.
func (c *groupConfig) firstMembers(o Options) ([]uint64, error) {
	switch {
	case c.joins && c.named:
		return nil, invalid.Errorf("FirstMembers %v and Joining contradict each other: a node that joins begins nothing", c.first)
	case c.joins || o.Join && !c.named:
		return nil, nil
	case !c.named && len(o.Peers) == 0:
		return []uint64{o.ID}, nil
	case !c.named:
		return slices.Sorted(maps.Keys(o.Peers)), nil
	case slices.ContainsFunc(c.first, func(id uint64) bool { return id == 0 || id > MaxID }):
		return nil, invalid.Errorf("FirstMembers are %v, want ids of 1 to %d", c.first, uint64(MaxID))
	case len(slices.Compact(slices.Sorted(slices.Values(c.first)))) < len(c.first):
		return nil, invalid.Errorf("FirstMembers are %v, want each id once", c.first)
	case !slices.Contains(c.first, o.ID):
		return nil, invalid.Errorf("FirstMembers %v lack this node (%d): name the same first members at all of them, or open the group with Joining", c.first, o.ID)
	}
	return c.first, nil
}

// Comparable is an optional interface of a [StateMachine] whose replicas the group compares in the
// background: the commands and their results, and a sum of the state, at one index of the log at all
// members. [CompareEvery] says how often. The states of packages state and state/pebble, and so of
// [Replicate], are Comparable.
//
// Results of commands must then be the same at all replicas: numbers, texts, errors by their texts,
// and slices, arrays and structs of these are compared. A difference is logged as an error, is in
// [State].Differs at all nodes, and in the metric weft_group_differs. A replica whose state, not only a result, differs from
// that of the majority is put out of service: the group fails at that node with [ErrDiffers], and is
// not opened there again. The member is then replaced: see docs/service.md.
type Comparable interface {
	// Digest sets the present state aside, at little cost, and returns a function that sums it up:
	// equal states have equal sums at all replicas, and different states most likely different ones.
	// Digest is called between two calls of Apply, by the same goroutine; sum is called once, by
	// another goroutine, while Apply goes on, and returns soon after ctx has ended. Without a sum,
	// nil, results alone are compared.
	Digest() (sum func(ctx context.Context) (uint64, error), err error)
}

// Numbered is an optional interface of a [StateMachine] that numbers the commands of the log, for example to
// give clients a revision. This package has a few commands of its own in the log. In the place of each
// of them, Apply of such a state gets an empty command, whose result is left out: so the numbers are
// the same at members that run the state below package rawnode, as during an upgrade from there.
type Numbered interface {
	// NumbersCommands reports whether the state numbers commands. The answer is always the same.
	NumbersCommands() bool
}

// Sessions gives a group of [Replicate] sessions of clients: a command that a client proposes again,
// because the first try ended in [ErrUnknown] or the connection broke, takes effect once, at whatever
// node. Each command of the group then has an envelope, also one outside any session: a client opens
// a session with state.OpenSession, whose result is the session's id, numbers its commands, puts
// each into state.InSession, and repeats these bytes until there is a result. Results of commands
// in sessions must be nil, bool, int, int64, uint64, or []byte or string of at most 1 MiB.
//
// All members must have the same limits, from the group's first command on. Members with other limits take
// nothing from each other ([ErrSettings]), and a state is not opened with other limits than before
// ([state.ErrLimits]).
func Sessions(limits session.Limits) GroupOption {
	return func(c *groupConfig) { c.sessions = &limits }
}

// sessionsOf returns the limits of sessions that options set, or nil.
func sessionsOf(options []GroupOption) *session.Limits {
	c := groupConfig{peek: true}
	for _, option := range options {
		if option != nil { // a nil option is refused when the group is opened
			option(&c)
		}
	}
	return c.sessions
}

// ReadOption says how fresh the state must be that a read sees, or which keys the read looks
// at. Without options a read is linearizable. Of several policies the last counts.
type ReadOption func(*rawnode.ReadOptions)

func policy(p rawnode.ReadPolicy) ReadOption {
	return func(o *rawnode.ReadOptions) { o.Policy = p }
}

// AtResponder is [rawnode.AtResponder]: linearizable, and answered here without a message
// if this node has a lease, as without options.
func AtResponder() ReadOption { return policy(rawnode.AtResponder{}) }

// LeaderLease is [rawnode.LeaderLease]: linearizable, and the leader vouches.
func LeaderLease() ReadOption { return policy(rawnode.LeaderLease{}) }

// Quorum is [rawnode.QuorumRead]: linearizable, without the leader.
func Quorum() ReadOption { return policy(rawnode.QuorumRead{}) }

// Stale is [rawnode.BoundedStaleness]: everything that was acknowledged up to age, more than 0,
// before the read.
func Stale(age time.Duration) ReadOption { return policy(rawnode.BoundedStaleness{Max: age}) }

// Local is [rawnode.Local]: what this node has applied, however old.
func Local() ReadOption { return policy(rawnode.Local{}) }

// Policy is any policy of package rawnode.
func Policy(p rawnode.ReadPolicy) ReadOption { return policy(p) }

// Keys says which keys a read looks at: see [rawnode.ReadOptions].
func Keys(spans ...leases.Span) ReadOption {
	return func(o *rawnode.ReadOptions) { o.Spans = append(o.Spans, spans...) }
}
