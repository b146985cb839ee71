// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/weftraft/weft/internal/ports"
	"github.com/weftraft/weft/internal/process"
	"github.com/weftraft/weft/rafttest/etcd/disk"
)

// member is a member of etcd, over all the processes of its life.
type member struct {
	name   string
	dir    string
	client string // URL
	peer   string // URL
	api    *clientv3.Client
	// process is nil while the member is down.
	process *process.Process
	// leaving is set when the member is removed: its process then ends by itself, without a fault.
	leaving bool
	// paused is set while the process is stopped, or its disk hangs.
	paused bool
	// leased says that the member reports the number of reads served. latest is the last report of
	// the present process, before is the sum over earlier processes.
	leased         bool
	latest, before served
	// offset is the lead of the clocks of the next process over the system's clocks, except the
	// time of day.
	offset time.Duration
}

func newMember(dir, name string) (*member, error) {
	free, err := ports.Free(2)
	if err != nil {
		return nil, err
	}
	m := &member{
		name:   name,
		dir:    filepath.Join(dir, name),
		client: "http://" + free[0],
		peer:   "http://" + free[1],
	}
	m.api, err = newClient(m.client)
	return m, err
}

// snapshotCount is the number of entries between two snapshots.
const snapshotCount = 200

// start runs binary as this member. The output of the process is appended to a file beside the
// member's data.
func (m *member) start(binary string, env []string, initialCluster, state string) error {
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return err
	}
	args := append(append([]string{"env"}, env...), binary,
		"--name", m.name, "--data-dir", filepath.Join(m.dir, "data"),
		"--listen-client-urls", m.client, "--advertise-client-urls", m.client,
		"--listen-peer-urls", m.peer, "--initial-advertise-peer-urls", m.peer,
		"--initial-cluster", initialCluster, "--initial-cluster-state", state,
		"--heartbeat-interval", "100", "--election-timeout", "1000",
		// Only a few entries are kept, so that a new member needs a snapshot.
		"--snapshot-count", strconv.Itoa(snapshotCount), "--snapshot-catchup-entries", "50",
		"--logger", "zap", "--log-outputs", "stderr")
	if m.offset != 0 {
		args = append(inTimeNamespace(m.offset), args...)
	}
	var err error
	m.process, err = process.Start(args, m.logFile())
	return err
}

// logged reads the log of a stopped member.
func (m *member) logged() (disk.Log, error) { return disk.Read(filepath.Join(m.dir, "data"), "") }

func (m *member) logFile() string { return filepath.Join(m.dir, "log") }

// kill is kill -9. The process gets no chance to write anything.
func (m *member) kill() {
	if m.process == nil {
		return
	}
	if m.leased && !m.paused {
		m.sample(context.Background())
	}
	_ = m.process.Kill() // the process may have ended already
	m.process, m.paused = nil, false
	m.before.add(m.latest)
	m.latest = served{}
}

func (m *member) status(ctx context.Context) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return m.api.Status(ctx, m.client)
}
