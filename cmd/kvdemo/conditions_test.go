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

// A put that compares revisions takes what put, get and watch answer.
func TestPutComparesRevisions(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	a := newAlone(t)
	a.while(func() {
		show := func(args ...string) (out struct {
			place
			Changed uint64
		}) {
			r := a.do(append(args, "--json")...)
			require.Zero(t, r.code, r.err)
			require.NoError(t, json.Unmarshal([]byte(r.out), &out), r.out)
			return out
		}
		put := func(code int, args ...string) {
			r := a.do(append([]string{"put", "rev"}, args...)...)
			require.Equal(t, code, r.code, "%v: %s", args, r.err)
		}
		put(exitFailure, "none", "--if-changed-after", "0")
		first := show("put", "rev", "first", "--if-revision", "0")
		before := show("get", "rev", "--revision")
		require.Equal(t, first.Revision, before.Changed)
		require.LessOrEqual(t, before.Changed, before.Revision) // the node proposes commands of its own
		show("put", "other", "x")
		at := show("put", "rev", "second", "--if-revision", fmt.Sprint(before.Changed))
		require.Greater(t, at.Revision, before.Changed)
		put(exitFailure, "third", "--if-revision", fmt.Sprint(before.Changed))
		put(exitFailure, "third", "--if-changed-after", fmt.Sprint(at.Revision))
		require.Equal(t, at.Revision, show("get", "rev", "--revision").Changed)
		require.Contains(t, a.do("get", "rev", "--revision").err, fmt.Sprintf("changed at revision %d of group 1", at.Revision))
		put(0, "third", "--if-changed-after", fmt.Sprint(before.Changed))
		seen := show("watch", "rev", "--after", fmt.Sprint(at.Revision), "--count", "1")
		require.Equal(t, seen.Revision, show("get", "rev", "--revision").Changed)
		put(exitUsage, "x", "--if-revision", "0", "--if-absent")
	})
}

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
		require.Equal(t, at, seen)
		require.LessOrEqual(t, at.Revision, got.Revision)
		show(&seen, "watch", "one/", "--after", fmt.Sprint(at.Revision), "--count", "1")
		require.Equal(t, gone, seen)
	})
}
