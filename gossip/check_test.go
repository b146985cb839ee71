// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"fmt"

	"github.com/weftraft/weft/ecraft"
)

// Check returns an error if an invariant does not hold. It looks at everything,
// so it is slow.
func (s *Store) Check() error {
	bytes, cached, exempt, evictable := s.early.bytes, 0, 0, s.early.bytes
	last, oldest := uint64(0), true
	for _, r := range s.entries {
		if r.id.Index <= last {
			return fmt.Errorf("gossip: index %d stands after %d", r.id.Index, last)
		}
		last = r.id.Index
		bytes += r.bytes
		kept := r.pins > 0
		if r.id.Index <= s.applied {
			cached += r.bytes
		} else {
			kept = kept || oldest
			oldest = false
		}
		if kept {
			exempt += r.bytes
		} else {
			evictable += r.bytes
		}
		if err := r.check(); err != nil {
			return err
		}
	}
	switch {
	case bytes != s.bytes || cached != s.cached:
		return fmt.Errorf("gossip: %d bytes, %d of them applied, are accounted as %d, %d", bytes, cached, s.bytes, s.cached)
	case bytes > s.budget && evictable > 0:
		return fmt.Errorf("gossip: %d bytes of %d, of which %d could go", bytes, s.budget, evictable)
	case bytes > max(s.budget, exempt):
		return fmt.Errorf("gossip: %d bytes of %d, %d exempt", bytes, s.budget, exempt)
	}
	early := 0
	for _, list := range s.early.byID {
		for _, e := range list {
			early += e.bytes()
		}
	}
	if early != s.early.bytes || early > s.budget/earlyShare {
		return fmt.Errorf("gossip: %d bytes of early units, accounted %d, of %d", early, s.early.bytes, s.budget/earlyShare)
	}
	return nil
}

// check returns an error if an entry's account is wrong.
func (r *record) check() error {
	want := recordBytes + len(r.payload)
	if r.payload == nil {
		want = recordBytes + unitsBytes(r.h)
		if r.bytes < want+r.units.Bytes() || r.units.Missing() == 0 {
			return fmt.Errorf("gossip: index %d with %d bytes, accounted %d, is not complete", r.id.Index, want+r.units.Bytes(), r.bytes)
		}
		return nil
	}
	if r.bytes != want {
		return fmt.Errorf("gossip: index %d has %d bytes, accounted %d", r.id.Index, want, r.bytes)
	}
	if ecraft.Checksum(r.payload) != r.h.PayloadCRC {
		return fmt.Errorf("gossip: index %d has a payload with a wrong CRC", r.id.Index)
	}
	return nil
}
