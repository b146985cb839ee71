// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// second is a load whose second range has the warehouses 2 and 3.
func second() func(key string) bool {
	w := newLoad(Plan{Ranges: 3, PerRange: 2}, nil)
	return w.mine(w.ranges[1])
}

func requests() []request {
	var b batch
	b.put(key(stocks, 2, 0, 7, 0), row{[]int64{1, -2, 3, 4}, []byte("text")}.encode())
	b.put(key(newOrders, 3, 1, 9, 0), nil)
	return []request{
		{kind: lockRows, txn: 1, wants: []want{{key(customers, 2, 1, 5, 0), true}, {key(stocks, 3, 0, 7, 0), false}}},
		{kind: intent, txn: 1 << 40, puts: b.puts},
		{kind: commit, txn: 3},
		{kind: letGo, txn: 4},
	}
}

func TestRequestsAndRowsComeThrough(t *testing.T) {
	for _, q := range requests() {
		got, err := decodeRequest(q.encode(), second())
		require.NoError(t, err)
		require.Equal(t, q, got)
	}
	rows := [][]byte{[]byte("a row"), nil, {1, 2}}
	got, err := decodeRows(encodeRows(rows), len(rows))
	require.NoError(t, err)
	require.Equal(t, rows, got)
}

func TestDamagedRequestsAndRowsAreRefused(t *testing.T) {
	all := requests()
	lock, keep, end := all[0].encode(), all[1].encode(), all[2].encode()
	first, last := lock[commandHead:commandHead+keyLen], lock[commandHead+keyLen:]
	elsewhere := request{kind: lockRows, wants: []want{{key(stocks, 4, 0, 0, 0), true}}}
	for what, b := range map[string][]byte{
		"nothing":                nil,
		"half a head":            lock[:5],
		"another kind":           command('x', 1, nil),
		"half a key":             lock[:len(lock)-1],
		"a key twice":            slices.Concat(lock, last),
		"keys in another order":  slices.Concat(lock[:commandHead], last, first),
		"a key of another range": elsewhere.encode(),
		"a row of another range": command(intent, 1, []byte(key(stocks, 1, 0, 0, 0)+"\x00")),
		"an intent as a row":     command(intent, 1, []byte(key(records+1, 2, 0, 0, 0)+"\x00")),
		"half a row":             keep[:commandHead+keyLen+5],
		"a row without a length": keep[:commandHead+keyLen],
		"a commit with rows":     slices.Concat(end, first),
	} {
		_, err := decodeRequest(b, second())
		require.Error(t, err, what)
	}
	answer := encodeRows([][]byte{[]byte("a row"), []byte("another")})
	for n, b := range map[int][]byte{0: answer, 1: answer, 3: answer, 2: answer[:len(answer)-1]} {
		_, err := decodeRows(b, n)
		require.Error(t, err, "%d rows", n)
	}
}

func FuzzRequests(f *testing.F) {
	for _, q := range requests() {
		f.Add(q.encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if q, err := decodeRequest(b, second()); err == nil {
			again, err := decodeRequest(q.encode(), second())
			require.NoError(t, err)
			require.Equal(t, q, again)
		}
		if rows, err := decodeRows(b, 3); err == nil {
			again, err := decodeRows(encodeRows(rows), 3)
			require.NoError(t, err)
			require.Equal(t, rows, again)
		}
	})
}
