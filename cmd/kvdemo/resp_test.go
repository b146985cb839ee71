// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/kvdemo/internal/secure"
	"github.com/weftraft/weft/internal/certs"
)

// newRespServers are nodes that serve clients of Redis as well, at the addresses.
func newRespServers(t *testing.T, extra ...string) (s *servers, redisAddresses [3]string) {
	s = newServers(t, extra...)
	for i := range s.args {
		redisAddresses[i] = freePort(t)
		s.args[i] = append(s.args[i], "--resp", redisAddresses[i])
		s.start(i)
	}
	return s, redisAddresses
}

// redisClient returns a client of one node that never sends a command twice.
func redisClient(t *testing.T, address string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1, DialTimeout: 2 * time.Second, ReadTimeout: 20 * time.Second})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// registerOp is what a client does with a key.
type registerOp struct {
	key, op string // get, set, incr, del, or cas: if it is old, to value
	value   int
	old     int
}

// registerResult is the reply, unless that is unknown.
type registerResult struct {
	unknown bool
	why     string // it is unknown
	value   int    // -1: none
	swapped bool
}

// registers is a key for each partition: a number, or -1 for none. It says what real
// replies may be, in any order that fits their times.
var registers = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		keys := map[string][]porcupine.Operation{}
		for _, o := range history {
			key := o.Input.(registerOp).key
			keys[key] = append(keys[key], o)
		}
		var parts [][]porcupine.Operation
		for _, part := range keys {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return -1 },
	Step: func(state, input, output any) (bool, any) {
		now, in, out := state.(int), input.(registerOp), output.(registerResult)
		switch in.op {
		case "get":
			return out.value == now, now
		case "set":
			return true, in.value
		case "incr":
			return out.unknown || out.value == max(now, 0)+1, max(now, 0) + 1
		case "del":
			return out.unknown || (out.value == 1) == (now >= 0), -1
		}
		swaps := now == in.old
		if swaps {
			now = in.value
		}
		return out.unknown || out.swapped == swaps, now
	},
}

// history collects what clients did.
type history struct {
	start time.Time
	done  atomic.Int64 // replies, good or bad
	mu    sync.Mutex
	ops   []porcupine.Operation
}

// do does an operation at a node and notes it. What certainly did nothing is left out.
func (h *history) do(ctx context.Context, client int, c *redis.Client, in registerOp) (ok bool) {
	call := time.Since(h.start).Nanoseconds()
	out, err := in.run(ctx, c)
	end := time.Since(h.start).Nanoseconds()
	h.done.Add(1)
	var dial *net.OpError
	switch {
	case err == nil:
	case strings.HasPrefix(err.Error(), "TRYAGAIN"), errors.As(err, &dial) && dial.Op == "dial", in.op == "get":
		return false
	default:
		out, end = registerResult{unknown: true, why: err.Error()}, 1<<62
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: end})
	return err == nil
}

func (in registerOp) run(ctx context.Context, c *redis.Client) (out registerResult, err error) {
	switch in.op {
	case "get":
		if out.value, err = c.Get(ctx, in.key).Int(); errors.Is(err, redis.Nil) {
			return registerResult{value: -1}, nil
		}
		return out, err
	case "set":
		return out, c.Set(ctx, in.key, in.value, 0).Err()
	case "incr":
		n, err := c.Incr(ctx, in.key).Result()
		return registerResult{value: int(n)}, err
	case "del":
		n, err := c.Del(ctx, in.key).Result()
		return registerResult{value: int(n)}, err
	}
	out.swapped, err = in.swap(ctx, c)
	return out, err
}

// swap is a compare-and-set by WATCH, MULTI and EXEC.
func (in registerOp) swap(ctx context.Context, c *redis.Client) (swapped bool, err error) {
	differs := errors.New("another value")
	err = c.Watch(ctx, func(tx *redis.Tx) error {
		now, err := tx.Get(ctx, in.key).Int()
		switch {
		case errors.Is(err, redis.Nil):
			now = -1
		case err != nil:
			return fmt.Errorf("TRYAGAIN: %w", err) // nothing was sent that writes
		}
		if now != in.old {
			return differs
		}
		_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, in.key, in.value, 0).Err() })
		if errors.Is(err, redis.TxFailedErr) {
			return fmt.Errorf("TRYAGAIN: %w", err)
		}
		return err
	}, in.key)
	if errors.Is(err, differs) {
		return false, nil
	}
	return err == nil, err
}

