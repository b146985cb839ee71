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

func TestLooksOfGatewaysAreOfOneGroupAndOnlyRead(t *testing.T) {
	read, err := EncodeLook([]Action{{Kind: ActGet, Key: "a"}})
	require.NoError(t, err)
	group, err := LookedAt(read, 5)
	require.NoError(t, err)
	require.Equal(t, GroupOf("a", 5), group)
	two, err := EncodeLook([]Action{{Kind: ActGet, Key: "a"}, {Kind: ActHas, Key: "b"}, {Kind: ActHas, Key: "c"}, {Kind: ActHas, Key: "d"}})
	require.NoError(t, err)
	_, err = LookedAt(two, 1000)
	require.ErrorIs(t, err, ErrInvalid)
	for _, b := range [][]byte{nil, {0}, (&Command{Op: OpDelete, Key: "a"}).Encode()} {
		_, err = LookedAt(b, 1)
		require.ErrorIs(t, err, ErrInvalid)
	}
	_, err = DecodeLook((&TxnResult{Actions: []ActionResult{{}}}).append(nil), 2)
	require.ErrorIs(t, err, ErrInvalid)
}
