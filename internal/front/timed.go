// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front

import (
	"log/slog"
	"time"
)

// slowAfter is the time after which a wait without a bound is logged.
const slowAfter = 10 * time.Second

// Timed logs a wait that has no bound, because what it waits for may rightly take long, once it has
// lasted for slowAfter, until done is called.
func Timed(logger *slog.Logger, what string, args ...any) (done func()) {
	begun := time.Now()
	timer := time.AfterFunc(slowAfter, func() {
		logger.Warn(what+" has not ended: does the disk answer?", append(args, "for", slowAfter)...)
	})
	return func() {
		if !timer.Stop() {
			logger.Info(what+" has ended", append(args, "after", time.Since(begun).Round(time.Second))...)
		}
	}
}
