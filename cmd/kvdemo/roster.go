// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

func newRoster() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "roster",
		Short: "Say which nodes answer linearizable reads from their own state",
		Long: "roster is about nodes that run with serve --leases. A node that it names, a responder, answers\n" +
			"linearizable reads from its own state, without asking the leader. A write of a key waits for the\n" +
			"responders of the key; one that fails holds writes up once, for less than two seconds. What was\n" +
			"named is kept, also when the leader changes or all nodes are restarted. With roster tuner on, or\n" +
			"serve --lease-tuner, leaders choose responders as well, by where keys are read.",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRosterShow(), newRosterName(), newRosterUnname(), newRosterTuner(), newRosterRetire("retire"), newRosterRetire("resume"))
	return cmd
}

func newRosterShow() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show who is named, and who is wanted",
	}
	return f.runs(cmd, func(ctx context.Context, c *client.Client, _ []string) error {
		rosters, err := newRosters(c.Status(ctx))
		if err != nil {
			return err
		}
		return f.printRosters(cmd, rosters)
	})
}

func newRosterName() *cobra.Command {
	var span string
	cmd := rosterVerb("name NODE...", "Have nodes answer reads, of all keys or those of a span", cobra.MinimumNArgs(1),
		func(ctx context.Context, c *client.Client, nodes []uint64) (settled, error) {
			s, err := parseSpan(span)
			if err != nil {
				return nil, err
			}
			resp, err := client.Admin(ctx, c, kvpb.AdminClient.NameResponders, &kvpb.NameRespondersRequest{Span: s, Nodes: nodes})
			return namedAs(resp), err
		})
	cmd.Long = "name has members, voters or learners, answer reads. They take the place of those that were named\n" +
		"for the same span. It waits until they are named, which a node is that keeps up; if that takes\n" +
		"longer than --timeout it fails, and they are named later."
	cmd.Example = "  kvdemo roster name 1 2 3\n" +
		"  kvdemo roster name 2 3 --span user/:user0"
	cmd.Flags().StringVar(&span, "span", ":", spanHelp)
	return cmd
}

func newRosterUnname() *cobra.Command {
	var span string
	cmd := rosterVerb("unname [NODE...]", "Have nodes answer reads no more: these, or all that were named", cobra.ArbitraryArgs,
		func(ctx context.Context, c *client.Client, nodes []uint64) (settled, error) {
			req := &kvpb.UnnameRespondersRequest{Nodes: nodes}
			if span != "" {
				var err error
				if req.Span, err = parseSpan(span); err != nil {
					return nil, err
				}
			}
			resp, err := client.Admin(ctx, c, kvpb.AdminClient.UnnameResponders, req)
			return namedAs(resp), err
		})
	cmd.Flags().StringVar(&span, "span", "", spanHelp+" (default: each that was named)")
	return cmd
}

func newRosterRetire(use string) *cobra.Command {
	resume := use == "resume"
	short := "Switch leases off at all nodes, so that nodes may be started without them"
	if resume {
		short = "Switch leases on again after retire"
	}
	return rosterVerb(use, short, cobra.NoArgs, func(ctx context.Context, c *client.Client, _ []uint64) (settled, error) {
		resp, err := client.Admin(ctx, c, kvpb.AdminClient.RetireLeases, &kvpb.RetireLeasesRequest{Resume: resume})
		named := namedAs(resp)
		return func(r groupRoster) bool { return r.Retired != resume && (!resume || named(r)) }, err
	})
}

// settled reports whether what a verb wants has come about in a group.
type settled func(groupRoster) bool

// rosterVerb makes a command that changes rosters, waits until they are changed, and
// prints them.
func rosterVerb(use, short string, args cobra.PositionalArgs, do func(context.Context, *client.Client, []uint64) (settled, error)) *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{Use: use, Short: short, Args: args}
	return f.runs(cmd, func(ctx context.Context, c *client.Client, args []string) error {
		var nodes []uint64
		for _, arg := range args {
			id, err := nodeID(cmd, arg)
			if err != nil {
				return err
			}
			nodes = append(nodes, id)
		}
		done, err := do(ctx, c, nodes)
		if err != nil {
			return err
		}
		return f.waitAndPrint(ctx, cmd, c, done)
	})
}

const spanHelp = "keys from:to, without to; an empty side is the beginning or the end of all keys"

// parseSpan reads from:to.
func parseSpan(s string) (*kvpb.Span, error) {
	from, to, ok := strings.Cut(s, ":")
	if !ok || strings.Contains(to, ":") || to != "" && from >= to {
		return nil, fmt.Errorf("--span: %q, want from:to with from below to, and no other colon; %w", s, errUsage)
	}
	return &kvpb.Span{Start: []byte(from), End: []byte(to)}, nil
}

// groupRoster is a group's roster in the output of roster --json.
type groupRoster struct {
	Group   uint64             `json:"group"`
	Term    uint64             `json:"term"`
	Roster  uint64             `json:"roster"` // 0: none
	Leader  uint64             `json:"leader,omitempty"`
	Retired bool               `json:"retired,omitempty"` // nodes may be started without leases
	Named   []assignmentResult `json:"named,omitempty"`
	Wanted  []assignmentResult `json:"wanted,omitempty"`
	Answer  []uint64           `json:"answer,omitempty"` // nodes that answer reads of all keys now, the leader too
	Tuner   *tunerResult       `json:"tuner,omitempty"`  // the leader's, or if it does not answer, what the roster says
}

