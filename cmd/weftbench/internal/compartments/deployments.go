// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package compartments

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
	"github.com/weftraft/weft/internal/lab"
)

// sizes are deployments, for writes, and for mixes of which half are reads.
func sizes() []Plan {
	return []Plan{
		{Members: 3, Groups: 1},
		{Members: 3, Groups: 1, Spread: true},
		{Members: 5, Groups: 1, Spread: true},
		{Members: 7, Groups: 1, Spread: true},
		{Members: 3, Groups: 1, Spread: true, Gateways: 3},
		{Members: 3, Groups: 1, Spread: true, Gateways: 8},
		{Members: 5, Groups: 1, Spread: true, Gateways: 8},
		{Members: 7, Groups: 1, Spread: true, Gateways: 8},
		{Members: 9, Replicas: 3, Groups: 3, Spread: true, Gateways: 24},
		{Members: 3, Groups: 1, Spread: true, Reads: 0.9},
		{Members: 3, Groups: 1, Spread: true, Reads: 0.9, Readers: 3},
		{Members: 3, Groups: 1, Spread: true, Reads: 0.9, Readers: 6},
	}
}

// deployments runs each with the most clients, by gRPC, and with batches.
func (cfg Config) deployments(ctx context.Context) (cells []Cell, err error) {
	for _, p := range sizes() {
		p.Batches, p.Way, p.Clients = true, hostnode.RPC, slices.Max(cfg.Clients)
		o, err := cfg.run(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.words(), err)
		}
		cells = append(cells, Cell{"deployment", p.Way.String(), true, o})
	}
	fmt.Fprintln(cfg.Progress, "deployments")
	return cells, nil
}

// words names a deployment.
func (p Plan) words() string {
	text := fmt.Sprintf("%d members", p.Members)
	if p.Groups > 1 {
		text += fmt.Sprintf(", %d groups", p.Groups)
	}
	if p.Gateways > 0 {
		text += fmt.Sprintf(", %d gateways", p.Gateways)
	}
	if p.Readers > 0 {
		text += fmt.Sprintf(", %d readers", p.Readers)
	}
	if !p.Spread {
		text += ", clients at the leader"
	}
	return text
}

// next is what would take work from the busiest processor.
func (o *Outcome) next() string {
	p, busiest := o.Plan, o.Busiest()
	switch {
	case busiest.Most < 0.9:
		return "none: processors have time"
	case busiest.Kind == "reader", busiest.Kind == "gateway":
		return busiest.Kind + "s"
	case !p.Spread:
		return "calls at every member"
	case p.Reads > 0 && p.Readers == 0:
		return "readers"
	case p.Gateways == 0:
		return "gateways"
	}
	return "groups on machines of their own"
}

// deployments has what a deployment does, what a call costs there, and what to add.
func deployments(cells []Cell) lab.Table {
	t := lab.Table{
		Heading: "## What a deployment costs, and when to add which compartment",
		Title:   "The most calls a second of a deployment (clients by gRPC, with batches), and what a call takes of all processors and sends over all links:",
		Rows:    [][]string{{"deployment", "machines", "reads", "calls/s", "µs a call", "bytes a call", "busiest", "add next"}},
		Notes:   []string{"Add a compartment when the busiest processor is the one that it relieves: below its rate a deployment needs nothing more, and gains nothing by it but\nlatency that is longer. Processors of one kind, not machines, are what runs out: see the column of the busiest."},
	}
	for _, c := range cells {
		t.Rows = append(t.Rows, []string{
			c.Plan.words(), strconv.Itoa(c.Plan.Machines()), percent(c.Plan.Reads), number(c.Rate()), micros(c.AllPer.Seconds()), number(c.AllBytes),
			c.Busiest().Kind + ", " + percent(c.Busiest().Most), c.next(),
		})
	}
	return t
}
