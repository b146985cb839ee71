// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front_test

import (
	"math"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
	"github.com/weftraft/weft/storage"
)

// Each number of Options at its bounds: inside, a node takes a command; outside, the error names field,
// value and bound. (The default of each is in all other tests.)
func TestOptionsAtTheirBounds(t *testing.T) {
	longHost := strings.Repeat("h", weft.MaxAddressBytes-len(":7000"))
	for name, c := range map[string]struct {
		change func(*weft.Options)
		says   string // of the error; empty: none
	}{
		"highest id":              {func(o *weft.Options) { o.ID = weft.MaxID }, ""},
		"id above":                {func(o *weft.Options) { o.ID = weft.MaxID + 1 }, "Options.ID is 4611686018427387904, want 1 to 4611686018427387903"},
		"highest cluster":         {func(o *weft.Options) { o.Cluster = math.MaxUint64 }, ""},
		"no cluster":              {func(o *weft.Options) { o.Cluster = 0 }, "Options.Cluster is 0, want 1 or more"},
		"shortest tick":           {func(o *weft.Options) { o.TickInterval = time.Millisecond }, ""},
		"tick too short":          {func(o *weft.Options) { o.TickInterval = time.Millisecond - 1 }, "Options.TickInterval is 999.999µs, want 1ms"},
		"tick negative":           {func(o *weft.Options) { o.TickInterval = -1 }, "Options.TickInterval is -1ns, want 1ms"},
		"tick too long":           {func(o *weft.Options) { o.TickInterval = math.MaxInt64 }, "Options.TickInterval is 2562047h47m16.854775807s, want 1ms to 1h0m0s"},
		"shortest election":       {func(o *weft.Options) { o.ElectionTicks = 2 }, ""},
		"election too short":      {func(o *weft.Options) { o.ElectionTicks = 1 }, "Options.ElectionTicks is 1, want 2 to 100000, or 0 for 10"},
		"election negative":       {func(o *weft.Options) { o.ElectionTicks = -1 }, "Options.ElectionTicks is -1, want 2 to 100000"},
		"election too long":       {func(o *weft.Options) { o.ElectionTicks = math.MaxInt }, "Options.ElectionTicks is 9223372036854775807, want 2 to 100000"},
		"budget negative":         {func(o *weft.Options) { o.BudgetBytes = -1 }, "Options.BudgetBytes is -1, want 0 or more"},
		"catching up negative":    {func(o *weft.Options) { o.CatchUpBytes = -1 }, "Options.CatchUpBytes is -1, want 0 or more"},
		"catching up with little": {func(o *weft.Options) { o.CatchUpBytes = 1 }, ""},
		"balance off":             {func(o *weft.Options) { o.Balance = -1 }, ""},
		"balance short":           {func(o *weft.Options) { o.Balance = time.Millisecond }, ""},
		"balance without a unit":  {func(o *weft.Options) { o.Balance = 5 }, "Options.Balance is 5ns, want 1ms or more, or less than 0"},
		"hang without a unit":     {func(o *weft.Options) { o.ExitAfterHang = 60 }, "Options.ExitAfterHang is 60ns, want 1ms or more, or 0"},
		"hang negative":           {func(o *weft.Options) { o.ExitAfterHang = -1 }, "Options.ExitAfterHang is -1ns, want 1ms or more, or 0"},
		"balance long":            {func(o *weft.Options) { o.Balance = math.MaxInt64 }, ""},
		"weight highest":          {func(o *weft.Options) { o.LeaderWeight = 1000 }, ""},
		"weight 0":                {func(o *weft.Options) { o.LeaderWeight = -1 }, ""},
		"zone longest":            {func(o *weft.Options) { o.Zone = strings.Repeat("z", 64) }, ""},
		"zone longer":             {func(o *weft.Options) { o.Zone = strings.Repeat("z", 65) }, "Options.Zone is 65 bytes long, want at most 64"},
		"weight above":            {func(o *weft.Options) { o.LeaderWeight = 1001 }, "Options.LeaderWeight is 1001, want at most 1000"},
		"longest address":         {func(o *weft.Options) { o.Advertise = longHost + ":7000" }, ""},
		"address too long":        {func(o *weft.Options) { o.Advertise = longHost + "h:7000" }, "Options.Advertise: weft: the address cannot be used: it has 262 bytes, want at most 261"},
		"highest port":            {func(o *weft.Options) { o.Advertise = "10.0.0.1:65535" }, ""},
		"port above":              {func(o *weft.Options) { o.Advertise = "10.0.0.1:65536" }, "no port of 1 to 65535"},
		"port 0":                  {func(o *weft.Options) { o.Advertise = "10.0.0.1:0" }, "no port of 1 to 65535"},
		"listen at a port above":  {func(o *weft.Options) { o.Listen = "127.0.0.1:65536" }, "65536"},
		"another node's address": {func(o *weft.Options) {
			o.Peers = map[uint64]string{1: "127.0.0.1:7", 2: "127.0.0.1:8"}
			o.Advertise = "127.0.0.1:8"
		}, "Options.Advertise is 127.0.0.1:8, and so is Peers[2]"},
		"bytes that JSON changes": {func(o *weft.Options) { o.Advertise = "node\xff:7000" }, "neither an IP address nor a name"},
		"a control in an address": {func(o *weft.Options) { o.Advertise = "node\x1b[2J:7000" }, `"node\x1b[2J:7000"`},
		"an address out of Go's":  {func(o *weft.Options) { o.Advertise = "[::1" }, "want host:port"},
		"every mistake at a time": {func(o *weft.Options) { *o = weft.Options{ID: weft.MaxID + 1, TickInterval: -1, BudgetBytes: -1} }, "Options.BudgetBytes"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			m := newMember(t, 1, nil)
			m.options.Listen, m.options.Cluster = "127.0.0.1:0", testCluster+9
			c.change(&m.options)
			if c.says == "" {
				m.start(t)
				require.Equal(t, 1, m.propose(t, "a line"))
				return
			}
			node, err := weft.Open(m.options)
			require.ErrorContains(t, err, c.says)
			require.Nil(t, node)
		})
	}
	o := weft.Options{Cluster: 1, ID: 1, Dir: "data", Listen: "127.0.0.1:0", TickInterval: time.Hour, ElectionTicks: 100_000}
	require.NoError(t, o.Validate(), "the longest election timeout, which is 11 years")
}

