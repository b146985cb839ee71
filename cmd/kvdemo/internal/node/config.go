// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package node is one node of kvdemo: a log, a state machine, a host that
// replicates, a transport to the other nodes, and a gRPC service for clients.
package node

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/cmd/internal/stuck"
	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/internal/logs"
	"github.com/weftraft/weft/cmd/kvdemo/internal/page"
	"github.com/weftraft/weft/internal/address"
	"github.com/weftraft/weft/internal/certs"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
)

// Names of the libraries that can drive a node.
const (
	CoreWeft     = "weft"
	CoreUpstream = "upstream"
)

// Values of Config.Coding.
const (
	CodingAuto = "auto"
	CodingOn   = "on"
	CodingOff  = "off"
	// CodingNever is CodingOff for a node that cannot read coded entries either,
	// as all nodes with CoreUpstream: its log must have none.
	CodingNever = "never"
)

// Bounds of [Config].
const (
	MinTick = time.Millisecond
	MaxTick = 10 * time.Second

	MaxGroups = 1024

	MaxElectionTicks = 100_000

	MaxCodingThreshold = kv.MaxCommandBytes

	MinEgress = 1 << 10
	MaxEgress = 1 << 40
)

// Config says which node to run, and how.
type Config struct {
	ID           uint64            // this node, at least 1
	Cluster      uint64            // the cluster it belongs to, at least 1
	Peers        map[uint64]string // host:port of all first members, or those at the time of Join, this one too
	Listen       string            // where to listen for peers; empty: Peers[ID]
	Advertise    string            // of a gateway: where nodes reach it; empty: Listen
	ClientListen string            // where to listen for clients
	RespListen   string            // where to listen for clients of Redis; empty: nowhere
	RespPassword string            // what clients of Redis give with AUTH; empty: nothing
	HTTPListen   string            // where to serve /metrics, /livez, /readyz and the page; empty: nowhere
	HTTPPeers    map[uint64]string // where other nodes do so: what the page shows beside this node
	Pprof        bool              // serve /debug/pprof there, too
	Data         string            // directory for log and state
	Join         bool              // begin no group: wait to be added to those there are
	Groups       int               // Raft groups that the keys are spread over, the same at all nodes
	Core         string            // CoreWeft or CoreUpstream
	// Coding is CodingOn, CodingOff, CodingNever or CodingAuto, which is on with
	// CoreWeft.
	// CodingThreshold is the least size of an entry that is coded, 1 to
	// MaxCodingThreshold; 0: raft.DefaultCodingThreshold.
	Coding          string
	CodingThreshold int

	// TLS names the node's certificate: peers and clients need one of the same
	// authority then. Zero: plain TCP.
	TLS certs.Files
	// Unprotected lets a node without TLS listen where other machines come in.
	Unprotected bool

	// Leases turns roster leases on. LeaseNotes turns on early accept notes, and LeaseTuner
	// has responders chosen by where keys are read, too.
	Leases, LeaseNotes, LeaseTuner bool

	// OTLP is the URL of a collector of traces, http or https; empty: none. OTLPSample is
	// the share of calls that leave spans, 0 to 1; calls of a client's trace do as the
	// client says.
	OTLP       string
	OTLPSample float64

	// Egress bounds the bytes a second that the node sends to its peers, for
	// experiments, MinEgress to MaxEgress; 0: no bound.
	Egress int

	// StuckDisk, for experiments, has the disk of the log and the state hang or be slow.
	StuckDisk stuck.Disk

	Tick           time.Duration // the unit of the two below, MinTick to MaxTick
	HeartbeatTicks int           // a leader says that it is there, 1 or more
	ElectionTicks  int           // silence before an election, above HeartbeatTicks, to MaxElectionTicks

	// CatchUpBytes is as in [weft.Options].
	CatchUpBytes int64
	// RetainBytes of log are kept behind the durable state, at least 1, for
	// followers that lag; one that lags more gets a snapshot. FlushInterval is
	// how often an idle node makes its state durable, more than 0.
	RetainBytes   uint64
	FlushInterval time.Duration
	// ExitAfterHang ends the process when no write to the log has ended for so long although some
	// wait; 0: never.
	ExitAfterHang time.Duration
	// LeaderWeight is the node's weight as a leader, as in [rawnode.PlacementConfig]: 0 is 100, and less than 0 the
	// weight 0.
	LeaderWeight int
	// Zone is where the node stands, as in [weft.Options].
	Zone string
	// BalanceInterval is how often a node with several groups looks if it leads
	// too many of them; 0: never.
	BalanceInterval time.Duration

	// Orders, unless nil, are those of a parent: see [page.Order]. It is not closed.
	Orders <-chan page.Order

	// Log is told what the node does, and LogLevel is changed for operators. Both must be set at a node, and Log at a gateway.
	Log      *slog.Logger
	LogLevel *logs.Level
}

// codingMemory is for units and payloads of all groups together, as long as each
// has leastCodingMemory.
const (
	codingMemory      = raft.DefaultCodingMemory
	leastCodingMemory = 2 << 20
)

