// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	outside "github.com/weftraft/weft/cmd/weftbench/internal/load"
	"github.com/weftraft/weft/internal/lab"
)

const maxCallBytes = 5 << 20

// status is a node's answer to GET /status.
type status struct{ ID, Leader, Term, Applied uint64 }

// inside is a node's answer to POST /load: what clients in its process saw.
type inside struct {
	Calls    int64
	Elapsed  time.Duration
	P50, P99 float64 // milliseconds
}

// serve runs a node that takes orders by HTTP.
func serve(ctx context.Context, s side, with settings, address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return errors.Join(s.run(ctx, with, func(kv kvpb.KVServer) (stop func()) {
		rpc := grpc.NewServer(grpc.MaxRecvMsgSize(maxCallBytes), grpc.MaxSendMsgSize(maxCallBytes))
		kvpb.RegisterKVServer(rpc, kv)
		mux := http.NewServeMux()
		mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
			s, err := kv.Status(r.Context(), &kvpb.StatusRequest{})
			answer(w, status{s.GetId(), s.GetLeader(), s.GetTerm(), s.GetApplied()}, err)
		})
		var serving sync.WaitGroup
		mux.HandleFunc("POST /listen", func(w http.ResponseWriter, _ *http.Request) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				answer(w, nil, err)
				return
			}
			serving.Go(func() { _ = rpc.Serve(l) }) // ends with Stop
			answer(w, l.Addr().String(), nil)
		})
		mux.HandleFunc("POST /load", func(w http.ResponseWriter, r *http.Request) {
			done, err := load(r, kv)
			answer(w, done, err)
		})
		server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
		serving.Go(func() { _ = server.Serve(l) }) // ends with Close
		return func() {
			rpc.Stop()
			_ = server.Close() // nobody waits for an order
			serving.Wait()
		}
	}))
}

func answer(w http.ResponseWriter, v any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(v) // who asked is gone
}

// load has clients in this process call the service.
func load(r *http.Request, kv kvpb.KVServer) (inside, error) {
	var numbers [3]int
	for i, name := range []string{"clients", "size", "millis"} {
		n, err := strconv.Atoi(r.FormValue(name))
		if err != nil {
			return inside{}, fmt.Errorf("%s: %w", name, err)
		}
		numbers[i] = n
	}
	clients, size := numbers[0], numbers[1]
	l := lab.Load{
		Clients: clients, Duration: time.Duration(numbers[2]) * time.Millisecond, Timeout: callTime,
		Do: func(ctx context.Context, c *lab.Call) error {
			key := fmt.Sprintf("bench/%d/%d", size, (c.Client*7919+c.Number)%outside.KeysFor(size))
			value := make([]byte, size)
			lab.Value(key, uint64(c.Client)<<32|uint64(c.Number), value)
			_, err := kv.Put(ctx, &kvpb.PutRequest{Key: key, Value: value})
			return err
		},
	}
	done, err := l.Run(r.Context())
	if err == nil && done.Failed > 0 {
		err = fmt.Errorf("%d of %d calls failed: %w", done.Failed, done.Failed+done.Calls, done.Err)
	}
	return inside{done.Calls, done.Elapsed, done.Latency.Millis(0.5), done.Latency.Millis(0.99)}, err
}
