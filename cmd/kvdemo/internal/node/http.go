// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weftraft/weft/cmd/kvdemo/internal/page"
	"github.com/weftraft/weft/internal/strangers"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
)

// readyLag is how many committed entries a node that is ready may have yet to
// apply.
const readyLag = 1000

// newWeb returns the server of --http-listen of a node, which also has the page.
func (n *node) newWeb(shown http.Handler) *http.Server {
	return n.cfg.newWeb(n.collectors(), n.alive, n.ready, func(mux *http.ServeMux) {
		mux.Handle("/page/", shown)
		mux.HandleFunc("GET /log-level", n.serveLogLevel)
		mux.HandleFunc("PUT /log-level", n.serveLogLevel)
	})
}

// newWeb returns the server of --http-listen: /metrics for Prometheus, /livez and /readyz for whatever starts,
// stops and routes to processes, and more.
func (c Config) newWeb(shown []prometheus.Collector, alive, ready func() error, more func(*http.ServeMux)) *http.Server {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	registry.MustRegister(shown...)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: promLog(c.logf("metrics"))}))
	mux.HandleFunc("GET /livez", answer(alive))
	mux.HandleFunc("GET /readyz", answer(ready))
	more(mux)
	if c.Pprof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return &http.Server{Handler: page.NoForeignNames(mux), ReadHeaderTimeout: stopTimeout, IdleTimeout: time.Minute, ConnState: visitors()}
}

// visitors bounds the connections of a server that asks nobody for a certificate: when
// there are too many, the address with most loses one.
func visitors() func(net.Conn, http.ConnState) {
	table := strangers.New(strangers.Limit, strangerConns, rand.IntN)
	return func(conn net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			table.Add(conn)
		case http.StateClosed, http.StateHijacked:
			table.Remove(conn)
		case http.StateActive, http.StateIdle:
		}
	}
}

// serveWeb answers until ctx ends.
func (n *node) serveWeb(ctx context.Context) {
	handler, collector := n.pageServer()
	var collecting sync.WaitGroup
	defer collecting.Wait()
	collecting.Go(func() { collector.Run(ctx) })
	n.cfg.serveWeb(ctx, n.newWeb(handler), n.web)
}

func (c Config) serveWeb(ctx context.Context, server *http.Server, at net.Listener) {
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // nothing is lost by it
	if err := server.Serve(at); !errors.Is(err, http.ErrServerClosed) {
		c.Log.Error("serve --http-listen", "error", err)
	}
}

// answer answers 200 and ok, or 503 and what is wrong.
func answer(check func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := check(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ok") // whoever asked may be gone
	}
}

// hangsAfter is for how long a disk may end no write before its node is better started again
// elsewhere.
const hangsAfter = 30 * time.Second

// alive returns why the process is of no use any more: it should be started
// again.
func (n *node) alive() error {
	var errs []error
	if s := n.weft.Engine().Stats(); s.Waits > hangsAfter && !s.Full {
		errs = append(errs, fmt.Errorf("the disk of the log hangs: no write has ended for %v", s.Waits.Round(time.Second)))
	}
	for _, g := range n.groups {
		if err := g.host.Err(); err != nil {
			errs = append(errs, fmt.Errorf("group %d: %w", g.id, err))
		}
	}
	return errors.Join(errs...)
}

// ready returns why clients had better go to another node for now.
func (n *node) ready() error {
	errs := []error{n.alive()}
	for _, g := range n.groups {
		if err := lacking(g.host.Status()); err != nil {
			errs = append(errs, fmt.Errorf("group %d: %w", g.id, err))
		}
	}
	return errors.Join(errs...)
}

// lacking returns what a group needs before it serves clients well.
func lacking(s rawnode.HostStatus) error {
	switch {
	case s.Stalled != nil:
		return fmt.Errorf("this node cannot write: %w", s.Stalled)
	case s.Lead == raft.None:
		return errors.New("no leader is known")
	case s.Commit > s.Applied+readyLag:
		return fmt.Errorf("applied up to %d of %d, want at most %d less", s.Applied, s.Commit, readyLag)
	}
	return nil
}

// promLog passes on what goes wrong while metrics are gathered.
type promLog func(format string, args ...any)

func (l promLog) Println(v ...any) { l("%s", fmt.Sprint(v...)) }
