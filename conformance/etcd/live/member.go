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

	"github.com/weftraft/weft/conformance/etcd/disk"
)

// member is one etcd, over all the processes that it is in the course of time.
type member struct {
	name   string
	dir    string
	client string // URL
	peer   string // URL
	api    *clientv3.Client
	// process is nil while the member is down.
	process *exec.Cmd
	exited  chan struct{}
	// leaving is set when it is removed: then it ends by itself, rightly.
	leaving bool
	// paused is set while the process is stopped.
	paused bool
	// leased says that it shows how many reads it has served: this process so many
	// when it was asked last, and those before it so many.
	leased         bool
	latest, before served
	// offset is what the clocks of its next process are ahead of the system's, but for
	// the time of day.
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

// snapshotCount is how many entries pass between snapshots.
const snapshotCount = 200

// start runs binary as this member. What it prints is appended to a file
// beside its data.
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
		// Few entries are kept, so that a new member needs a snapshot.
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
		_ = cmd.Wait() // killed, as a rule; whether it should have lived is seen elsewhere
		close(exited)
	}(m.exited)
	return nil
}

// logged reads the log of a member that is down.
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
	_ = m.process.Process.Kill() // it may have exited already
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

// ports hands out ports on which nobody listens, below those that systems give
// to outgoing connections: a member that is down must find its own free again.
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
