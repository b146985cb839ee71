// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/strangers"
	"github.com/weftraft/weft/internal/wire"
)

// A peer that is slow to say hello gets through although many strangers of another
// address dial meanwhile.
func TestSlowHelloGetsThroughAFlood(t *testing.T) {
	a, _ := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: ""}, DialTimeout: time.Hour})
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	c, err := dialer.Dial("tcp", a.Addr().String())
	if err != nil {
		t.Skipf("this machine has no 127.0.0.2: %v", err)
	}
	t.Cleanup(func() { _ = c.Close() }) // it is of no use any more
	eventually(t, "it is accepted", func() bool { return a.Stats().Strangers == 1 })
	strange(t, a, 3*strangers.Limit)
	eventually(t, "strangers are turned away", func() bool { return a.Stats().Refusals[refusedCrowd.String()] >= 2*strangers.Limit })

	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	require.NoError(t, hello(wire.ClassControl).Write(c))
	answer, err := wire.ReadAnswer(c)
	require.NoError(t, err, "its place was given away")
	require.Empty(t, answer.Refused)
}
