// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hostnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/weftraft/weft/internal/lab"
)

// Program is the node as a program of a cluster.
type Program struct{ lab.Serve }

// New returns the program, given the path of this program and more flags of each node.
func New(self string, args ...string) Program {
	return Program{lab.Serve{Program: []string{self, "hostnode"}, Args: args}}
}

// NewGateways returns the program of gateways for a cluster.
func NewGateways(self string, of *lab.Cluster) Program {
	var members []string
	for _, n := range of.Nodes {
		members = append(members, fmt.Sprintf("%d=%s", n.ID, n.Address))
	}
	return New(self, "--gateway-of="+strings.Join(members, ","), fmt.Sprintf("--cluster=%d", of.Number))
}

// Status implements [lab.Program].
func (Program) Status(ctx context.Context, n *lab.Node) (lab.Status, error) {
	var s Status
	err := Order(ctx, http.MethodGet, n, "/status", &s)
	return lab.Status{ID: uint64(n.ID), Leader: s.Lead}, err
}

// Transfer implements [lab.Program].
func (Program) Transfer(context.Context, *lab.Node, *lab.Node) error {
	return errors.New("the nodes take no order to hand over")
}

// Order asks a node for something: GET /status ([Status]) and /counts ([Counts]), POST /read and
// /write ([Done]) with clients, for and size, POST /listen (an address) with kind.
func Order(ctx context.Context, method string, n *lab.Node, path string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+n.Client+path, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it is read
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("node %d: %s", n.ID, strings.TrimSpace(string(body)))
	}
	return json.Unmarshal(body, answer)
}
