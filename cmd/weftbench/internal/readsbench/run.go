// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package readsbench

import (
	"context"
	"errors"

	"github.com/weftraft/weft/internal/lab"
)

// Run makes all measurements of "weftbench reads".
func Run(ctx context.Context, cfg Config) (*lab.Section, error) {
	var r results
	var errs [5]error
	r.Cells, errs[0] = cfg.Cells(ctx)
	r.Responders, errs[1] = cfg.Responders(ctx)
	r.Holds, errs[2] = cfg.Holds(ctx)
	r.Paths, errs[3] = cfg.Paths(ctx)
	r.Phases, errs[4] = cfg.Tuning(ctx)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return report(cfg, &r), nil
}
