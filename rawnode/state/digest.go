// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"fmt"

	"github.com/weftraft/weft/internal/compare"
)

// Digest has replicas compared: see Comparable in package weft. The sum is one of the sessions and
// of what the machine writes as a [Digester]; there is none for another machine.
func (m *Memory[M]) Digest() (sum func(context.Context) (uint64, error), err error) {
	if !m.digests {
		return nil, nil // and nothing is forked
	}
	s, release := m.setAside()
	d, ok := s.machine.(Digester)
	if !ok { // the copy is another type than the original
		release()
		return nil, nil
	}
	return func(ctx context.Context) (uint64, error) {
		defer release()
		letGo, err := m.alone(ctx)
		if err != nil {
			return 0, err
		}
		defer letGo()
		total := compare.NewSum(ctx)
		for _, row := range s.rows {
			if _, err := total.Write(row); err != nil {
				return 0, err
			}
		}
		if err := d.Digest(total); err != nil {
			return 0, fmt.Errorf("the machine's Digest: %w", err)
		}
		return total.Sum64(), nil
	}, nil
}
