// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package redisbench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weftraft/weft/internal/ports"
	"github.com/weftraft/weft/internal/process"
)

// startEtcd starts a cluster of etcd without data, of as many members as kvdemo has nodes,
// with etcd's own settings.
func startEtcd(ctx context.Context, cfg Config) (*side, error) {
	addresses, err := ports.Free(2 * cfg.Nodes)
	if err != nil {
		return nil, err
	}
	clients, peers := addresses[:cfg.Nodes], addresses[cfg.Nodes:]
	var members []string
	for i, p := range peers {
		members = append(members, fmt.Sprintf("m%d=http://%s", i+1, p))
	}
	dir := filepath.Join(cfg.Dir, fmt.Sprintf("etcd-%d", time.Now().UnixNano()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var running []*process.Process
	s := &side{name: SideEtcd, binding: "EtcdBinding", addresses: clients, stop: func() (err error) {
		for _, p := range running {
			err = errors.Join(err, p.Terminate(time.Minute))
		}
		return err
	}}
	for i := range clients {
		name := fmt.Sprintf("m%d", i+1)
		p, err := process.Start([]string{
			cfg.Etcd, "--name", name, "--data-dir", filepath.Join(dir, name), "--initial-cluster", strings.Join(members, ","), "--initial-cluster-state", "new",
			"--listen-client-urls", "http://" + clients[i], "--advertise-client-urls", "http://" + clients[i],
			"--listen-peer-urls", "http://" + peers[i], "--initial-advertise-peer-urls", "http://" + peers[i], "--log-level", "error",
		}, filepath.Join(dir, name+".log"))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("--etcd %s: %w", cfg.Etcd, err), s.stop())
		}
		running = append(running, p)
	}
	for _, address := range clients {
		if err := healthy(ctx, address); err != nil {
			return nil, errors.Join(fmt.Errorf("%w; logs are in %s", err, dir), s.stop())
		}
	}
	return s, nil
}

// healthy waits until a member of etcd says that it serves.
func healthy(ctx context.Context, address string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		req, bad := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/health", nil)
		if bad != nil {
			return bad
		}
		resp, failed := http.DefaultClient.Do(req)
		if err = failed; err != nil {
			continue
		}
		if err = resp.Body.Close(); err == nil && resp.StatusCode == http.StatusOK {
			return nil
		}
	}
	return fmt.Errorf("etcd at %s does not serve: %w", address, errors.Join(err, ctx.Err()))
}
