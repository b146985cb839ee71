// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/placement"
	"github.com/weftraft/weft/internal/silent"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// Config configures a [Replica]. ID and Log must be set; every other field has a
// useful zero value. Sizes are in bytes.
type Config struct {
	Settings

	// Applied and HostState are the results of the state machine's Load.
	Applied   uint64
	HostState []byte

	// Resolve and Bundle, unless nil, let messages travel in another form than
	// the core's. MaxUnresolvedBytes bounds the memory of messages that wait to be
	// resolved; 0 means 32 MiB, or twice MaxInflightBytes if that is more, so that all that
	// a leader has in flight may wait for a slow relay.
	Resolve            Resolver
	Bundle             Bundler
	MaxUnresolvedBytes int
	// Names, unless nil, has the replica give names as a leader. It is not used beside Bundle.
	Names *Names
	// Admit, unless nil, returns why a leader does not append a change to the present members, as
	// the log stands, or nil; see rawnode.StateMachine.
	Admit func(members *pb.ConfState, change *pb.ConfChangeV2) error
	// AdmitFromGateway, unless nil, returns why a leader does not append a command of a gateway, or nil; see
	// rawnode.StateMachine.
	AdmitFromGateway func(command []byte) error
	// EncodeResult, unless nil, returns the bytes of a command's result, for a gateway, or why it has
	// none; nil: a []byte and nil have bytes.
	EncodeResult func(result any) ([]byte, error)
	// MaxPartBytes is how many bytes of results, or of an answer, a message to a gateway carries at most, beside their own bounds;
	// 0: any.
	MaxPartBytes int
	// Equal are the settings that must be equal at all replicas, as the state machine names them.
	// Tick is the length of a tick, or 0: then intervals are not compared.
	Equal []Setting
	Tick  time.Duration
	// Hold is for how long a leader holds appends to readers; 0 means a tenth of Tick, and at most 5 ms; below 0: not
	// at all. See holding.
	Hold time.Duration
	// Moment is how long a batch or a round of reads waits for what is under way; 0 means 2 ms. Busy,
	// unless nil, returns the share of time, 0 to 1, for which processors are busy: then they wait for 8 ms, or a
	// Tick if that is shorter.
	Moment time.Duration
	Busy   func() float64
	// Backlog, unless nil, returns the bytes of appends that wait at this node for a member, if that is
	// known, and does not wait. A leader that codes asks before it appends a large entry.
	Backlog func(member uint64) (bytes int, known bool)
	// Aging, unless nil, is a clock by which BoundedStaleness counts, too: one that counts the time for which the system
	// is suspended.
	Aging func() time.Duration
	// Stopwatch, unless nil, measures the work of Resolve and Bundle.
	Stopwatch func() time.Duration
}

// Setting is a setting of a state machine that must be equal at all replicas; package rawnode
// explains it.
type Setting struct{ Name, Value string }

// Settings are the part of a configuration that users of a host choose. The fields are the
// same as in rawnode.ReplicaConfig, which explains each field; a conversion between the two
// types fails to compile unless both agree.
type Settings struct {
	// The comments of rawnode.ReplicaConfig hold for these fields.
	ID, Group                   uint64
	Core                        NewCore
	Log                         Log
	Peers                       []uint64
	Boot                        uint64
	ElectionTick, HeartbeatTick int
	Coding                      *raft.Coding
	Leases                      *raft.Leases
	Clock                       raft.Clock
	ReadOnly                    raft.ReadOnlyOption
	NoPreVote, NoCheckQuorum    bool
	MaxCommandBytes             int
	MaxBatchBytes               int
	MaxQueueBytes               int
	MaxCalls                    int
	Budget                      *Budget
	Placement                   *placement.Node
	LeaderWeight                int
	MaxBatches                  int
	EagerBatches                int
	MaxAppendBytes              int
	MaxInflightMsgs             int
	MaxInflightBytes            int
	MaxUncommittedBytes         int
	MaxApplyBytes               int
	MaxEarlyApplyBytes          int
	MaxTurnBytes                int
	RetainEntries               uint64
	RetainBytes                 uint64
	MaxPromoteLag               uint64
	Rand                        raft.Rand
	Logger                      raft.Logger
}

