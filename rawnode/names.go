// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
)

// takesNames returns how the replica knows which nodes take names; nil if names are off, or the
// transport does not know.
func (c *Config) takesNames() *replica.Names {
	t, ok := c.Transport.(announcing)
	if !c.Names || !ok {
		return nil
	}
	return &replica.Names{Announced: func(node uint64) bool {
		kinds, _, known := t.Announced(node)
		return known && kinds.Has(wire.KindNamed)
	}}
}