// Histories of clients of Redis are linearizable while nodes are killed and come back.
func TestRedisHistoriesAreLinearizable(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	s, addresses := newRespServers(t)
	s.leader()
	ctx, cancel := context.WithCancel(t.Context())
	h := &history{start: time.Now()}
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel()
	for w := range 6 {
		workers.Go(func() {
			rng := rand.New(rand.NewPCG(19, uint64(w)))
			var clients [3]*redis.Client
			for i := range clients {
				clients[i] = redisClient(t, addresses[i])
			}
			at := w % 3
			for n := 0; ctx.Err() == nil; n++ {
				in := registerOp{key: fmt.Sprint("k", rng.IntN(3)), op: []string{"get", "get", "set", "incr", "del", "cas"}[rng.IntN(6)], value: rng.IntN(4), old: rng.IntN(5) - 1}
				if !h.do(t.Context(), w, clients[at], in) || rng.IntN(8) == 0 {
					at = (at + 1) % 3
				}
			}
		})
	}
	more := func(n int64) {
		until := h.done.Load() + n
		eventually(t, "operations", func() bool { return h.done.Load() >= until })
	}
	for range 2 {
		more(100)
		lead := s.leader()
		s.kill(lead)
		more(60)
		s.start(lead)
		more(100)
		follower := (s.leader() + 1) % 3
		s.kill(follower)
		more(60)
		s.start(follower)
	}
	more(100)
	cancel()
	workers.Wait()
	verdict, info := porcupine.CheckOperationsVerbose(registers, h.ops, time.Minute)
	if verdict != porcupine.Ok {
		for _, o := range h.ops {
			t.Logf("%+v", o)
		}
		file := filepath.Join(t.TempDir(), "history.html")
		require.NoError(t, porcupine.VisualizePath(registers, info, file))
		t.Fatalf("%v: the history of %d operations is not linearizable: see %s", verdict, len(h.ops), file)
	}
	known := 0
	for _, o := range h.ops {
		if !o.Output.(registerResult).unknown {
			known++
		}
	}
	require.Greater(t, known, 200, "of %d operations", len(h.ops))
	s.stop()
}

// With certificates, the front wants TLS and the certificate of a client.
func TestRedisOverTLS(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	dir := t.TempDir()
	require.Zero(t, kvdemo(t.Context(), "", "certs", dir, "--nodes", "1", "--clients", "ann").code)
	a := newAlone(t)
	files, ann := certs.NodeFiles(dir, 1), certs.ClientFiles(dir, "ann")
	address := freePort(t)
	a.args = append(a.args, "--resp", address, "--tls-cert", files.Cert, "--tls-key", files.Key, "--tls-ca", files.CA)
	a.while(func() {
		config, err := secure.Client(ann)
		require.NoError(t, err)
		good := redis.NewClient(&redis.Options{Addr: address, TLSConfig: config, ReadTimeout: time.Minute})
		defer func() { _ = good.Close() }()
		eventually(t, "the node to serve", func() bool { return good.Set(t.Context(), "k", "v", 0).Err() == nil })
		require.Equal(t, "v", good.Get(t.Context(), "k").Val())
		plain, err := net.Dial("tcp", address)
		require.NoError(t, err)
		defer func() { _ = plain.Close() }()
		_, err = plain.Write([]byte("PING\r\n"))
		require.NoError(t, err)
		said, err := io.ReadAll(plain)
		require.NoError(t, err)
		require.Equal(t, "-ERR refused: node 1 wants TLS and a certificate\r\n", string(said))
		asNode, err := secure.Client(files)
		require.NoError(t, err)
		bad, err := tls.Dial("tcp", address, asNode)
		require.NoError(t, err)
		defer func() { _ = bad.Close() }()
		said, err = io.ReadAll(bad)
		require.NoError(t, err)
		require.Contains(t, string(said), "your certificate is for node 1 of cluster 1, a client needs one of its own")
	})
}
