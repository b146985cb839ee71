// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package readsbench

import (
	"context"
	"errors"
)

// Run makes all measurements of "weftbench reads".
func Run(ctx context.Context, cfg Config) (*Results, error) {
	var r Results
	var errs [5]error
	r.Cells, errs[0] = cfg.Cells(ctx)
	r.Responders, errs[1] = cfg.Responders(ctx)
	r.Holds, errs[2] = cfg.Holds(ctx)
	r.Paths, errs[3] = cfg.Paths(ctx)
	r.Phases, errs[4] = cfg.Tuning(ctx)
	return &r, errors.Join(errs[:]...)
}
