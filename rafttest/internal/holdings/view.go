// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package holdings

import (
	"fmt"
	"slices"

	"github.com/weftraft/weft/ecraft"
)

// View is the disks of a cluster at one moment.
type View struct {
	Truth *Truth
	Disks []Disk // by node
	// UpTo is the last entry whose riders count.
	UpTo uint64
}

// Disk returns the disk of a node, or nil.
func (v *View) Disk(node uint64) Disk {
	if node >= uint64(len(v.Disks)) {
		return nil
	}
	return v.Disks[node]
}

// Holds returns how many units of an entry a node holds.
func (v *View) Holds(node uint64, id ecraft.ID) int { return v.Truth.Holds(v.Disk(node), id, v.UpTo) }

// Least returns the sum of the least k holdings of an entry among voters.
func (v *View) Least(voters []uint64, k int, id ecraft.ID) int {
	var buf [16]int
	held := buf[:0]
	for _, node := range voters {
		held = append(held, v.Holds(node, id))
	}
	slices.Sort(held)
	sum := 0
	for _, h := range held[:min(k, len(held))] {
		sum += h
	}
	return sum
}

// Covered checks an entry just committed by a leader: the units of any half of the voters of
// each set (a majority, for an odd number) restore the entry.
func (v *View) Covered(sets [][]uint64, id ecraft.ID) error {
	need := v.Truth.facts[id].Need()
	for _, voters := range sets {
		half := (len(voters) + 1) / 2
		if sum := v.Least(voters, half, id); len(voters) > 0 && sum < need {
			return fmt.Errorf("entry %d of term %d is committed; some %d of the voters %v hold %d units, of %d that it needs%s",
				id.Index, id.Term, half, voters, sum, need, v.Table(voters, id))
		}
	}
	return nil
}

// Table lists the nodes' units of an entry.
func (v *View) Table(nodes []uint64, id ecraft.ID) string {
	text := ""
	for _, node := range nodes {
		if h := v.Holds(node, id); h == whole {
			text += fmt.Sprintf(" %d:released", node)
		} else {
			text += fmt.Sprintf(" %d:%d", node, h)
		}
	}
	return text
}
