// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

func TestParsePolicy(t *testing.T) {
	for text, want := range map[string]*kvpb.ReadPolicy{
		"default":       {},
		"local":         {Kind: kvpb.ReadPolicy_RESPONDER},
		"leader":        {Kind: kvpb.ReadPolicy_LEADER},
		"quorum":        {Kind: kvpb.ReadPolicy_QUORUM},
		"stale":         {Kind: kvpb.ReadPolicy_STALE},
		"stale:7/":      {Kind: kvpb.ReadPolicy_STALE, Entries: 7},
		"stale:/1500us": {Kind: kvpb.ReadPolicy_STALE, AgeUs: 1500},
		"stale:7/2s":    {Kind: kvpb.ReadPolicy_STALE, Entries: 7, AgeUs: 2e6},
	} {
		got, err := ParsePolicy(text)
		require.NoError(t, err)
		require.True(t, proto.Equal(want, got), "%s: %v", text, got)
	}
	for _, text := range []string{"", "x", "leader:1/1s", "stale:", "stale:7", "stale:7s/7s", "stale:-1/", "stale:/-1s", "stale:1/x"} {
		_, err := ParsePolicy(text)
		require.ErrorContains(t, err, "want default, local, leader, quorum, stale", text)
	}
	_, err := ParsePolicy("stale:/1ns")
	require.ErrorContains(t, err, "allows nothing to be missing")
}
