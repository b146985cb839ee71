// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/rafttest/etcd/disk"
)

// member is a member of etcd, over all the processes of its life.
type member struct {
	*lab.Node
	name string
	api  *clientv3.Client
	// leased says that the member reports the number of reads served. latest is the last report of
	// the present process, before is the sum over earlier processes.
	leased         bool
	latest, before served
}

func newMember(n *lab.Node, leased bool) (*member, error) {
	api, err := newClient(n.Client)
	return &member{Node: n, name: fmt.Sprintf("n%d", n.ID), api: api, leased: leased}, err
}

// peer is the URL at which the other members find a member.
func (m *member) peer() string { return "http://" + m.Address }

// logged reads the log of a stopped member.
func (m *member) logged() (disk.Log, error) { return disk.Read(m.Data, "") }

// kill is kill -9. The process gets no chance to write anything.
func (m *member) kill() {
	if m.leased && m.Up() {
		m.sample(context.Background())
	}
	_ = m.Kill() // the process may have ended already
	m.before.add(m.latest)
	m.latest = served{}
}

func (m *member) status(ctx context.Context) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return m.api.Status(ctx, m.Client)
}
