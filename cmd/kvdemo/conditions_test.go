// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// put with conditions and a time to live, and watch, which sees all of it afterwards.
func TestConditionsAndWatch(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	a := newAlone(t)
	a.while(func() {
		require.Zero(t, a.do("put", "cas/begin", "x").code)
		put := func(code int, args ...string) {
			r := a.do(append([]string{"put"}, args...)...)
			require.Equal(t, code, r.code, "%v: %s", args, r.err)
			if code != 0 {
				require.Contains(t, r.err, "the condition does not hold; nothing was changed")
			}
		}
		put(0, "cas/k", "1", "--if-absent")
		put(exitFailure, "cas/k", "2", "--if-absent")
		put(exitFailure, "cas/k", "2", "--if-value", "7")
		put(0, "cas/k", "2", "--if-value", "1")
		put(0, "cas/k", "3", "--if-present", "--ttl", "1ms")
		eventually(t, "the key to expire", func() bool { return a.do("get", "cas/k").code == exitNotFound })
		r := a.do("watch", "cas/", "--after", "1", "--count", "5")
		require.Zero(t, r.code, r.err)
		require.Regexp(t, `^put cas/begin = x at revision \d+ of group 1
put cas/k = 1 at revision \d+ of group 1
put cas/k = 2 at revision \d+ of group 1
put cas/k = 3 at revision \d+ of group 1
expire cas/k at revision \d+ of group 1
$`, r.out)

		// What put, get and del answer is the number that watch counts by.
		var at, got, gone, seen place
		show := func(into *place, args ...string) {
			r := a.do(append(args, "--json")...)
			require.Zero(t, r.code, r.err)
			require.NoError(t, json.Unmarshal([]byte(r.out), into), r.out)
		}
		show(&at, "put", "one/number", "x")
		show(&got, "get", "one/number")
		show(&gone, "del", "one/number")
		show(&seen, "watch", "one/", "--after", fmt.Sprint(at.Revision-1), "--count", "1")
		require.Equal(t, []place{at, at}, []place{got, seen})
		show(&seen, "watch", "one/", "--after", fmt.Sprint(at.Revision), "--count", "1")
		require.Equal(t, gone, seen)
	})
}
