// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

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
	process *exec.Cmd
	exited  chan struct{}
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

func newMember(dir, name string, port func() (int, error)) (*member, error) {
	clientPort, err := port()
	if err != nil {
		return nil, err
	}
	peerPort, err := port()
	if err != nil {
		return nil, err
	}
	m := &member{
		name:   name,
		dir:    filepath.Join(dir, name),
		client: fmt.Sprintf("http://127.0.0.1:%d", clientPort),
		peer:   fmt.Sprintf("http://127.0.0.1:%d", peerPort),
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
	log, err := os.OpenFile(m.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own handle
	args := []string{binary,
		"--name", m.name, "--data-dir", filepath.Join(m.dir, "data"),
		"--listen-client-urls", m.client, "--advertise-client-urls", m.client,
		"--listen-peer-urls", m.peer, "--initial-advertise-peer-urls", m.peer,
		"--initial-cluster", initialCluster, "--initial-cluster-state", state,
		"--heartbeat-interval", "100", "--election-timeout", "1000",
		// Only a few entries are kept, so that a new member needs a snapshot.
		"--snapshot-count", strconv.Itoa(snapshotCount), "--snapshot-catchup-entries", "50",
		"--logger", "zap", "--log-outputs", "stderr"}
	if m.offset != 0 {
		args = append(inTimeNamespace(m.offset), args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", m.name, err)
	}
	m.process, m.exited = cmd, make(chan struct{})
	go func(exited chan struct{}) {
		_ = cmd.Wait() // mostly killed; method alive reports an unwanted end
		close(exited)
	}(m.exited)
	return nil
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
	_ = m.process.Process.Kill() // the process may have ended already
	<-m.exited
	m.process, m.paused = nil, false
	m.before.add(m.latest)
	m.latest = served{}
}

// alive returns an error if the process has ended without being killed.
func (m *member) alive() error {
	select {
	case <-m.exited:
		return fmt.Errorf("%s has ended by itself: %v; its log is %s", m.name, m.process.ProcessState, m.logFile())
	default:
		return nil
	}
}

func (m *member) status(ctx context.Context) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return m.api.Status(ctx, m.client)
}

// ports returns free ports, below the ports that systems give to outgoing connections, so that a
// stopped member finds its port free at its next start.
func ports(first int) func() (int, error) {
	next := first
	return func() (int, error) {
		for ; next < first+1000; next++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", next))
			if err != nil {
				continue
			}
			next++
			return next - 1, l.Close()
		}
		return 0, fmt.Errorf("no free port from %d to %d", first, next)
	}
}
