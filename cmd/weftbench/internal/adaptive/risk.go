// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"math/bits"

	"github.com/weftraft/weft/ecraft"
)

// An entry is to survive its acknowledgement: whichever minority fails at that moment, the others restore the entry from
// what they have stored. The check looks at every majority, and knows nothing of the rules by which sides commit.

// holdings is what members are known to hold of an entry, the leader first; any d units restore the entry.
type holdings struct {
	d    int
	sets [maxFollowers + 1]ecraft.Set
}

// atRisk reports whether an entry that commits now could be lost.
func (m *model) atRisk(index uint64) bool {
	e := &m.log[index-1]
	h := holdings{d: e.d}
	for u := range e.d {
		h.sets[0].Add(u)
	}
	for i, f := range m.followers {
		switch units := m.held(i, e, index, uint64(len(m.log))); {
		case e.sets == nil:
			h.sets[i+1] = e.layout.Strip(i, units)
		case units > e.sets[i].Len():
			h.sets[i+1] = h.sets[0] // sent again, whole
		case f.match >= index:
			h.sets[i+1] = e.sets[i]
		}
	}
	risk, known := m.risks[h]
	if !known {
		risk = h.loses(m.n)
		m.risks[h] = risk
	}
	return risk
}

// loses reports whether some majority of n members cannot restore the entry.
func (h *holdings) loses(n int) bool {
	for members := range uint(1) << n {
		if bits.OnesCount(members) != n/2+1 {
			continue
		}
		var units ecraft.Set
		for i := range n {
			if members>>i&1 != 0 {
				units = units.Union(h.sets[i])
			}
		}
		if units.Len() < h.d {
			return true
		}
	}
	return false
}
