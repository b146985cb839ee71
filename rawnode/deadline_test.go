// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"context"
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// beforeSetBack makes a moment one from before the wall clock was set back by d: its reading of that clock is d ahead, and
// its reading of the monotonic clock as it was.
func beforeSetBack(at *time.Time, d time.Duration) {
	const second = 1 << 30 // in the first word of a time with both readings, which no bubble of testing/synctest has
	*(*uint64)(unsafe.Pointer(at)) += uint64(d/time.Second) * second
}

// A call has the time that its context leaves, though the wall clock was set back since the host's start, and the context has
// its deadline from that clock; and a time without a practical end, if that is what the user has set.
func TestDeadlinesOfCalls(t *testing.T) {
	inAnHour, cancel := context.WithDeadline(t.Context(), time.Now().Round(0).Add(time.Hour))
	defer cancel()
	for name, c := range map[string]struct {
		ctx         context.Context
		least, most time.Duration
	}{
		"a deadline of the wall clock":     {inAnHour, 59 * time.Minute, time.Hour},
		"no deadline, and no bound either": {t.Context(), 1000 * time.Hour, math.MaxInt64 / 2},
	} {
		t.Run(name, func(t *testing.T) {
			h := &Host{inbox: newInbox(inboxLimits{calls: 9}), start: time.Now(), cfg: Config{DefaultTimeout: math.MaxInt64}}
			beforeSetBack(&h.start, 3*time.Hour)
			require.WithinDuration(t, time.Now().Add(3*time.Hour), h.start.Round(0), time.Minute)
			require.Less(t, h.now(), time.Minute)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = h.call(c.ctx, opPropose, func(*hostCall) {})
			}()
			<-h.inbox.ready
			call := h.inbox.take(nil, time.Now())[0].call
			left := call.deadline - h.now()
			require.GreaterOrEqual(t, left, c.least)
			require.LessOrEqual(t, left, c.most)
			call.ended <- callEnd{}
			<-ended
		})
	}
}