// errNoLeases says that there is nothing to show.
var errNoLeases = errors.New("no node of --endpoints that answers runs with roster leases: start all nodes with serve --leases")

// newRosters returns the newest roster of each group, as nodes say.
func newRosters(nodes []client.NodeStatus) ([]groupRoster, error) {
	rosters := map[uint64]*groupRoster{}
	var ids []uint64
	var errs []error
	for _, n := range nodes {
		if n.Err != nil {
			errs = append(errs, n.Err)
		}
		for _, g := range n.Response.GetGroups() {
			l := newLeasesResult(g.GetLeases())
			if l == nil {
				continue
			}
			r := rosters[g.GetId()]
			if r == nil {
				r = &groupRoster{Group: g.GetId()}
				rosters[g.GetId()], ids = r, append(ids, g.GetId())
			}
			r.add(n.Response.GetId(), g, l)
		}
	}
	switch {
	case len(errs) == len(nodes):
		return nil, errs[0]
	case len(ids) == 0:
		return nil, errNoLeases
	}
	slices.Sort(ids)
	var list []groupRoster
	for _, id := range ids {
		list = append(list, *rosters[id])
	}
	return list, nil
}

// add takes what one node says.
func (r *groupRoster) add(id uint64, g *kvpb.StatusResponse_Group, l *leasesResult) {
	if l.Term > r.Term || l.Term == r.Term && l.Roster > r.Roster {
		r.Term, r.Roster, r.Named, r.Wanted, r.Leader = l.Term, l.Roster, l.Named, l.Wanted, g.GetLeader()
		r.Tuner = l.Tuner
	}
	if g.GetRole() == "leader" {
		r.Retired, r.Tuner = l.Retired, l.Tuner
	}
	if l.Stable {
		r.Answer = append(r.Answer, id)
	}
}

// namedAs reports whether a roster names those that operators want now.
func namedAs(resp *kvpb.RespondersResponse) settled {
	want := newAssignments(resp.GetWanted())
	return func(r groupRoster) bool {
		var untuned []assignmentResult
		for _, w := range r.Wanted {
			if !w.Tuned {
				untuned = append(untuned, w)
			}
		}
		return slices.EqualFunc(want, untuned, assignmentResult.equal) && !slices.ContainsFunc(want, func(w assignmentResult) bool {
			return len(r.named(w)) < len(w.Nodes)
		})
	}
}

// named returns the nodes of those wanted for a span that a roster names. The leader
// needs no name: it answers reads of all keys.
func (r groupRoster) named(w assignmentResult) (nodes []uint64) {
	for _, id := range w.Nodes {
		if id == r.Leader && !r.Retired || slices.ContainsFunc(r.Named, func(a assignmentResult) bool {
			return a.From == w.From && a.To == w.To && slices.Contains(a.Nodes, id)
		}) {
			nodes = append(nodes, id)
		}
	}
	return nodes
}

func (a assignmentResult) equal(b assignmentResult) bool {
	return a.From == b.From && a.To == b.To && slices.Equal(a.Nodes, b.Nodes)
}

// errLater says that what was wanted is known to the cluster, and has yet to happen.
var errLater = errors.New("it is known to the cluster, and will be done when the nodes can")

// waitAndPrint waits until all groups are settled, and prints their rosters.
func (f *clientFlags) waitAndPrint(ctx context.Context, cmd *cobra.Command, c *client.Client, done settled) error {
	rosters, err := waitRosters(ctx, c, done)
	return errors.Join(f.printRosters(cmd, rosters), err)
}

// waitRosters waits until all groups are settled.
func waitRosters(ctx context.Context, c *client.Client, done settled) ([]groupRoster, error) {
	var rosters []groupRoster
	for {
		if now, err := newRosters(c.Status(ctx)); err == nil {
			rosters = now
			i := slices.IndexFunc(rosters, func(r groupRoster) bool { return !done(r) })
			if i < 0 {
				return rosters, nil
			}
		}
		select {
		case <-ctx.Done():
			return rosters, fmt.Errorf("not done in time: %w; see kvdemo roster show, with all nodes as --endpoints", errLater)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// printRosters prints a row for each span of each group.
func (f *clientFlags) printRosters(cmd *cobra.Command, rosters []groupRoster) error {
	t := f.table(cmd, "GROUP", "ROSTER", "SPAN", "WANTED", "NAMED", "ANSWER NOW", "TUNER")
	for _, r := range rosters {
		if err := t.rows(r, r.rows()...); err != nil {
			return err
		}
	}
	return errors.Join(t.flush(), f.printTuners(cmd, rosters))
}

// rows are the lines of a group.
func (r groupRoster) rows() (rows [][]any) {
	number := fmt.Sprintf("%d.%d", r.Term, r.Roster)
	answer := groupList(r.Answer)
	if r.Retired {
		answer = "retired"
	}
	for _, w := range r.Wanted {
		wanted := groupList(w.Nodes)
		if w.Tuned {
			wanted += " (tuner)"
		}
		rows = append(rows, []any{r.Group, number, w.span(), wanted, groupList(r.named(w)), answer, r.Tuner.mode()})
	}
	if len(rows) == 0 {
		rows = [][]any{{r.Group, number, "all", "-", "-", answer, r.Tuner.mode()}}
	}
	return rows
}
