// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/internal/page"
)

// checkPage returns an error if the page is wanted and its address is wrong. Port 0 is
// any free port.
func (c Config) checkPage() error {
	if c.Page == "" {
		return nil
	}
	if _, _, err := net.SplitHostPort(c.Page); err != nil {
		return fmt.Errorf("--serve: address %q, want host:port, where port 0 is any free one", c.Page)
	}
	if err := client.CheckLoopback(c.Page); err != nil && !c.Unprotected {
		return fmt.Errorf("--serve: %w, and whoever comes kills nodes: serve at 127.0.0.1; or, on a network of your own, give --unprotected", err)
	}
	return nil
}

// maxWrites bounds the writes in a second of the load under a page.
const maxWrites = 2000

// firstWrites is the load to begin with.
const firstWrites = 100

// watched is a demonstration with a page.
type watched struct {
	d         *run
	collector *page.Collector
	url       string
	codes     bool // the nodes have a policy to choose
	writes    atomic.Int64

	doing sync.Mutex // held by a command, and to begin and end the time for commands

	mu     sync.Mutex // guards what follows
	busy   string
	policy string
	shapes map[[2]uint64]page.Shape // by sender and receiver
	ended  map[uint64]bool          // by themselves, and that was said
}

// Why commands are refused.
const (
	busyStory = "the demonstration loads files and kills nodes by itself; the buttons work when it has verified the replicas"
	busyEnd   = "the demonstration ends"
)

// servePage begins to serve the page, if the page is wanted.
func (d *run) servePage(ctx context.Context) (closePage func(), err error) {
	if d.cfg.Page == "" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", d.cfg.Page)
	if err != nil {
		return nil, fmt.Errorf("--serve: %w; stop what uses the address, or choose another", err)
	}
	var sources []page.Source
	for _, n := range d.cluster.nodes {
		sources = append(sources, page.Peer(n.id, n.http))
	}
	w := &watched{
		d: d, collector: page.NewCollector(0, sources), url: "http://" + l.Addr().String() + "/page/", codes: d.cfg.Codes,
		busy: busyStory, policy: page.PolicyAdaptive, shapes: map[[2]uint64]page.Shape{}, ended: map[uint64]bool{},
	}
	w.writes.Store(firstWrites)
	d.watched = w
	mux := http.NewServeMux()
	mux.Handle("/page/", page.Handler(page.Config{Collector: w.collector, Controls: w}))
	mux.Handle("GET /{$}", http.RedirectHandler("/page/", http.StatusFound))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { w.collector.Run(ctx) })
	running.Go(func() { _ = server.Serve(l) }) // it ends when it is closed
	d.p.event("page to watch: %s", w.url)
	return func() {
		cancel()
		_ = server.Close() // viewers lose nothing
		running.Wait()
	}, nil
}

// note shows an event on the page, if the page is served.
func (d *run) note(kind, format string, args ...any) {
	if d.watched != nil {
		d.watched.collector.Note(kind, fmt.Sprintf(format, args...))
	}
}

// goOn prints the result, and keeps the nodes under a light load until ctx ends.
func (d *run) goOn(ctx context.Context) error {
	w := d.watched
	if err := d.report(); err != nil {
		return err
	}
	d.p.event("the nodes go on, under a light load: %s (Ctrl-C ends them)", w.url)
	if w.codes { // the adaptive policy sends full copies between processes of one machine
		if err := w.setPolicy(page.PolicyFewest); err != nil {
			return err
		}
	}
	w.setBusy("")
	err := d.lightLoad(ctx)
	w.setBusy(busyEnd)
	if err != nil {
		return err
	}
	d.p.event("stopping the nodes")
	w.wakeAll()
	return d.cluster.Stop()
}

// setBusy begins or ends the time for commands, when none is under way.
func (w *watched) setBusy(why string) {
	w.doing.Lock()
	defer w.doing.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = why
}

// wakeAll resumes paused processes, so that the processes can stop.
func (w *watched) wakeAll() {
	for _, n := range w.d.cluster.nodes {
		if w.collector.Paused(n.id) && n.Process() != nil {
			_ = n.Resume() // what cannot go on is killed
		}
	}
}

