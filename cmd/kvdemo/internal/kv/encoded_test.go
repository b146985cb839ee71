// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestResultsReachGatewaysAsTheyAre(t *testing.T) {
	for _, want := range []Result{
		{}, {Existed: true, Revision: 1 << 40}, {Repeated: true, Session: 1 << 63}, {Swapped: true, Value: []byte("v")}, {Expired: 12},
		{Txn: &TxnResult{Forgotten: true, Succeeded: true}},
		{Revision: 9, Txn: &TxnResult{Succeeded: true, Actions: []ActionResult{{Code: TxnFull, Number: -7, Value: []byte("x")}, {Existed: true}}}},
		// A session keeps no transaction of this size; a gateway gets it.
		{Txn: &TxnResult{Actions: []ActionResult{{Value: make([]byte, maxKeptTxnBytes+1)}}}},
	} {
		b := want.encode()
		got, err := DecodeResult(b)
		require.NoError(t, err)
		require.Equal(t, want, got)
		for cut := range min(len(b), 100) {
			_, err := DecodeResult(b[:cut])
			require.ErrorIs(t, err, ErrInvalid)
		}
		_, err = DecodeResult(append(b, 0))
		require.ErrorIs(t, err, ErrInvalid)
	}
}

func TestErrorsOfResultsReachGatewaysByKindAndText(t *testing.T) {
	for _, kind := range errorKinds {
		want := Result{Err: fmt.Errorf("%w: for a reason", kind), Missing: []int{0, 63}}
		got, err := DecodeResult(want.encode())
		require.NoError(t, err)
		require.ErrorIs(t, got.Err, kind)
		require.EqualError(t, got.Err, want.Err.Error())
		require.Equal(t, want.Missing, got.Missing)
	}
	got, err := DecodeResult(Result{Err: ErrDamaged}.encode())
	require.NoError(t, err)
	require.EqualError(t, got.Err, ErrDamaged.Error(), "of no kind that results have")
	_, err = (&Store{}).EncodeResult("no result")
	require.ErrorContains(t, err, "string")
}

func TestEventsReachGatewaysAsTheyAre(t *testing.T) {
	want := []Event{{Revision: 1, Kind: 3, Key: "k\xff", Size: 5, Value: []byte("value")}, {Revision: 1 << 40, Key: "large", Size: 1 << 30}, {Key: "empty", Value: []byte{}}}
	b := EncodeEvents(want)
	got, err := DecodeEvents(b)
	require.NoError(t, err)
	require.Equal(t, want, got)
	none, err := DecodeEvents(nil)
	require.NoError(t, err)
	require.Empty(t, none)
	cut := 0
	for n := 1; n < len(b); n++ {
		if _, err := DecodeEvents(b[:n]); err != nil {
			require.ErrorIs(t, err, ErrInvalid)
			cut++
		}
	}
	require.Equal(t, len(b)-1-2, cut, "but for the ends of the first and the second event")
}

func TestActionsOfGatewaysOnlyRead(t *testing.T) {
	want := []Action{{Kind: ActGet, Key: "a"}, {Kind: ActSortedScore, Key: "b", Value: []byte("member")}}
	b, err := EncodeActions(want)
	require.NoError(t, err)
	got, err := DecodeActions(b)
	require.NoError(t, err)
	require.Equal(t, want[1], got[1])
	writes, err := EncodeActions([]Action{{Kind: ActGet, Key: "a"}, {Kind: ActDelete, Key: "a"}})
	require.NoError(t, err)
	for _, b := range [][]byte{nil, {0}, writes, (&Command{Op: OpDelete, Key: "a"}).Encode(), (&Command{Op: OpTxn, Txn: &Txn{}}).Encode()} {
		_, err = DecodeActions(b)
		require.ErrorIs(t, err, ErrInvalid)
	}
	_, err = DecodeResults(EncodeResults([]ActionResult{{}}), 2)
	require.ErrorIs(t, err, ErrInvalid)
}

func TestQueriesAndPagesReachNodesAndGatewaysAsTheyAre(t *testing.T) {
	for _, want := range []Query{{}, {Prefix: "\xff", After: "b", Limit: -1, Digests: true}, {Limit: MaxPage, Types: true}} {
		b := want.Encode()
		got, err := DecodeQuery(b)
		require.NoError(t, err)
		require.Equal(t, want, got)
		for cut := range len(b) {
			_, err := DecodeQuery(b[:cut])
			require.ErrorIs(t, err, ErrInvalid)
		}
		_, err = DecodeQuery(append(b, 0))
		require.ErrorIs(t, err, ErrInvalid)
	}
	want := Page{Applied: 7, Next: "k", Items: []Item{{Key: "\xff", Size: 1 << 40, SHA256: []byte("digest")}, {Key: "k", Type: TypeHash}}}
	b := want.Encode()
	got, err := DecodePage(b)
	require.NoError(t, err)
	require.Equal(t, want, got)
	whole := 0
	for cut := range len(b) {
		if _, err := DecodePage(b[:cut]); err == nil {
			whole++
		} else {
			require.ErrorIs(t, err, ErrInvalid)
		}
	}
	require.Equal(t, 2, whole, "the pages that end behind their head, and behind the first item")
}