// Defaults of [Settings].
const (
	defaultCommandBytes = 8 << 20
	defaultBatchBytes   = 256 << 10
	defaultQueueBytes   = 64 << 20
	defaultCalls        = 64 << 10
	defaultBatches      = 256
	defaultEagerBatches = 2
	// DefaultEarlyBytes is a second of writes on a disk that takes 16 MB/s, and an eighth of
	// MaxUncommittedBytes, so that the memory of a leader grows by little. The other members send
	// as much again in a fraction of a second, if a crash loses it.
	DefaultEarlyBytes = 16 << 20
)

// MaxCommandBytes is what fits an entry, a message and a frame with room to spare.
const MaxCommandBytes = 48 << 20

// fits returns the bound of a part of a message that has a bound of its own.
func (c *Config) fits(own int) int {
	if c.MaxPartBytes > 0 {
		return min(own, c.MaxPartBytes)
	}
	return own
}

// withDefaults replaces zeros by their defaults.
func (c Config) withDefaults() Config {
	c.Settings = c.Settings.WithDefaults()
	if c.MaxUnresolvedBytes == 0 {
		c.MaxUnresolvedBytes = min(max(32<<20, 2*c.MaxInflightBytes), math.MaxInt32)
	}
	return c
}

// WithDefaults replaces zeros by their defaults.
func (c Settings) WithDefaults() Settings {
	if c.Core == nil {
		c.Core = Weft
	}
	if c.Logger == nil {
		c.Logger = silent.Logger{}
	}
	for _, d := range []struct {
		field *int
		value int
	}{
		{&c.ElectionTick, 10}, {&c.HeartbeatTick, 1},
		{&c.MaxCommandBytes, defaultCommandBytes}, {&c.MaxBatchBytes, defaultBatchBytes},
		{&c.MaxQueueBytes, defaultQueueBytes}, {&c.MaxCalls, defaultCalls}, {&c.MaxBatches, defaultBatches}, {&c.EagerBatches, defaultEagerBatches},
		{&c.MaxAppendBytes, 1 << 20}, {&c.MaxInflightMsgs, 256}, {&c.MaxInflightBytes, 32 << 20},
		{&c.MaxUncommittedBytes, 128 << 20}, {&c.MaxApplyBytes, 8 << 20}, {&c.MaxEarlyApplyBytes, DefaultEarlyBytes},
		{&c.MaxTurnBytes, 512 << 20},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.RetainEntries == 0 {
		c.RetainEntries = 100_000
	}
	if c.MaxPromoteLag == 0 {
		c.MaxPromoteLag = 1000
	}
	if c.RetainBytes == 0 {
		c.RetainBytes = 64 << 20
	}
	return c
}

// Validate returns an error that names every mistake, or nil. A field left at zero counts
// as its default.
func (c Config) Validate() error {
	err := errors.Join(c.Settings.Validate(), c.equalMistakes())
	if n := c.MaxUnresolvedBytes; n < 0 || n > math.MaxInt32 {
		err = errors.Join(err, fmt.Errorf("%w: MaxUnresolvedBytes is %d, want 0 to %d", ErrInvalid, n, math.MaxInt32))
	}
	return err
}

// Validate returns an error that names every mistake, or nil, like Config.Validate.
func (c Settings) Validate() error {
	c = c.WithDefaults()
	var all mistakes
	bad := all.add
	c.idMistake(bad)
	if c.Log == nil {
		bad("Log", c.Log, "the group's log")
	}
	if c.Boot >= maxBoot {
		bad("Boot", c.Boot, fmt.Sprintf("less than %d", uint64(maxBoot)))
	}
	if c.HeartbeatTick < 1 {
		bad("HeartbeatTick", c.HeartbeatTick, "1 or more")
	}
	if c.ElectionTick <= c.HeartbeatTick || c.ElectionTick > math.MaxInt32 {
		bad("ElectionTick", c.ElectionTick, fmt.Sprintf("more than HeartbeatTick (%d), and at most %d", c.HeartbeatTick, math.MaxInt32))
	}
	if c.ReadOnly != raft.ReadOnlySafe {
		// A leader that is cut off would answer for up to two of its election timeouts, and another
		// leader may be elected after one election timeout of the others, whatever that is there.
		bad("ReadOnly", int(c.ReadOnly), "0 (ReadOnlySafe): reads by ReadOnlyLeaseBased miss acknowledged commands when a link breaks; for reads at the leader without a message, set Leases")
	}
	c.leaseMistakes(bad)
	if c.LeaderWeight > placement.MaxWeight {
		bad("LeaderWeight", c.LeaderWeight, fmt.Sprintf("at most %d", placement.MaxWeight))
	}
	if c.LeaderWeight != 0 && c.Placement == nil {
		bad("Placement", c.Placement, "the node's, as LeaderWeight is set")
	}
	c.callMistakes(bad)
	for _, f := range []boundedField{
		{"MaxAppendBytes", c.MaxAppendBytes, 1},
		{"MaxInflightMsgs", c.MaxInflightMsgs, 1}, {"MaxInflightBytes", c.MaxInflightBytes, c.MaxAppendBytes},
		{"MaxUncommittedBytes", c.MaxUncommittedBytes, 1}, {"MaxApplyBytes", c.MaxApplyBytes, 1}, {"MaxEarlyApplyBytes", c.MaxEarlyApplyBytes, -1},
		{"MaxTurnBytes", c.MaxTurnBytes, 1},
	} {
		f.check(bad)
	}
	if all = append(all, c.validatePeers()...); len(all) == 0 {
		all = c.coreMistakes()
	}
	return errors.Join(all...)
}

// coreMistakes names the mistakes inside the settings of coding and leases, before the log begins.
func (c Settings) coreMistakes() mistakes {
	core := Config{Settings: c}.core(c.Log)
	core.Coding, core.Leases, core.Clock = c.Coding, c.Leases, c.Clock
	if err := core.Validate(); err != nil {
		return mistakes{fmt.Errorf("%w: %w", ErrInvalid, err)}
	}
	return nil
}

// mistakes are those of a configuration, each with the field, its value, and what it is to be.
type mistakes []error

func (m *mistakes) add(field string, value any, want string) {
	*m = append(*m, fmt.Errorf("%w: %s is %v, want %s", ErrInvalid, field, value, want))
}

func (c Settings) idMistake(bad func(field string, value any, want string)) {
	if c.ID == raft.None || c.ID >= raft.LocalApplyThread {
		bad("ID", c.ID, fmt.Sprintf("1 to %d", raft.LocalApplyThread-1))
	}
}

// boundedField is a field of sizes or numbers, up to math.MaxInt32.
type boundedField struct {
	field string
	value int
	least int
}

func (f boundedField) check(bad func(field string, value any, want string)) {
	if f.value < f.least || f.value > math.MaxInt32 {
		bad(f.field, f.value, fmt.Sprintf("%d to %d", f.least, math.MaxInt32))
	}
}

// callMistakes names the mistakes in the bounds of commands, batches and calls.
func (c Settings) callMistakes(bad func(field string, value any, want string)) {
	for _, f := range []boundedField{{"MaxCommandBytes", c.MaxCommandBytes, 1}, {"MaxBatchBytes", c.MaxBatchBytes, 1}} {
		if f.value < f.least || f.value > MaxCommandBytes {
			bad(f.field, f.value, fmt.Sprintf("%d to %d", f.least, MaxCommandBytes))
		}
	}
	for _, f := range []boundedField{
		{"MaxQueueBytes", c.MaxQueueBytes, c.MaxCommandBytes},
		{"MaxCalls", c.MaxCalls, 1}, {"MaxBatches", c.MaxBatches, 1}, {"EagerBatches", c.EagerBatches, 1},
	} {
		f.check(bad)
	}
	if c.Budget != nil && c.Budget.limit < 1 {
		bad("Budget", c.Budget.limit, "1 byte or more")
	}
	if c.MaxBatches > maxWindow {
		bad("MaxBatches", c.MaxBatches, fmt.Sprintf("1 to %d", maxWindow))
	}
}

// leaseMistakes names the conflicts of leases with the rest of the configuration. The core
// names mistakes inside the settings of leases.
func (c Settings) leaseMistakes(bad func(field string, value any, want string)) {
	if c.Leases == nil {
		return
	}
	if c.Clock == nil {
		bad("Clock", c.Clock, "a clock, as Leases are set: clock.Boottime, or in simulation the node's own")
	}
	if c.Leases.Tick <= 0 {
		bad("Leases.Tick", c.Leases.Tick, "the time between two ticks")
	}
	if c.NoPreVote {
		bad("NoPreVote", c.NoPreVote, "false, as Leases are set: without PreVote a node that comes back ends all leases")
	}
	if c.NoCheckQuorum {
		bad("NoCheckQuorum", c.NoCheckQuorum, "false, as Leases are set: without it any candidate ends all leases")
	}
}

// equalMistakes names the faults of settings that could not be sent.
func (c Config) equalMistakes() error {
	if len(c.Equal) > wire.MaxSettings/2 {
		return fmt.Errorf("%w: the state machine names %d settings, want at most %d", ErrInvalid, len(c.Equal), wire.MaxSettings/2)
	}
	for i, s := range c.Equal {
		if s.Name == "" || len(s.Name) > wire.MaxSettingBytes || len(s.Value) > wire.MaxSettingBytes {
			return fmt.Errorf("%w: setting %d of the state machine has a name of %d bytes and a value of %d, want 1 to %d, and 0 to %d", ErrInvalid, i+1, len(s.Name), len(s.Value), wire.MaxSettingBytes, wire.MaxSettingBytes)
		}
	}
	return nil
}

// ValidateCalls is Validate for a gateway, which has no log and no peers of its own.
func (c Settings) ValidateCalls() error {
	c = c.WithDefaults()
	var all mistakes
	bad := all.add
	c.idMistake(bad)
	if c.Boot == 0 || c.Boot >= maxBoot {
		bad("Boot", c.Boot, "1 or more")
	}
	if c.ElectionTick < 2 || c.ElectionTick > math.MaxInt32 {
		bad("ElectionTick", c.ElectionTick, fmt.Sprintf("2 to %d", math.MaxInt32))
	}
	c.callMistakes(bad)
	return errors.Join(all...)
}

func (c Settings) validatePeers() (errs []error) {
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: Peers %v "+format, append([]any{ErrInvalid, c.Peers}, args...)...))
	}
	if len(c.Peers) == 0 {
		return nil
	}
	if !slices.Contains(c.Peers, c.ID) {
		bad("lack this node, %d: name all first members, or none if the node joins a group", c.ID)
	}
	sorted := slices.Clone(c.Peers)
	slices.Sort(sorted)
	if slices.Contains(sorted, raft.None) {
		bad("contain 0, which is no node")
	}
	if len(slices.Compact(sorted)) < len(c.Peers) {
		bad("name a node twice")
	}
	return errs
}

// core returns the core's part of the configuration.
func (c Config) core(s raft.Storage) raft.Config {
	return raft.Config{
		ID: c.ID, Storage: s, Applied: c.Applied,
		ElectionTick: c.ElectionTick, HeartbeatTick: c.HeartbeatTick,
		AsyncStorageWrites:        true,
		ConfChangesFirst:          true, // see emitConfChange, which leaves repeated changes out
		MaxSizePerMsg:             uint64(c.MaxAppendBytes),
		MaxInflightMsgs:           c.MaxInflightMsgs,
		MaxInflightBytes:          uint64(c.MaxInflightBytes),
		MaxUncommittedEntriesSize: uint64(c.MaxUncommittedBytes),
		MaxCommittedSizePerReady:  uint64(c.MaxApplyBytes),
		MaxEarlyApplySize:         uint64(max(c.MaxEarlyApplyBytes, 0)),
		PreVote:                   !c.NoPreVote, CheckQuorum: !c.NoCheckQuorum,
		ReadOnlyOption:            c.ReadOnly,
		DisableProposalForwarding: true,
		StepDownOnRemoval:         true,
		Rand:                      c.Rand,
		Logger:                    c.Logger,
	}
}
