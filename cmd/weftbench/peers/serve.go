// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
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

// inside is what clients saw, and a node's answer to POST /load.
type inside struct {
	Calls    int64
	Elapsed  time.Duration
	P50, P99 float64 // milliseconds
}

// front is how a node is reached: it takes orders by HTTP, and has clients behind gRPC.
type front struct {
	kv      kvpb.KVServer
	rpc     *grpc.Server
	serving sync.WaitGroup
}

// serve runs a node that takes orders at an address.
func serve(ctx context.Context, s side, with settings, address string) error {
	orders, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return s.run(ctx, with, func(kv kvpb.KVServer) (stop func()) {
		f := &front{kv: kv, rpc: grpc.NewServer(grpc.MaxRecvMsgSize(maxCallBytes), grpc.MaxSendMsgSize(maxCallBytes))}
		kvpb.RegisterKVServer(f.rpc, kv)
		mux := http.NewServeMux()
		mux.HandleFunc("GET /status", f.status)
		mux.HandleFunc("POST /listen", f.listen)
		mux.HandleFunc("POST /load", f.load)
		server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
		f.serving.Go(func() { _ = server.Serve(orders) }) // ends with Close
		return func() {
			f.rpc.Stop()
			_ = server.Close() // nobody waits for an order
			f.serving.Wait()
		}
	})
}

func (f *front) status(w http.ResponseWriter, r *http.Request) {
	s, err := f.kv.Status(r.Context(), &kvpb.StatusRequest{})
	lab.Answer(w, status{s.GetId(), s.GetLeader(), s.GetTerm(), s.GetApplied()}, err)
}

// listen serves clients at a port of its own, and answers with its address.
func (f *front) listen(w http.ResponseWriter, _ *http.Request) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		lab.Answer(w, nil, err)
		return
	}
	f.serving.Go(func() { _ = f.rpc.Serve(l) }) // ends with Stop
	lab.Answer(w, l.Addr().String(), nil)
}

func (f *front) load(w http.ResponseWriter, r *http.Request) {
	done, err := load(r, f.kv)
	lab.Answer(w, done, err)
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
	return insideOf(l.Run(r.Context()))
}

// insideOf takes what clients saw, none of whose calls may fail.
func insideOf(done *lab.Result, err error) (inside, error) {
	if err == nil && done.Failed > 0 {
		err = fmt.Errorf("%d of %d calls failed: %w", done.Failed, done.Failed+done.Calls, done.Err)
	}
	if err != nil {
		return inside{}, err
	}
	return inside{done.Calls, done.Elapsed, done.Latency.Millis(0.5), done.Latency.Millis(0.99)}, nil
}
