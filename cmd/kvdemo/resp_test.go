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
	"strconv"
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
	// key is a string, or with its first letter h a hash of two fields that have the same
	// value, or with z a sorted set of one member, whose score is the value.
	key   string
	op    string // get, set, incr, del, add: set, and say if it was there; or cas: if it is old, to value
	value int
	old   int
}

// registerResult is the reply, unless that is unknown.
type registerResult struct {
	unknown bool
	why     string // it is unknown
	value   int    // -1: none
	swapped bool
}

// registers models the keys, one a partition: a number, or -1 for none. The model decides
// whether real replies fit an order of the calls that fits their times.
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
		if out.value == torn {
			return false, now
		}
		switch in.op {
		case "get":
			return out.value == now, now
		case "set":
			return true, in.value
		case "add":
			return out.unknown || (out.value == 1) == (now < 0), in.value
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
	done  atomic.Int64 // operations whose answer is known: a node that is down refuses any number in no time
	mu    sync.Mutex
	ops   []porcupine.Operation
}

// do does an operation at a node and notes it. What certainly did nothing is left out.
func (h *history) do(ctx context.Context, client int, c *redis.Client, in registerOp) (ok bool) {
	call := time.Since(h.start).Nanoseconds()
	out, err := in.run(ctx, c)
	end := time.Since(h.start).Nanoseconds()
	var dial *net.OpError
	switch {
	case err == nil:
		h.done.Add(1)
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
	switch in.key[0] {
	case 'h':
		return in.runHash(ctx, c)
	case 'z':
		return in.runSorted(ctx, c)
	}
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

// torn is the value read from a half-changed hash or sorted set; no register has this value.
const torn = -7

// runHash is run on a hash.
func (in registerOp) runHash(ctx context.Context, c *redis.Client) (out registerResult, err error) {
	var n int64
	switch in.op {
	case "get":
		var fields map[string]string
		fields, err = c.HGetAll(ctx, in.key).Result()
		switch first, same := fields["a"], fields["a"] == fields["b"]; {
		case err != nil:
		case len(fields) == 0:
			out.value = -1
		case len(fields) != 2 || !same:
			out.value = torn
		default:
			out.value, err = strconv.Atoi(first)
		}
		return out, err
	case "add":
		n, err = c.HSet(ctx, in.key, "a", in.value, "b", in.value).Result()
	default:
		n, err = c.HDel(ctx, in.key, "a", "b").Result()
	}
	if n%2 != 0 {
		return registerResult{value: torn}, err
	}
	return registerResult{value: int(n / 2)}, err
}

// runSorted is run on a sorted set.
func (in registerOp) runSorted(ctx context.Context, c *redis.Client) (registerResult, error) {
	var n int64
	var err error
	switch in.op {
	case "get":
		all, err := c.ZRangeByScoreWithScores(ctx, in.key, &redis.ZRangeBy{Min: "-inf", Max: "+inf"}).Result()
		switch {
		case err != nil:
			return registerResult{}, err
		case len(all) == 0:
			return registerResult{value: -1}, nil
		case len(all) > 1:
			return registerResult{value: torn}, nil
		}
		return registerResult{value: int(all[0].Score)}, nil
	case "add":
		n, err = c.ZAdd(ctx, in.key, redis.Z{Score: float64(in.value), Member: "m"}).Result()
	default:
		n, err = c.ZRem(ctx, in.key, "m").Result()
	}
	return registerResult{value: int(n)}, err
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

// Histories of clients of Redis, of nodes and of gateways, are linearizable while both are killed and come back.
func TestRedisHistoriesAreLinearizable(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	s, nodes := newRespServers(t)
	s.leader()
	g := startGates(s, 2)
	addresses := append(nodes[:], g.redis...)
	ctx, cancel := context.WithCancel(t.Context())
	h := &history{start: time.Now()}
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel()
	for w := range 6 {
		workers.Go(func() {
			rng := rand.New(rand.NewPCG(19, uint64(w)))
			var clients []*redis.Client
			for _, address := range addresses {
				clients = append(clients, redisClient(t, address))
			}
			at := w % len(clients)
			for n := 0; ctx.Err() == nil; n++ {
				in := registerOp{key: fmt.Sprint("k", rng.IntN(3)), op: []string{"get", "get", "set", "incr", "del", "cas"}[rng.IntN(6)], value: rng.IntN(4), old: rng.IntN(5) - 1}
				if kind := rng.IntN(4); kind > 1 {
					in.key, in.op = fmt.Sprint([]string{"h", "z"}[kind-2], rng.IntN(2)), []string{"get", "get", "add", "add", "del"}[rng.IntN(5)]
				}
				if !h.do(t.Context(), w, clients[at], in) || rng.IntN(8) == 0 {
					at = (at + 1) % len(clients)
				}
			}
		})
	}
	more := func(n int64) {
		until := h.done.Load() + n
		eventually(t, "operations", func() bool { return h.done.Load() >= until })
	}
	for i := range 2 {
		more(100)
		g.kill(i)
		more(60)
		g.start(i)
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
	known := map[byte]int{}
	for _, o := range h.ops {
		if !o.Output.(registerResult).unknown {
			known[o.Input.(registerOp).key[0]]++
		}
	}
	require.Greater(t, known['k'], 100, "of %d operations", len(h.ops))
	require.Greater(t, min(known['h'], known['z']), 40, "of %d operations", len(h.ops))
	s.stop()
}

// Hashes and sorted sets come through a kill, and through a backup into a cluster with
// other groups. Clients of gRPC are told what they are.
func TestHashesAndSortedSetsAreKept(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	s, addresses := newRespServers(t)
	s.leader()
	ctx := t.Context()
	c := redisClient(t, addresses[0])
	eventually(t, "the node to serve", func() bool { return c.HSet(ctx, "h", "f", "1", "g", "\xff\x00").Err() == nil })
	const sets, members = 3, 12_000
	for i := range sets {
		for from := 0; from < members; from += 1000 {
			var some []redis.Z
			for m := from; m < from+1000; m++ {
				some = append(some, redis.Z{Score: float64(m%100) / 4, Member: fmt.Sprintf("member %d of set %d", m, i)})
			}
			require.NoError(t, c.ZAdd(ctx, fmt.Sprint("z", i), some...).Err())
		}
	}
	require.NoError(t, c.ZRem(ctx, "z0", "member 7 of set 0").Err())
	require.NoError(t, c.Expire(ctx, "h", time.Hour).Err())
	require.NoError(t, c.Expire(ctx, "z1", time.Hour).Err())
	require.NoError(t, c.Set(ctx, "s", "v", 0).Err())
	// look is all that there is, but for how long it stays.
	look := func(c *redis.Client) map[string]any {
		all := map[string]any{}
		for i := range sets {
			members, err := c.ZRangeByScoreWithScores(ctx, fmt.Sprint("z", i), &redis.ZRangeBy{Min: "-inf", Max: "inf"}).Result()
			require.NoError(t, err)
			all[fmt.Sprint("z", i)] = members
		}
		var err error
		all["h"], err = c.HGetAll(ctx, "h").Result()
		require.NoError(t, err)
		all["keys"], err = c.DBSize(ctx).Result()
		require.NoError(t, err)
		for _, key := range []string{"h", "z0", "z1", "s"} {
			all["type of "+key] = c.Type(ctx, key).Val()
			all["ends "+key] = c.TTL(ctx, key).Val() > 50*time.Minute
		}
		return all
	}
	want := look(c)
	require.EqualValues(t, 5, want["keys"])
	require.Len(t, want["z0"], members-1)
	for i := range addresses {
		s.kill(i)
	}
	for i := range addresses {
		s.start(i)
	}
	s.leader()
	for i, address := range addresses {
		other := redisClient(t, address)
		eventually(t, "a node to serve", func() bool { return other.Get(ctx, "s").Err() == nil })
		require.Equal(t, want, look(other), "node %d", i+1)
	}
	r := s.do(s.all(), "get", "h")
	require.NotZero(t, r.code)
	require.Contains(t, r.err, `key "h" has a hash; read it with a client of Redis`)
	file := filepath.Join(t.TempDir(), "a.backup")
	r = s.do(s.all(), "backup", file)
	require.Zero(t, r.code, r.err)
	s.stop()

	a := newAlone(t)
	address := freePort(t)
	a.args = append(a.args, "--groups", "3", "--resp", address)
	a.while(func() {
		eventually(t, "the new cluster to serve", func() bool { return a.do("ls").code == 0 })
		r := a.do("restore", file)
		require.Zero(t, r.code, r.err)
		fresh := redisClient(t, address)
		require.Equal(t, want, look(fresh))
		// Over keys of other types and contents, too.
		require.NoError(t, fresh.Set(ctx, "z0", "v", 0).Err())
		require.NoError(t, fresh.Del(ctx, "h").Err())
		require.NoError(t, fresh.ZAdd(ctx, "z2", redis.Z{Score: 1, Member: "one more"}).Err())
		r = a.do("restore", file, "--force")
		require.Zero(t, r.code, r.err)
		require.Equal(t, want, look(fresh))
	})
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
