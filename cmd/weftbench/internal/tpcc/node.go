// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/process"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/rawnode"
	pebblestate "github.com/weftraft/weft/rawnode/state/pebble"
	"github.com/weftraft/weft/rawnode/transport"
)

// Setting is what all processes of a run are told.
type Setting struct {
	Plan Plan
	Side Side
}

// node is a process with a replica of each range, and with the terminals of those that it leads. Transactions run in one
// goroutine, which takes functions from a queue.
type node struct {
	cfg    hostnode.Config
	load   *load
	start  time.Time
	weft   *weft.Node
	db     *pebblestate.DB
	groups []*group // by range
	asked  uint64
	visits map[uint64]func(answer []byte) // under way

	wake   chan struct{}
	mu     sync.Mutex
	queue  []func()
	failed error
}

// group is a replica of a range.
type group struct {
	*weft.Group
	n     *node
	state *pebblestate.State
	does  *state
}

// RunNode runs a node until ctx ends.
func RunNode(ctx context.Context, cfg hostnode.Config, s Setting) (err error) {
	n := &node{cfg: cfg, start: time.Now(), visits: map[uint64]func([]byte){}, wake: make(chan struct{}, 1)}
	n.load = newLoad(s.Plan, n)
	n.load.step, n.load.last = uint64(s.Plan.Nodes), n.load.last+cfg.ID
	n.db, err = pebblestate.Open(pebblestate.Options{Dir: filepath.Join(cfg.Data, "rows")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.db.Close()) }()
	n.weft, err = weft.Open(weft.Options{
		Cluster: cfg.Cluster, ID: cfg.ID, Dir: cfg.Data, Peers: cfg.Peers, TickInterval: nodeTick, Balance: -1,
		ConfigureTransport: func(c *transport.Config) { c.Egress = int(s.Plan.Rate) },
	})
	if err != nil {
		return err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err = errors.Join(err, n.weft.Close(stop))
	}()
	for i, r := range n.load.ranges {
		if err := n.open(i, r, s); err != nil {
			return fmt.Errorf("range %d: %w", r.id, err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go n.loop(ctx)
	return n.serve(ctx)
}

const (
	nodeTick          = 50 * time.Millisecond
	nodeElectionTicks = 20
	nodePatience      = time.Minute
	// visitGroups is added to a range's number for the group of messages that no Raft group has: visits travel on
	// the node's own links, which have the rate.
	visitGroups = 1 << 32
)

// open opens the replica of a range. Batches of writes are entries, as in virtual time, and no leader hands over.
func (n *node) open(i int, r *ranged, s Setting) error {
	err := n.weft.Transport().Join(visitGroups+r.id, n)
	if err != nil {
		return err
	}
	g := &group{n: n, does: &state{bug: s.Plan.Bug, fill: func() map[string][]byte { return n.load.scale.fill(s.Plan.Seed, r.first, s.Plan.PerRange) }}}
	g.state, err = n.db.Group(r.id, func(tx *pebblestate.Tx, command []byte) (any, error) {
		rows := &inTx{tx: tx}
		return nil, errors.Join(g.does.apply(rows, command), rows.err)
	}, pebblestate.GroupOptions{})
	if err != nil {
		return err
	}
	g.Group, err = n.weft.Group(r.id, g.state, weft.CompareEvery(-1), weft.Configure(func(c *rawnode.Config) {
		c.Replica.Coding, c.Replica.MaxBatchBytes, c.Replica.ElectionTick, c.Replica.Placement = s.Side.coding(), 1, nodeElectionTicks, nil
		c.DefaultTimeout = nodePatience
	}))
	if n.groups = append(n.groups, g); s.Plan.leader(i) == n.cfg.ID {
		r.lead = g
	}
	return err
}

// inTx is rows in a transaction of Pebble.
type inTx struct {
	tx  *pebblestate.Tx
	err error
}

func (r *inTx) get(key string) []byte {
	v, _, err := r.tx.Get([]byte(key))
	r.err = errors.Join(r.err, err)
	return v
}

func (r *inTx) set(key string, value []byte) {
	if value == nil {
		r.err = errors.Join(r.err, r.tx.Delete([]byte(key)))
		return
	}
	r.err = errors.Join(r.err, r.tx.Set([]byte(key), value))
}

func (g *group) view(do func(get func(key string) []byte)) {
	var failed error
	err := g.state.View(func(r pebblestate.Reader) error {
		do(func(k string) []byte {
			v, found, err := r.Get([]byte(k))
			if failed = errors.Join(failed, err); !found {
				return nil
			}
			return v
		})
		return failed
	})
	if err != nil {
		g.n.Fail("range %d is not read: %w", g.ID(), err)
	}
}

// lateFor is for how long a disk may be late.
const lateFor = 20 * time.Second

// propose proposes again what is refused as the disk is late, because nothing came of it.
func (g *group) propose(command []byte, done func()) {
	go func() {
		_, err := g.Propose(context.Background(), command)
		for end := time.Now().Add(lateFor); errors.Is(err, rawnode.ErrRefused) && errors.Is(err, rawnode.ErrStalled) && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
			_, err = g.Propose(context.Background(), command)
		}
		g.n.post(func() {
			if err != nil {
				g.n.Fail("range %d: %w", g.ID(), err)
				return
			}
			done()
		})
	}()
}

// post has a function run behind those that wait.
func (n *node) post(do func()) {
	n.mu.Lock()
	n.queue = append(n.queue, do)
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

func (n *node) loop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
		}
		n.mu.Lock()
		queue := n.queue
		n.queue = nil
		n.mu.Unlock()
		for _, do := range queue {
			do()
		}
	}
}