// One setting gives the election timeout to the groups, and to the comparison of nodes.
func TestElectionTimeoutIsThatOfTheOptions(t *testing.T) {
	o := newMember(t, 1, nil).options
	o.Listen, o.TickInterval, o.ElectionTicks = "127.0.0.1:0", 10*time.Millisecond, 3
	node, err := weft.Open(o)
	require.NoError(t, err)
	require.Equal(t, 30*time.Millisecond, node.Placement().Timeout())
	ticks := 0
	_, err = node.Group(1, &journal{}, weft.Configure(func(c *rawnode.Config) { ticks = c.Replica.ElectionTick }))
	require.NoError(t, err)
	require.Equal(t, 3, ticks)
	require.NoError(t, node.Close(within(t)))
}

// A command that can never fit the budget is refused at once, with its size and the bound, and
// without the advice to try again.
func TestCommandAboveTheBudgetIsRefused(t *testing.T) {
	m := newMember(t, 1, nil)
	m.options.Listen, m.options.Cluster, m.options.BudgetBytes = "127.0.0.1:0", testCluster+9, 1
	m.start(t)
	eventually(t, func() bool { return m.group.Leader() != 0 }, "a leader")
	_, err := m.group.Propose(within(t), make([]byte, 1000))
	require.ErrorIs(t, err, weft.ErrRefused)
	require.ErrorIs(t, err, weft.ErrTooLarge)
	require.NotErrorIs(t, err, weft.ErrOverloaded)
	require.ErrorContains(t, err, "bytes, the budget of all groups is 1; split the command, or raise the budget")
}

// A port that is taken is an error that names the address, and leaves nothing open.
func TestPortThatIsTaken(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	m := newMember(t, 1, nil)
	m.options.Listen, m.options.Cluster = other.Addr().String(), testCluster+9
	_, err = weft.Open(m.options)
	require.ErrorContains(t, err, other.Addr().String())
	require.ErrorContains(t, err, "is another node running there?")
	require.NoError(t, other.Close())
	m.start(t)
	require.Equal(t, 1, m.propose(t, "a line"))
}

// A service may bring its own listener and file system. What the node sets, it sets behind the
// service: nodes that get along.
func TestLogAndTransportAreConfigured(t *testing.T) {
	disk, peers := vfs.NewMem(), addressesOf(t, 1, 2)
	all := map[uint64]*member{}
	for _, id := range sortedIDs(peers) {
		l, err := net.Listen("tcp", peers[id])
		require.NoError(t, err)
		m := newMember(t, id, peers)
		m.options.ConfigureTransport = func(c *transport.Config) {
			c.Listener, c.Cluster, c.Node, c.Peers, c.Gateway = l, testCluster+9, 99, nil, "127.0.0.1:7000"
		}
		m.options.ConfigureLog = func(o *storage.Options) {
			o.FS, o.Identity = disk, storage.Identity{Cluster: testCluster + 9, Node: 99}
		}
		m.start(t)
		all[id] = m
	}
	require.Equal(t, 1, all[1].propose(t, "a line"))
	for id, m := range all {
		log := filepath.Join(m.options.Dir, "log")
		require.NoDirExists(t, log)
		_, err := disk.Stat(log)
		require.NoError(t, err, "node %d", id)
	}
}
