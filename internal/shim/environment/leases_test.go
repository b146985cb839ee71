// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"bytes"
	"log"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/leases/clock"
	weft "github.com/weftraft/weft/raft"
)

var everyone = []leases.Want{{Nodes: []leases.NodeID{leases.AllVoters}}}

func TestLeasesAreWhatVariablesSay(t *testing.T) {
	for _, c := range []struct {
		values map[string]string
		want   *weft.Leases
	}{
		{nil, nil},
		{map[string]string{leasesVariable: "off"}, nil},
		{map[string]string{leasesVariable: "off", tickVariable: "10ms"}, nil},
		{map[string]string{leasesVariable: "on"}, &weft.Leases{Tick: 100 * time.Millisecond, Wanted: everyone}},
		{map[string]string{leasesVariable: "retire"}, &weft.Leases{Tick: 100 * time.Millisecond, Wanted: everyone, Retired: true}},
		{map[string]string{leasesVariable: "on", respondersVariable: "all"}, &weft.Leases{Tick: 100 * time.Millisecond, Wanted: everyone}},
		{map[string]string{leasesVariable: "on", respondersVariable: "none"}, &weft.Leases{Tick: 100 * time.Millisecond}},
		{
			map[string]string{leasesVariable: "on", tickVariable: "10ms", lengthVariable: "2s", quarantineVariable: "1m", driftVariable: "500", respondersVariable: "8e9e05c52164694d,a,A"},
			&weft.Leases{Tick: 10 * time.Millisecond, Lease: 2 * time.Second, Quarantine: time.Minute, DriftPPM: 500,
				Wanted: []leases.Want{{Nodes: []leases.NodeID{0xa, 0x8e9e05c52164694d}}}},
		},
	} {
		got, err := leasesFrom(lookup(c.values))
		require.NoError(t, err, c.values)
		require.Equal(t, c.want, got, c.values)
	}
}

func TestBadLeaseSettingIsRefusedWithVariableValueAndBounds(t *testing.T) {
	const (
		aDuration = "set it to a duration of more than 0 and at most 1h0m0s, such as 100ms or 1s, or unset it"
		anID      = "is no node's id; set it to all (every voter), to none (only the leader), or to ids in hexadecimal"
	)
	for name, c := range map[string]struct {
		says   string
		values []string
	}{
		leasesVariable:     {"set it to on (members answer linearizable reads by roster leases), to retire (the group stops to do so), or to off", []string{"", "1", "yes", "ON", "100ms"}},
		tickVariable:       {aDuration, []string{"", "0", "100", "-1s", "61m"}},
		lengthVariable:     {aDuration, []string{"1", "0s", "2h"}},
		quarantineVariable: {aDuration, []string{"1", "0s", "2h"}},
		driftVariable:      {"set it to a number from 1 to 250000, or unset it (which is 1000)", []string{"", "0", "-1", "250001", "1e3", "1%"}},
		respondersVariable: {anID, []string{"", "x", "0", "a,", "a, b", "ffffffffffffffff", "fffffffffffffffe", "10000000000000000"}},
	} {
		for _, value := range c.values {
			_, err := leasesFrom(lookup(map[string]string{leasesVariable: "on", name: value}))
			require.ErrorContains(t, err, name+` is "`+value+`"`)
			require.ErrorContains(t, err, c.says)
		}
	}
	_, err := leasesFrom(lookup(map[string]string{leasesVariable: "on", tickVariable: "x", driftVariable: "y"}))
	require.ErrorContains(t, err, tickVariable)
	require.ErrorContains(t, err, driftVariable, "every mistake at once")
}

// An operator who sets a detail of leases and not WEFT_LEASES would run without leases.
func TestLeaseSettingWithoutLeasesIsRefused(t *testing.T) {
	for _, name := range []string{tickVariable, lengthVariable, quarantineVariable, driftVariable, respondersVariable} {
		_, err := leasesFrom(lookup(map[string]string{name: "1"}))
		require.ErrorContains(t, err, name+` is "1", and WEFT_LEASES is not set; set that to on, retire or off, or unset `+name)
	}
}

// hostConfig is what a host such as etcd passes.
func hostConfig(logger weft.Logger) *weft.Config {
	return &weft.Config{ID: 0xab, ElectionTick: 10, HeartbeatTick: 1, Storage: weft.NewMemoryStorage(), MaxInflightMsgs: 256,
		PreVote: true, CheckQuorum: true, Logger: logger}
}

func TestHostThatKnowsNoLeasesGetsThemAndAClock(t *testing.T) {
	var out bytes.Buffer
	logger := &fatalLogger{DefaultLogger: &weft.DefaultLogger{Logger: log.New(&out, "", 0)}}
	host := hostConfig(logger)
	unset(t, codingVariable)
	unset(t, densifyVariable)
	t.Setenv(leasesVariable, "on")
	got := withEnvironment(host)
	require.Nil(t, host.Leases, "the host's own Config is left alone")
	require.Equal(t, everyone, got.Leases.Wanted)
	require.Equal(t, clock.Watched{DriftPPM: leases.DefaultDriftPPM}, got.Clock)
	require.Contains(t, out.String(), "ab runs with roster leases; responders besides the leader: all voters; a tick is 100ms (WEFT_LEASES)")
	node, err := weft.NewRawNode(got)
	require.NoError(t, err)
	require.True(t, node.LeaseStatus().On)

	t.Setenv(respondersVariable, "b,a")
	withEnvironment(host)
	require.Contains(t, out.String(), "besides the leader: a, b;")
	t.Setenv(leasesVariable, "retire")
	require.True(t, withEnvironment(host).Leases.Retired)
	require.Contains(t, out.String(), "ab runs with roster leases and has the group stop using them (WEFT_LEASES)")

	own := hostConfig(logger)
	own.Leases = &weft.Leases{Tick: time.Second}
	require.Same(t, own, withEnvironment(own), "the host's own word counts")
	ticking := hostConfig(logger)
	ticking.Clock = ownClock{}
	require.Equal(t, ownClock{}, withEnvironment(ticking).Clock, "and so does its clock")
}

// The clock is not only looked at when a node starts.
func TestClockOfAHostThatKnowsNoLeasesIsWatched(t *testing.T) {
	unset(t, codingVariable)
	unset(t, densifyVariable)
	t.Setenv(leasesVariable, "on")
	t.Setenv(driftVariable, "500")
	got := withEnvironment(hostConfig(nil))
	require.Equal(t, clock.Watched{DriftPPM: 500}, got.Clock)
	if runtime.GOOS != "linux" {
		t.Skip("there is no second clock to compare with")
	}
	require.Eventually(t, func() bool { return clock.Latest().Measurements > 0 }, time.Minute, 20*time.Millisecond)
}

type ownClock struct{}

func (ownClock) Now() time.Duration { return time.Hour }

func TestHostWhoseSettingsDoNotCarryLeasesEnds(t *testing.T) {
	t.Setenv(leasesVariable, "on")
	logger := &fatalLogger{}
	for says, change := range map[string]func(*weft.Config){
		"Leases need PreVote":     func(c *weft.Config) { c.PreVote = false },
		"Leases need CheckQuorum": func(c *weft.Config) { c.CheckQuorum = false },
		"Heartbeat is 100ms":      func(c *weft.Config) { c.ElectionTick = 3 },
	} {
		c := hostConfig(logger)
		change(c)
		require.PanicsWithValue(t, "the program has ended", func() { withEnvironment(c) })
		require.Contains(t, logger.fatal, "WEFT_LEASES asks for roster leases, which do not go with the settings of this host")
		require.Contains(t, logger.fatal, says)
	}
}
