// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package realreads

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
	"github.com/weftraft/weft/storage"
)

// NodeConfig configures a node whose readers are goroutines of its own process, so that the
// bench measures Host's reads and no client protocol.
type NodeConfig struct {
	ID, Cluster  uint64
	Peers        map[uint64]string
	ClientListen string // of orders, over HTTP
	Data         string
	Leases       bool // all voters are responders
}

// nodeStatus is what a node says of itself.
type nodeStatus struct {
	Lead   uint64 `json:"lead"`
	Stable bool   `json:"stable"` // it answers reads by its own leases
}

// nodeReads is what a node's readers did.
type nodeReads struct {
	Reads int `json:"reads"`
	// By counts reads by what served them.
	By map[string]int `json:"by"`
}

// RunNode runs a node until ctx ends.
func RunNode(ctx context.Context, cfg NodeConfig) (err error) {
	t, err := transport.New(transport.Config{Cluster: cfg.Cluster, Node: cfg.ID, Listen: cfg.Peers[cfg.ID], Peers: cfg.Peers})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	engine, err := storage.Open(cfg.Data, storage.Options{Identity: storage.Identity{Cluster: cfg.Cluster, Node: cfg.ID}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	log, err := engine.Group(1)
	if err != nil {
		return err
	}
	var peers []uint64
	for id := range uint64(len(cfg.Peers)) {
		peers = append(peers, id+1)
	}
	c := rawnode.Config{
		Replica:      rawnode.ReplicaConfig{ID: cfg.ID, Group: 1, Core: rawnode.Weft, Log: log, Peers: peers},
		StateMachine: &nothing{}, Transport: t, TickInterval: 50 * time.Millisecond,
	}
	if cfg.Leases {
		c.Replica.Leases = &raft.Leases{Wanted: []leases.Want{{Nodes: []leases.NodeID{leases.AllVoters}}}}
	}
	h, err := rawnode.New(c)
	if err != nil {
		return err
	}
	err = serve(ctx, cfg.ClientListen, h)
	stop, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(err, h.Stop(stop))
}

// serve takes orders until ctx ends.
func serve(ctx context.Context, address string, h *rawnode.Host) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		s, err := h.LeaseStatus(r.Context())
		reply(w, nodeStatus{Lead: h.Status().Lead, Stable: s.Stable}, err)
	})
	mux.HandleFunc("POST /read", func(w http.ResponseWriter, r *http.Request) {
		readers, err := strconv.Atoi(r.FormValue("readers"))
		d, err2 := time.ParseDuration(r.FormValue("for"))
		if err = errors.Join(err, err2); err != nil {
			reply(w, nil, err)
			return
		}
		sum, err := readFor(r.Context(), h, readers, d)
		reply(w, sum, err)
	})
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	end := context.AfterFunc(ctx, func() { _ = server.Close() }) // nobody waits
	defer end()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func reply(w http.ResponseWriter, v any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(v) // who asked is gone
}

// readFor has readers read for a while, each one read after the other.
func readFor(ctx context.Context, h *rawnode.Host, readers int, d time.Duration) (nodeReads, error) {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		sum   = nodeReads{By: map[string]int{}}
		first error
		over  atomic.Bool
	)
	for range readers {
		wg.Go(func() {
			count := map[string]int{}
			var failed error
			for !over.Load() && failed == nil {
				res, err := h.ReadWith(ctx, rawnode.ReadOptions{})
				if failed = err; err == nil {
					count[res.By.String()]++
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for by, n := range count {
				sum.By[by] += n
				sum.Reads += n
			}
			first = errors.Join(first, failed)
		})
	}
	time.Sleep(d)
	over.Store(true)
	wg.Wait()
	return sum, first
}

// nothing is a state that keeps only the applied index, in memory: a node that starts again
// applies its whole log.
type nothing struct{ index atomic.Uint64 }

// Load implements rawnode.StateMachine.
func (s *nothing) Load() (uint64, []byte, error) { return 0, nil, nil }

// Apply implements rawnode.StateMachine.
func (s *nothing) Apply(b rawnode.Batch) ([]any, error) {
	s.index.Store(b.Index)
	return make([]any, len(b.Commands)), nil
}

// Durable implements rawnode.StateMachine.
func (s *nothing) Durable() (uint64, error) { return 0, nil }

// Snapshot implements rawnode.StateMachine.
func (s *nothing) Snapshot() (rawnode.Snapshot, error) {
	return nil, errors.New("the log is kept from its beginning, so nobody needs a snapshot")
}

// Restore implements rawnode.StateMachine.
func (s *nothing) Restore(meta rawnode.SnapshotMeta, body io.Reader) error {
	return fmt.Errorf("a snapshot at %d: %w", meta.Index, binary.Read(body, binary.LittleEndian, new(uint64)))
}