// Defaults of [Config].
const (
	DefaultRetainBytes   = 64 << 20
	DefaultFlushInterval = 5 * time.Second

	DefaultBalanceInterval = 5 * time.Second
)

// Validate returns an error that names every mistake by its flag, or nil.
func (c Config) Validate() error {
	var errs mistakes
	bad := errs.add
	errs.check(c.ID > 0 && c.ID <= weft.MaxID, "id", c.ID, "1 to %d, and one of --peers", uint64(weft.MaxID))
	errs.check(c.Cluster > 0, "cluster", c.Cluster, "1 or more, the same at all nodes")
	if len(c.Peers) == 0 {
		bad("peers", "none", "all members as id=host:port,...")
	} else if _, ok := c.Peers[c.ID]; !ok && c.ID != 0 {
		bad("id", c.ID, "a member named in --peers (%s)", c.members())
	}
	errs.check(c.Data != "", "data", "none", "a directory of this node's own")
	errs.check(c.Groups >= 1 && c.Groups <= MaxGroups, "groups", c.Groups, "1 to %d", MaxGroups)
	errs.check(c.CatchUpBytes >= 0, "catch-up-bytes", c.CatchUpBytes, "0 or more")
	errs.check(c.RetainBytes > 0, "retain-bytes", c.RetainBytes, "1 or more")
	errs.check(c.FlushInterval > 0, "flush-interval", c.FlushInterval, "more than 0")
	errs.check(c.ExitAfterHang == 0 || c.ExitAfterHang >= time.Millisecond, "exit-after-hang", c.ExitAfterHang, "0, or 1ms or more")
	errs.check(c.LeaderWeight <= rawnode.MaxLeaderWeight, "leader-weight", c.LeaderWeight, "0 to %d", rawnode.MaxLeaderWeight)
	errs.check(c.BalanceInterval == 0 || c.BalanceInterval >= time.Millisecond, "balance-interval", c.BalanceInterval, "0, or 1ms or more")
	errs = append(errs, c.ValidateTuning())
	errs = append(errs, c.validateProtection()...)
	return errors.Join(append(errs, c.validateAddresses()...)...)
}

// mistakes are what is wrong with flags.
type mistakes []error

func (m *mistakes) add(flag string, value any, want string, args ...any) {
	*m = append(*m, fmt.Errorf("--%s: %v, want %s", flag, value, fmt.Sprintf(want, args...)))
}

// check adds a mistake unless the value is as wanted.
func (m *mistakes) check(ok bool, flag string, value any, want string, args ...any) {
	if !ok {
		m.add(flag, value, want, args...)
	}
}

// ValidateTuning looks at what does not say which node it is: core, coding,
// egress, ticks and leases. It returns an error that names every mistake by its flag, or
// nil.
func (c Config) ValidateTuning() error {
	var errs mistakes
	bad := errs.add
	errs.check(c.Core == CoreWeft || c.Core == CoreUpstream, "core", strconv.Quote(c.Core), "%s or %s", CoreWeft, CoreUpstream)
	switch {
	case !slices.Contains([]string{CodingAuto, CodingOn, CodingOff, CodingNever}, c.Coding):
		bad("coding", strconv.Quote(c.Coding), "%s, %s, %s or %s", CodingAuto, CodingOn, CodingOff, CodingNever)
	case c.Coding == CodingOn && c.Core == CoreUpstream:
		bad("coding", c.Coding, "%s or %s with --core %s, which cannot code", CodingAuto, CodingOff, CoreUpstream)
	}
	errs.check(c.CodingThreshold >= 0 && c.CodingThreshold <= MaxCodingThreshold, "coding-threshold", c.CodingThreshold, "0 (%d) to %d bytes", raft.DefaultCodingThreshold, MaxCodingThreshold)
	errs.check(c.Egress == 0 || c.Egress >= MinEgress && c.Egress <= MaxEgress, "egress", c.Egress, "0, or %d to %d bytes a second", MinEgress, MaxEgress)
	errs.check(c.Tick >= MinTick && c.Tick <= MaxTick, "tick", c.Tick, "%v to %v", MinTick, MaxTick)
	errs.check(c.HeartbeatTicks >= 1, "heartbeat-ticks", c.HeartbeatTicks, "1 or more")
	errs.check(c.ElectionTicks > c.HeartbeatTicks && c.ElectionTicks <= MaxElectionTicks, "election-ticks", c.ElectionTicks, "more than --heartbeat-ticks (%d), and %d at most", c.HeartbeatTicks, MaxElectionTicks)
	errs = append(errs, c.validateLeases()...)
	errs = append(errs, c.validateTraces()...)
	return errors.Join(errs...)
}

