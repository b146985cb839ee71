// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// A state machine keeps some commands for members. A member's inbox takes them of a member, and not of a gateway.
func TestGatewayProposesNothingThatIsForMembers(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	c.nodes[1].r.cfg.AdmitFromGateway = func(command []byte) error {
		if string(command) == "for members" {
			return errors.New("members alone do that")
		}
		return nil
	}
	c.elect(1)
	c.run(30)
	ofMember := c.cluster.propose(2, "for members")
	c.run(3)
	require.NoError(t, c.cluster.result(ofMember).Err)
	for command, refused := range map[string]bool{"for clients": false, "for members": true} {
		call := c.propose(command)
		c.run(3)
		err := c.result(call).Err
		require.Equal(t, refused, errors.Is(err, ErrRefused), command)
		if refused {
			require.ErrorContains(t, err, "node 9 is no member: members alone do that")
		}
	}
	require.Equal(t, []string{"for members", "for clients"}, c.agree())
}