// State implements page.Controls.
func (w *watched) State() page.ControlState {
	s := page.ControlState{Policies: []string{}, Writes: int(w.writes.Load()), Running: []uint64{}, Paused: []uint64{}}
	if w.codes {
		s.Policies = page.Policies()
	}
	for _, n := range w.d.cluster.nodes {
		if n.Up() {
			s.Running = append(s.Running, n.id)
			if w.collector.Paused(n.id) {
				s.Paused = append(s.Paused, n.id)
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s.Busy, s.Policy = w.busy, w.policy
	return s
}

// Do implements page.Controls.
func (w *watched) Do(_ context.Context, c page.Command) error {
	w.doing.Lock()
	defer w.doing.Unlock()
	if busy := w.State().Busy; busy != "" {
		return errors.New(busy)
	}
	defer w.collector.Expire()
	switch c.Do {
	case page.Code:
		return w.setPolicy(c.Policy)
	case page.Load:
		if c.Writes < 0 || c.Writes > maxWrites {
			return fmt.Errorf("writes: %d, want 0 to %d", c.Writes, maxWrites)
		}
		w.writes.Store(int64(c.Writes))
		w.collector.Note(page.EventCommand, fmt.Sprintf("load of %d writes a second", c.Writes))
		return nil
	}
	if !slices.Contains([]string{page.Kill, page.Start, page.Pause, page.Resume, page.Squeeze}, c.Do) {
		return fmt.Errorf("do: %q, want one of kill, start, pause, resume, shape, policy, load", page.Text(c.Do))
	}
	n, err := w.node("node", c.Node)
	if err != nil {
		return err
	}
	switch c.Do {
	case page.Kill:
		return w.kill(n)
	case page.Start:
		return w.start(n)
	case page.Pause, page.Resume:
		return w.pause(n, c.Do == page.Pause)
	}
	return w.shape(n, c.To, c.Shape)
}

func (w *watched) node(field string, id uint64) (*node, error) {
	if id < 1 || id > uint64(len(w.d.cluster.nodes)) {
		return nil, fmt.Errorf("%s: %d, want 1 to %d", field, id, len(w.d.cluster.nodes))
	}
	return w.d.cluster.nodes[id-1], nil
}

func (w *watched) kill(n *node) error {
	if !n.Up() {
		return fmt.Errorf("node %d is down already; start it first", n.id)
	}
	if err := n.Kill(); err != nil {
		return err
	}
	w.collector.SetPaused(n.id, false)
	w.collector.Note(page.EventCommand, fmt.Sprintf("node %d was killed (SIGKILL)", n.id))
	return nil
}

// start starts a node's process, which gets the orders of the process before.
func (w *watched) start(n *node) error {
	if n.Up() {
		return fmt.Errorf("node %d runs already", n.id)
	}
	if err := n.Start(); err != nil {
		return err
	}
	w.mu.Lock()
	delete(w.ended, n.id)
	w.mu.Unlock()
	w.collector.Note(page.EventCommand, fmt.Sprintf("node %d was started", n.id))
	return w.tellAll(n)
}

// tellAll repeats all orders for a node that may have missed some.
func (w *watched) tellAll(n *node) error {
	w.mu.Lock()
	var orders []page.Order
	if w.codes {
		orders = append(orders, page.Order{Policy: w.policy})
	}
	for link, shape := range w.shapes {
		if link[0] == n.id {
			orders = append(orders, page.Order{Peer: link[1], Shape: shape})
		}
	}
	w.mu.Unlock()
	for _, o := range orders {
		if err := n.Tell(o.String()); err != nil {
			return err
		}
	}
	return nil
}

// tell gives a node an order. A node that is down or paused reads none, and is told all
// when it starts or goes on: many orders would have no room.
func (w *watched) tell(n *node, o page.Order) error {
	if !n.Up() || w.collector.Paused(n.id) {
		return nil
	}
	return n.Tell(o.String())
}

func (w *watched) pause(n *node, yes bool) error {
	if !n.Up() {
		return fmt.Errorf("node %d is down; start it first", n.id)
	}
	if yes == w.collector.Paused(n.id) {
		return fmt.Errorf("node %d: paused is %v already", n.id, yes)
	}
	act, text := n.Resume, "node %d goes on (SIGCONT)"
	if yes {
		act, text = n.Pause, "node %d was paused (SIGSTOP)"
	}
	if err := act(); err != nil {
		return err
	}
	w.collector.SetPaused(n.id, yes)
	w.collector.Note(page.EventCommand, fmt.Sprintf(text, n.id))
	if yes {
		return nil
	}
	return w.tellAll(n)
}

func (w *watched) shape(n *node, to uint64, shape page.Shape) error {
	if _, err := w.node("to", to); err != nil {
		return err
	}
	if to == n.id {
		return fmt.Errorf("to: %d, want a node other than the sender", to)
	}
	if err := shape.Check(); err != nil {
		return err
	}
	if err := w.tell(n, page.Order{Peer: to, Shape: shape}); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shapes[[2]uint64{n.id, to}] = shape
	w.collector.Note(page.EventCommand, fmt.Sprintf("link %d to %d: %s", n.id, to, shape))
	return nil
}

func (w *watched) setPolicy(name string) error {
	if !w.codes {
		return errors.New("policy: the nodes do not code; start the demonstration with --core weft --coding on")
	}
	if err := page.CheckPolicy(name); err != nil {
		return err
	}
	for _, n := range w.d.cluster.nodes {
		if err := w.tell(n, page.Order{Policy: name}); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.policy = name
	w.collector.Note(page.EventCommand, "policy of coding: "+name)
	return nil
}

// lookAfter shows, once, that a process has ended by itself.
func (w *watched) lookAfter() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.d.cluster.nodes {
		if p := n.Process(); p != nil && !p.Running() && !w.ended[n.id] {
			w.ended[n.id] = true
			w.d.p.event("node %d: %v", n.id, p.Unexpected())
			w.collector.Note(page.EventNode, fmt.Sprintf("node %d ended by itself; its log is %s", n.id, n.Log()))
		}
	}
}