// Now implements surroundings, as the methods below do.
func (n *node) Now() time.Duration { return time.Since(n.start) }

func (n *node) After(d time.Duration, then func()) {
	time.AfterFunc(d, func() { n.post(then) })
}

// Fail keeps the first failure, with which the run ends.
func (n *node) Fail(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failed == nil {
		n.failed = fmt.Errorf("node %d, at %v: "+format, slices.Concat([]any{n.cfg.ID, n.Now()}, args)...)
	}
}

func (n *node) failure() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.failed
}

// work has nothing to add: the time of a real processor passes by itself.
func (n *node) work(_ *ranged, _ time.Duration, then func()) { then() }

func (n *node) visit(_, other *ranged, ask request, then func(rows [][]byte)) {
	if other.lead != nil {
		n.load.serve(other, ask, then)
		return
	}
	n.asked++
	n.visits[n.asked] = func(answer []byte) {
		rows, err := decodeRows(answer, len(ask.wants))
		if err != nil {
			n.Fail("an answer of range %d: %w", other.id, err)
			return
		}
		then(rows)
	}
	n.send(n.load.plan.leader(int(other.id)-1), other, wire.Query{Number: n.asked, Policy: wire.QueryLocal, Data: ask.encode()})
}

func (n *node) send(to uint64, r *ranged, body wire.Body) {
	n.weft.Transport().Send([]wire.Message{{Group: visitGroups + r.id, From: n.cfg.ID, To: to, Body: body}})
}

// Receive takes a message of a visit.
func (n *node) Receive(m wire.Message) { n.post(func() { n.received(m) }) }

// Unreachable reports a link that broke, perhaps with a visit: transactions do not end then.
func (n *node) Unreachable(peer uint64) {}

func (n *node) received(m wire.Message) {
	r := n.load.ranges[m.Group-visitGroups-1]
	switch b := m.Body.(type) {
	case wire.Query:
		ask, err := decodeRequest(b.Data, n.load.mine(r))
		if err == nil && r.lead == nil {
			err = errors.New("another node leads")
		}
		if err != nil {
			n.Fail("range %d, a request of node %d: %w", r.id, m.From, err)
			return
		}
		n.load.serve(r, ask, func(rows [][]byte) {
			n.send(m.From, r, wire.Reply{Number: b.Number, Code: wire.Answered, Data: encodeRows(rows)})
		})
	case wire.Reply:
		if then := n.visits[b.Number]; then != nil {
			delete(n.visits, b.Number)
			then(b.Data)
		}
	}
}

