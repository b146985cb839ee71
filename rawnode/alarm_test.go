// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The alarm has no timer until work is due, and rings once for each deadline.
func TestAlarmRingsOnceForEachDeadline(t *testing.T) {
	var a alarm
	defer a.stop()
	require.Nil(t, a.arm(0, false, 0))
	ring := a.arm(time.Millisecond, true, 0)
	select {
	case <-ring:
		a.rang()
	case <-time.After(10 * time.Second):
		t.Fatal("the alarm does not ring")
	}
	ring = a.arm(time.Hour, true, 0)
	require.NotNil(t, ring)
	ring = a.arm(2*time.Hour, false, 0)
	select {
	case <-ring:
		t.Fatal("nothing is due")
	default:
	}
	select {
	case <-a.arm(time.Hour+time.Nanosecond, true, time.Hour):
	case <-time.After(10 * time.Second):
		t.Fatal("the alarm does not ring for a deadline that has passed")
	}
}
