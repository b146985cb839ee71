// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/leases/clock"
	weft "github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/raft/machine"
)

func lookup(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := values[name]; return v, ok }
}

func TestCodingIsWhatVariablesSay(t *testing.T) {
	for _, c := range []struct {
		values map[string]string
		want   *weft.Coding
	}{
		{nil, nil},
		{map[string]string{codingVariable: "off"}, nil},
		{map[string]string{codingVariable: "on"}, &weft.Coding{}},
		{map[string]string{codingVariable: "1"}, &weft.Coding{Threshold: 1}},
		{map[string]string{codingVariable: "4096"}, &weft.Coding{Threshold: 4096}},
		{map[string]string{densifyVariable: ""}, nil},
		// A node that leaves coding must read what is coded, whatever else is set.
		{map[string]string{densifyVariable: "1"}, &weft.Coding{Plain: true}},
		{map[string]string{densifyVariable: "1", codingVariable: "off"}, &weft.Coding{Plain: true}},
		{map[string]string{densifyVariable: "1", codingVariable: "4096"}, &weft.Coding{Threshold: 4096, Plain: true}},
	} {
		got, err := codingFrom(lookup(c.values))
		require.NoError(t, err, c.values)
		require.Equal(t, c.want, withoutBusy(t, got), c.values)
	}
}

// withoutBusy returns c without Busy, which must be set: functions cannot be compared.
func withoutBusy(t *testing.T, c *weft.Coding) *weft.Coding {
	if c == nil {
		return nil
	}
	require.NotNil(t, c.Busy)
	without := *c
	without.Busy = nil
	return &without
}

func TestBadValueIsRefusedWithVariableValueAndBounds(t *testing.T) {
	for _, value := range []string{"", "0", "-1", "4k", "4096 ", "yes", "true", "1073741825", "99999999999999999999"} {
		_, err := codingFrom(lookup(map[string]string{codingVariable: value}))
		require.ErrorContains(t, err, fmt.Sprintf("WEFT_CODING is %q; set it to on (payloads of 4096 bytes", value))
		// Leaving coding is no reason to overlook it.
		_, err = codingFrom(lookup(map[string]string{codingVariable: value, densifyVariable: "1"}))
		require.Error(t, err)
	}
}

func TestYieldIsWhatItsVariableSays(t *testing.T) {
	for value, want := range map[string]bool{"on": true, "off": false} {
		c := &weft.Config{}
		says, err := addYield(c, lookup(map[string]string{yieldVariable: value}))
		require.NoError(t, err)
		require.Equal(t, want, c.YieldWhenLate)
		require.Equal(t, want, says != "")
	}
	for _, value := range []string{"", "yes", "1"} {
		_, err := addYield(&weft.Config{}, lookup(map[string]string{yieldVariable: value}))
		require.ErrorContains(t, err, fmt.Sprintf("WEFT_YIELD_WHEN_LATE is %q; set it to on", value))
	}
	t.Setenv(yieldVariable, "on")
	require.True(t, withEnvironment(&weft.Config{}).YieldWhenLate)
}

func TestWeightsAreWhatTheirVariableSays(t *testing.T) {
	c := hostConfig(nil)
	says, err := addWeights(c, lookup(map[string]string{weightsVariable: "8e9e05c52164694d=200,b=0"}))
	require.NoError(t, err)
	require.Equal(t, map[uint64]int{0x8e9e05c52164694d: 200, 0xb: 0}, c.Placement.Weights)
	require.Contains(t, says, "by the weights 8e9e05c52164694d=200,b=0 (WEFT_LEADER_WEIGHTS)")
	for _, value := range []string{"", "a", "a=", "=5", "m1=5", "a=5,", "a=5,a=6", "a=5;b=6", "a=x"} {
		_, err = addWeights(hostConfig(nil), lookup(map[string]string{weightsVariable: value}))
		require.ErrorContains(t, err, fmt.Sprintf("WEFT_LEADER_WEIGHTS is %q, of which ", value))
	}
	for _, value := range []string{"a=1001", "a=-1", "0=5"} {
		_, err = addWeights(hostConfig(nil), lookup(map[string]string{weightsVariable: value}))
		require.ErrorContains(t, err, "does not go with the settings of this host")
	}
	c = hostConfig(nil)
	c.CheckQuorum = false
	_, err = addWeights(c, lookup(map[string]string{weightsVariable: "a=1"}))
	require.ErrorContains(t, err, "Placement needs CheckQuorum")
	own := &weft.Placement{}
	c.Placement = own
	_, err = addWeights(c, lookup(map[string]string{weightsVariable: "a=1"}))
	require.NoError(t, err)
	require.Same(t, own, c.Placement, "the host's own word counts")
	t.Setenv(weightsVariable, "b=7")
	require.Equal(t, 7, withEnvironment(hostConfig(nil)).Placement.Weights[0xb])
}

// fatalLogger is a host's logger whose Fatalf ends the program.
type fatalLogger struct {
	*weft.DefaultLogger
	fatal string
}

func (l *fatalLogger) Fatalf(format string, args ...any) {
	l.fatal = fmt.Sprintf(format, args...)
	panic("the program has ended")
}

func TestHostThatSaysNothingGetsWhatTheEnvironmentSays(t *testing.T) {
	unset(t, codingVariable)
	unset(t, densifyVariable)
	var out bytes.Buffer
	logger := &fatalLogger{DefaultLogger: &weft.DefaultLogger{Logger: log.New(&out, "", 0)}}
	host := &weft.Config{ID: 0xab, Logger: logger}
	require.Same(t, host, withEnvironment(host), "nothing is set, nothing changes")
	require.Nil(t, withEnvironment(nil))
	require.Empty(t, out.String())

	t.Setenv(codingVariable, "8192")
	got := withEnvironment(host)
	require.Equal(t, &weft.Coding{Threshold: 8192}, withoutBusy(t, got.Coding))
	require.Equal(t, machine.Clock{}, got.Clock, "the policy measures")
	ownClock := &weft.Config{ID: 0xab, Logger: logger, Clock: clock.Watched{}}
	require.Equal(t, clock.Watched{}, withEnvironment(ownClock).Clock, "the host's own clock stays")
	require.Nil(t, host.Coding, "the host's own Config is left alone")
	require.Contains(t, out.String(), "ab codes payloads of 8192 bytes and more (WEFT_CODING)")
	own := &weft.Config{Coding: &weft.Coding{Threshold: 7}}
	require.Same(t, own, withEnvironment(own), "the host's own word counts")

	t.Setenv(codingVariable, "on")
	withEnvironment(host)
	require.Contains(t, out.String(), "ab codes payloads of 4096 bytes and more (WEFT_CODING)")
	t.Setenv(densifyVariable, "1")
	require.True(t, withEnvironment(host).Coding.Plain)
	require.Contains(t, out.String(), "ab codes nothing new and reads coded entries (WEFT_DENSIFY)")
}

func TestBadValueEndsTheProgramInTheHostsLog(t *testing.T) {
	t.Setenv(codingVariable, "4k")
	logger := &fatalLogger{}
	require.PanicsWithValue(t, "the program has ended", func() { withEnvironment(&weft.Config{Logger: logger}) })
	require.Contains(t, logger.fatal, `WEFT_CODING is "4k"`)
	require.PanicsWithError(t, logger.fatal, func() { withEnvironment(&weft.Config{}) }, "without a logger it panics")
}

// unset removes a variable for the time of a test.
func unset(t *testing.T, name string) {
	t.Setenv(name, "") // which puts back what there was
	require.NoError(t, os.Unsetenv(name))
}