// serve takes orders until ctx ends.
func (n *node) serve(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { lab.Answer(w, hostnode.Status{}, nil) })
	for name, do := range map[string]func(context.Context) (any, error){"lead": n.lead, "settle": n.settle, "run": n.run, "rows": n.rows} {
		mux.HandleFunc("POST /"+name, func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), settled+n.load.plan.Warm+n.load.plan.Time+nodePatience)
			defer cancel()
			answer, err := do(ctx)
			lab.Answer(w, answer, errors.Join(err, n.failure()))
		})
	}
	return hostnode.Serve(ctx, n.cfg.ClientListen, mux)
}

// lead has the node lead its ranges, and has these begin.
func (n *node) lead(ctx context.Context) (any, error) {
	for _, r := range n.load.ranges {
		if r.lead == nil {
			continue
		}
		g := n.groups[r.id-1]
		err := g.TransferLeader(ctx, n.cfg.ID)
		if err == nil {
			_, err = g.Propose(ctx, command(begin, 0, nil))
		}
		if err != nil {
			return nil, fmt.Errorf("range %d: %w", r.id, err)
		}
	}
	return nil, nil
}

// settle waits until all is applied and in files.
func (n *node) settle(ctx context.Context) (any, error) {
	for _, g := range n.groups {
		if _, err := g.Read(ctx); err != nil {
			return nil, err
		}
	}
	return nil, n.db.Flush()
}

// ran is what a node says of a run.
type ran struct {
	Took    [kinds][]time.Duration
	Sent    uint64 // bytes
	CPU     time.Duration
	Changed bool // a range has another leader
}

// run runs the terminals, and waits until their transactions have ended.
func (n *node) run(ctx context.Context) (any, error) {
	w, terms, sent, cpu := n.load, n.terms(), uint64(0), time.Duration(0)
	n.do(w.begin)
	err := lab.Sleep(ctx, settled+w.plan.Warm)
	n.do(func() { w.counts, sent, cpu = true, n.sent(), process.OwnCPU() })
	err = errors.Join(err, lab.Sleep(ctx, w.plan.Time))
	n.do(func() { w.counts, w.ending, sent, cpu = false, true, n.sent()-sent, process.OwnCPU()-cpu })
	for active := 1; active > 0 && err == nil && n.failure() == nil; {
		err = lab.Sleep(ctx, 5*time.Millisecond)
		n.do(func() { active = w.active })
	}
	after := n.terms()
	return ran{w.took, sent, cpu, !slices.Equal(terms, after) || slices.Contains(after, 0)}, err
}

// do has the loop run a function, and waits.
func (n *node) do(f func()) {
	done := make(chan struct{})
	n.post(func() { defer close(done); f() })
	<-done
}

// terms returns the terms of all groups, 0 where this node should lead and does not.
func (n *node) terms() (terms []uint64) {
	for i, g := range n.groups {
		s := g.Host().Status()
		if n.load.ranges[i].lead != nil && s.Lead != n.cfg.ID {
			s.Term = 0
		}
		terms = append(terms, s.Term)
	}
	return terms
}

func (n *node) sent() (bytes uint64) {
	for _, classes := range n.weft.Transport().Stats().Peers {
		for _, t := range classes {
			bytes += t.SentBytes
		}
	}
	return bytes
}

// copied is a replica on its way to the check: its rows, each with a sum in the place of its text.
type copied struct {
	Commands int
	Rows     []byte
}

// rows returns the replicas of this node by range.
func (n *node) rows(ctx context.Context) (any, error) {
	var all []copied
	for _, g := range n.groups {
		if _, err := g.Read(ctx); err != nil {
			return nil, err
		}
		var b batch
		err := g.state.View(func(r pebblestate.Reader) (err error) {
			return errors.Join(r.Scan(nil, nil, func(k, v []byte) bool {
				v, err = summed(k, v)
				b.put(string(k), v)
				return err == nil
			}), err)
		})
		if err != nil {
			return nil, fmt.Errorf("range %d: %w", g.ID(), err)
		}
		all = append(all, copied{g.does.commands, b.puts})
	}
	return all, nil
}

// summed puts a sum in the place of a row's text. The value of an intent is no row.
func summed(k, v []byte) ([]byte, error) {
	if k[0] == intents {
		return v, nil
	}
	r, err := decode(v)
	if len(r.text) > 0 {
		r.text = binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(r.text))
	}
	return r.encode(), err
}
