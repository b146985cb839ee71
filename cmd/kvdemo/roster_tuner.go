// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// tunerModes are the words of "roster tuner".
var tunerModes = map[string]kvpb.TunerMode{
	"on": kvpb.TunerMode_TUNER_ON, "watch": kvpb.TunerMode_TUNER_WATCH, "off": kvpb.TunerMode_TUNER_OFF,
}

func newRosterTuner() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:   "tuner on|watch|off",
		Short: "Have leaders choose responders by where keys are read, or not",
		Long: "tuner switches the tuner in all groups. On: a leader chooses responders by where keys are read,\n" +
			"beside those that were named; it decides every ten seconds. Watch: it names nobody, and roster show\n" +
			"says whom it would name, and why. Off: nothing is counted, and those that it chose are responders\n" +
			"no more, while those that were named stay. The word is kept, also when the leader changes or all\n" +
			"nodes are restarted, and counts more than serve --lease-tuner.",
		Example: "  kvdemo roster tuner watch\n" +
			"  kvdemo roster show",
		Args: cobra.ExactArgs(1),
	}
	return f.runs(cmd, func(ctx context.Context, c *client.Client, args []string) error {
		mode, ok := tunerModes[args[0]]
		if !ok {
			return fmt.Errorf("tuner: %q, want on, watch or off; %w", args[0], errUsage)
		}
		if _, err := client.Admin(ctx, c, kvpb.AdminClient.SwitchTuner, &kvpb.SwitchTunerRequest{Mode: mode}); err != nil {
			return err
		}
		return f.waitAndPrint(ctx, cmd, c, func(r groupRoster) bool { return r.Tuner.mode() == args[0] })
	})
}

// tunerResult is the tuner of a group in the output of roster and status --json.
type tunerResult struct {
	Mode    string         `json:"mode"` // off, watch or on
	Windows uint64         `json:"windows,omitempty"`
	Choices []choiceResult `json:"choices,omitempty"`
}

// choiceResult is what the tuner found about a span.
type choiceResult struct {
	From   string          `json:"from"`
	To     string          `json:"to"`
	Reads  uint64          `json:"reads"`
	Writes uint64          `json:"writes"`
	By     []readsAtResult `json:"by,omitempty"`
	Nodes  []uint64        `json:"nodes,omitempty"`
	Why    string          `json:"why"`
}

// readsAtResult is how many of the reads a node was asked for.
type readsAtResult struct {
	Node  uint64 `json:"node"`
	Reads uint64 `json:"reads"`
}

// newTunerResult returns nil for a node that says nothing of a tuner: of a version without.
func newTunerResult(t *kvpb.StatusResponse_Tuner) *tunerResult {
	if t == nil {
		return nil
	}
	r := &tunerResult{Mode: tunerText(t.GetMode()), Windows: t.GetWindows()}
	for _, c := range t.GetChoices() {
		choice := choiceResult{From: string(c.GetSpan().GetStart()), To: string(c.GetSpan().GetEnd()), Reads: c.GetReads(), Writes: c.GetWrites(), Nodes: c.GetNodes(), Why: c.GetWhy()}
		for _, by := range c.GetBy() {
			choice.By = append(choice.By, readsAtResult{Node: by.GetNode(), Reads: by.GetReads()})
		}
		r.Choices = append(r.Choices, choice)
	}
	return r
}

func tunerText(mode kvpb.TunerMode) string {
	for text, m := range tunerModes {
		if m == mode {
			return text
		}
	}
	return mode.String()
}

// mode is - where no node says it.
func (t *tunerResult) mode() string {
	if t == nil {
		return "-"
	}
	return t.Mode
}

// printTuners prints what tuners found, in groups whose tuner is not off.
func (f *clientFlags) printTuners(cmd *cobra.Command, rosters []groupRoster) error {
	var rows [][]any
	for _, r := range rosters {
		if r.Tuner != nil {
			rows = append(rows, r.Tuner.rows(r.Group)...)
		}
	}
	return f.more(cmd, rows, "GROUP", "TUNER", "SPAN", "READS", "WRITES", "READ AT", "CHOOSES", "WHY")
}

// rows are the lines of a group.
func (t *tunerResult) rows(group uint64) (rows [][]any) {
	switch {
	case t.Mode == "off":
		return nil
	case len(t.Choices) == 0:
		return [][]any{{group, t.Mode, "-", "-", "-", "-", "-", fmt.Sprintf("nothing was counted in the last of %d windows", t.Windows)}}
	}
	for _, c := range t.Choices {
		var at []string
		for _, r := range c.By {
			at = append(at, fmt.Sprintf("%d: %d", r.Node, r.Reads))
		}
		span := assignmentResult{From: c.From, To: c.To}.span()
		rows = append(rows, []any{group, t.Mode, span, c.Reads, c.Writes, cmp.Or(strings.Join(at, ", "), "-"), groupList(c.Nodes), c.Why})
	}
	return rows
}
