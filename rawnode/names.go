// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
)

// zoned is a Transport that knows in which zones nodes stand; empty: none, or not known. Learners have a relay also
// where no zone is known.
type zoned interface {
	Zone(node uint64) string
}

// names returns how the replica, where it leads, sends names in the place of data; nil if it sends none, because
// the transport does not know who takes names, or Names is off and the transport knows no zones.
func (c *Config) names() *replica.Names {
	t, ok := c.Transport.(announcing)
	if !ok {
		return nil
	}
	takes := func(kind wire.Kind) func(node uint64) bool {
		return func(node uint64) bool {
			kinds, _, known := t.Announced(node)
			return known && kinds.Has(kind)
		}
	}
	n := &replica.Names{}
	if c.Names {
		n.Announced = takes(wire.KindNamed)
	}
	if z, ok := t.(zoned); ok {
		n.Zone, n.Relayed, n.Runs = z.Zone, takes(wire.KindWant), takes(wire.KindRun)
	}
	if n.Announced == nil && n.Zone == nil {
		return nil
	}
	return n
}