func (c Config) validateAddresses() (errs []error) {
	check := func(flag, address string) {
		if err := client.CheckAddress(address); err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		}
	}
	if len(c.Zone) > address.MaxZoneBytes {
		errs = append(errs, fmt.Errorf("--zone: %q has %d bytes, want at most %d", c.Zone, len(c.Zone), address.MaxZoneBytes))
	}
	seen := map[string]uint64{}
	for _, id := range c.ids() {
		address := c.Peers[id]
		if id == 0 || id > weft.MaxID {
			errs = append(errs, fmt.Errorf("--peers: id %d (%s), want 1 to %d", id, address, uint64(weft.MaxID)))
		}
		check("peers", address)
		if other, ok := seen[address]; ok {
			errs = append(errs, fmt.Errorf("--peers: %s is the address of nodes %d and %d, want one each", address, other, id))
		}
		seen[address] = id
	}
	if c.Listen != "" {
		check("listen", c.Listen)
	}
	check("client-listen", c.ClientListen)
	if c.ClientListen != "" && c.ClientListen == c.listen() {
		errs = append(errs, fmt.Errorf("--client-listen: %s is where peers are listened for, want another port", c.ClientListen))
	}
	for _, id := range slices.Sorted(maps.Keys(c.HTTPPeers)) {
		if id == 0 {
			errs = append(errs, fmt.Errorf("--http-peers: id 0 (%s), want 1 or more", c.HTTPPeers[id]))
		}
		check("http-peers", c.HTTPPeers[id])
	}
	if len(c.HTTPPeers) > page.MaxMembers {
		errs = append(errs, fmt.Errorf("--http-peers: %d nodes, want at most %d", len(c.HTTPPeers), page.MaxMembers))
	}
	if c.RespListen != "" {
		if c.RespListen == c.ClientListen || c.RespListen == c.listen() || c.RespListen == c.HTTPListen {
			errs = append(errs, fmt.Errorf("--resp: %s is listened at for something else, want another port", c.RespListen))
		}
		check("resp", c.RespListen)
	}
	if c.RespListen == "" && c.RespPassword != "" {
		errs = append(errs, errors.New("--resp-password-file: the password is for clients of --resp, want an address there"))
	}
	switch {
	case c.HTTPListen == "" && len(c.HTTPPeers) > 0:
		errs = append(errs, errors.New("--http-peers: they are for the page at --http-listen, want an address there"))
		fallthrough
	case c.HTTPListen == "" && c.Pprof:
		if c.Pprof {
			errs = append(errs, errors.New("--pprof: it is served at --http-listen, want an address there"))
		}
	case c.HTTPListen == "":
	case c.HTTPListen == c.ClientListen || c.HTTPListen == c.listen():
		errs = append(errs, fmt.Errorf("--http-listen: %s is listened at for something else, want another port", c.HTTPListen))
	default:
		check("http-listen", c.HTTPListen)
	}
	return errs
}

// listen is where to listen for peers.
func (c Config) listen() string {
	if c.Listen != "" {
		return c.Listen
	}
	return c.Peers[c.ID]
}

// validateProtection refuses addresses that other machines reach while nothing tells a
// member or a client from a stranger, and certificates that are not complete.
func (c Config) validateProtection() (errs []error) {
	if t := c.TLS; t != (certs.Files{}) && (t.Cert == "" || t.Key == "" || t.CA == "") {
		errs = append(errs, errors.New("--tls-cert, --tls-key, --tls-ca: some are missing, want all three or none"))
	}
	if c.TLS != (certs.Files{}) || c.Unprotected {
		return errs
	}
	for _, port := range []struct{ flag, address, does string }{
		{"peers", c.listen(), "can act as a member"},
		{"client-listen", c.ClientListen, "reads and writes"},
		{"resp", c.RespListen, "reads and writes"},
		{"http-listen", c.HTTPListen, "reads what the node reports"},
	} {
		if port.flag == "peers" && c.Listen != "" {
			port.flag = "listen"
		}
		if port.address == "" || port.flag == "resp" && c.RespPassword != "" {
			continue
		}
		if err := client.CheckLoopback(port.address); err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w, and without certificates whoever comes %s: "+
				"give --tls-cert, --tls-key and --tls-ca; or listen at 127.0.0.1; or, on a network of your own, give --unprotected", port.flag, err, port.does))
		}
	}
	return errs
}

// codes reports whether the node can read coded entries.
func (c Config) codes() bool { return c.Core != CoreUpstream && c.Coding != CodingNever }

// coding is how entries are coded, or nil if the node cannot do that. Each group
// needs one of its own. With CodingOff there is one, too: the log may have coded
// entries from before.
func (c Config) coding() *raft.Coding {
	if !c.codes() {
		return nil
	}
	return &raft.Coding{Threshold: c.CodingThreshold, Memory: max(codingMemory/c.Groups, leastCodingMemory)}
}

// ids are the members, ascending.
func (c Config) ids() []uint64 { return slices.Sorted(maps.Keys(c.Peers)) }

func (c Config) members() string {
	var parts []string
	for _, id := range c.ids() {
		parts = append(parts, strconv.FormatUint(id, 10))
	}
	return strings.Join(parts, ", ")
}
