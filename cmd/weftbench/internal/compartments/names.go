// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package compartments

import (
	"context"
	"fmt"
	"strconv"

	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
	"github.com/weftraft/weft/internal/lab"
)

// NameRow is a size of a group and of commands, without names and with names.
type NameRow struct {
	Members, Value int
	Without, With  Outcome
}

// nameClients call at all members, which forward.
const nameClients = 1000

// named measures names: with batches, and clients in shared frames.
func (cfg Config) named(ctx context.Context) (rows []NameRow, err error) {
	for _, members := range []int{3, 5, 7} {
		for _, value := range []int{16, 1 << 10, 4 << 10} {
			row, bed := NameRow{Members: members, Value: value}, cfg.Bed
			bed.Value = value
			for _, names := range []bool{false, true} {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				o, err := run(bed, Plan{Members: members, Groups: 1, Spread: true, Batches: true, Way: hostnode.Lean, Clients: nameClients, Names: names})
				if err != nil {
					return nil, fmt.Errorf("%d members, %d bytes, names %v: %w", members, value, names, err)
				}
				if names {
					row.With = o
				} else {
					row.Without = o
				}
			}
			rows = append(rows, row)
		}
	}
	fmt.Fprintln(cfg.Progress, "names")
	return rows, nil
}

// named has what names save.
func named(rows []NameRow) lab.Table {
	t := lab.Table{
		Heading: "## Names",
		Title:   fmt.Sprintf("%d clients in shared frames at all members, with batches: commands a second, and bytes that the leader sends for a byte of a command, of which names leave 1 - 1/N where members forward alike:", nameClients),
		Rows:    [][]string{{"members", "command", "commands/s", "with names", "gain", "bytes", "with names", "left"}},
		Notes:   []string{"The checksums of names are not in the costs of processors."},
	}
	for _, r := range rows {
		per := func(o Outcome) float64 { return o.Egress / float64(r.Value) }
		t.Rows = append(t.Rows, []string{
			strconv.Itoa(r.Members), lab.Bytes(r.Value), number(r.Without.Rate()), number(r.With.Rate()), strconv.FormatFloat(r.With.Rate()/r.Without.Rate(), 'f', 2, 64) + "x",
			strconv.FormatFloat(per(r.Without), 'f', 2, 64), strconv.FormatFloat(per(r.With), 'f', 2, 64), strconv.FormatFloat(per(r.With)/per(r.Without), 'f', 2, 64),
		})
	}
	return t
}
