// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package compartments

import (
	"context"
	"fmt"
	"strconv"

	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/world"
)

// ZoneRow is a deployment over zones, and a size of commands.
type ZoneRow struct {
	Members, Readers, Value         int
	Upstream, Whole, Relayed, Coded Outcome
}

const (
	zones       = 3
	zoneClients = 64
)

// setApart has frames between zones take longer.
func (w *sim) setApart() {
	n := uint64(w.plan.Machines())
	for from := uint64(1); from <= n; from++ {
		for to := uint64(1); to <= n; to++ {
			if w.plan.zone(from) != w.plan.zone(to) {
				w.net.Link(from, to).Shape(world.Traits{Least: w.ZoneDelay, Rate: w.Rate}, world.NewDraws(w.Seed, 1000*from+to))
			}
		}
	}
}

// zoned measures the bytes between zones, with clients at the leader, whose results nobody waits for in another zone.
func (cfg Config) zoned(ctx context.Context) (rows []ZoneRow, err error) {
	for _, readers := range []int{0, 10} {
		for _, value := range []int{16, 1 << 10, 16 << 10, 64 << 10} {
			row, bed := ZoneRow{Members: 5, Readers: readers, Value: value}, cfg.Bed
			bed.Value, bed.Time = value, 6*cfg.Time
			plan := Plan{Members: row.Members, Readers: readers, Groups: 1, Batches: true, Way: hostnode.Lean, Clients: zoneClients, Zones: zones}
			for _, side := range []struct {
				to   *Outcome
				plan func(*Plan)
			}{
				{&row.Upstream, func(p *Plan) { p.Upstream = true }},
				{&row.Whole, func(*Plan) {}},
				{&row.Relayed, func(p *Plan) { p.Relays = true }},
				{&row.Coded, func(p *Plan) { p.Relays, p.Coded = true, true }},
			} {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				p := plan
				side.plan(&p)
				if *side.to, err = run(bed, p); err != nil {
					return nil, fmt.Errorf("zones, %d readers, %d bytes: %w", readers, value, err)
				}
			}
			rows = append(rows, row)
		}
	}
	fmt.Fprintln(cfg.Progress, "zones")
	return rows, nil
}

// zoned has what relays save.
func zoned(cfg Config, rows []ZoneRow) lab.Table {
	t := lab.Table{
		Heading: "## Zones",
		Title: fmt.Sprintf("Members and readers spread over %d zones, a frame from one to another %v under way; %d clients in shared frames at the leader, with\n"+
			"batches. Bytes that go from zone to zone for a byte of a command, all messages counted, of which one copy into each other zone is %d; and the\n"+
			"median time of a command in ms:", zones, cfg.ZoneDelay, zoneClients, zones-1),
		Rows: [][]string{{"members", "readers", "command", "upstream's library", "Weft, no zones", "relays", "relays, coded", "ms: no zones", "relays", "coded"}},
		Notes: []string{"A batch is an entry. Entries of less than 512 bytes go directly to each member. Coded entries travel in units, of which each member is sent\n" +
			"its own: 4/3 copies leave the leader, of which one goes into other zones. What the members of a zone lack together comes from other zones\n" +
			"once, and is passed on there: 8/3 cross in all."},
	}
	for _, r := range rows {
		row := []string{strconv.Itoa(r.Members), strconv.Itoa(r.Readers), lab.Bytes(r.Value)}
		for _, o := range []Outcome{r.Upstream, r.Whole, r.Relayed, r.Coded} {
			row = append(row, strconv.FormatFloat(o.Crossed/float64(r.Value), 'f', 3, 64))
		}
		for _, o := range []Outcome{r.Whole, r.Relayed, r.Coded} {
			row = append(row, millis(1e3*o.Median.Seconds()))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
