// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hostnode

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/weftraft/weft/internal/lab"
)

// Program is the node as a program of a cluster. By [lab.Ask], nodes take the orders GET /status ([Status]) and /counts
// ([Counts]), POST /read and /write ([Done]) with clients, for and size, and POST /listen (an address) with kind.
type Program struct{ lab.Serve }

// New returns the program, given the path of this program and more flags of each node.
func New(self string, args ...string) Program {
	return Program{lab.Serve{Program: []string{self, "hostnode"}, Args: args}}
}

// NewGateways returns the program of gateways for a cluster.
func NewGateways(self string, of *lab.Cluster) Program {
	return New(self, "--gateway-of="+of.Peers(), fmt.Sprintf("--cluster=%d", of.Number))
}

// Status implements [lab.Program].
func (Program) Status(ctx context.Context, n *lab.Node) (lab.Status, error) {
	var s Status
	err := lab.Ask(ctx, http.MethodGet, n, "/status", "", &s)
	return lab.Status{ID: uint64(n.ID), Leader: s.Lead}, err
}

// Transfer implements [lab.Program].
func (Program) Transfer(context.Context, *lab.Node, *lab.Node) error {
	return errors.New("the nodes take no order to hand over")
}
