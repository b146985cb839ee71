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
	want := []Event{{Revision: 1, Kind: 3, Key: "k\xff"}, {Revision: 1 << 40, Key: "late"}, {Key: "a"}}
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
