// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/weftraft/weft/internal/quiet"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
)

// GatewayConfig configures a [Gateway]. ID, Group, Transport and Homes must be set. Fields that
// [ReplicaConfig] and [Config] have as well mean the same.
type GatewayConfig struct {
	// ID is the gateway's identity, which no node has. The state of a group has a few bytes for each ID that was
	// ever used in it: an ID is used again.
	ID, Group uint64
	// Transport may be shared by gateways of several groups.
	Transport Transport
	// Homes returns the nodes that may have a replica of the group, and is asked at each tick. It must not wait. If the
	// transport knows zones, a node in the gateway's own zone is preferred, once the transport has met it.
	Homes func() []uint64
	// Boot numbers the starts of this gateway; 0 means the wall clock's.
	Boot uint64

	// ElectionTick is the number of ticks after which a silent home is given up, and should be that of the members.
	ElectionTick int
	// TickInterval and DefaultTimeout are as in [Config].
	TickInterval, DefaultTimeout time.Duration

	// MaxCommandBytes, MaxBatchBytes and MaxQueueBytes, in bytes, are as in [ReplicaConfig]; queries count in
	// MaxQueueBytes, too, and a query has at most MaxCommandBytes.
	MaxCommandBytes, MaxBatchBytes, MaxQueueBytes int
	// MaxCalls, MaxBatches and EagerBatches are as in [ReplicaConfig]. When a batch ends, and more than 8 calls wait or have just
	// ended, the next batch waits for the clients of that one: for half of a batch's usual time, at most 4 ms.
	MaxCalls, MaxBatches, EagerBatches int
	// Budget, unless nil, is as in [ReplicaConfig].
	Budget *Budget

	// Recorder, unless nil, gets the durations of commands, and of queries as reads.
	Recorder Recorder
	// Logger gets the log lines for operators; nil means silence.
	Logger *slog.Logger
}

func (c GatewayConfig) settings() replica.Settings {
	return replica.Settings{
		ID: c.ID, Group: c.Group, Boot: c.Boot, ElectionTick: c.ElectionTick,
		MaxCommandBytes: c.MaxCommandBytes, MaxBatchBytes: c.MaxBatchBytes, MaxQueueBytes: c.MaxQueueBytes,
		MaxCalls: c.MaxCalls, MaxBatches: c.MaxBatches, EagerBatches: c.EagerBatches, Budget: c.Budget,
	}.WithDefaults()
}

func (c GatewayConfig) withDefaults() GatewayConfig {
	if c.Boot == 0 {
		c.Boot = uint64(time.Now().UnixNano())
	}
	if c.TickInterval == 0 {
		c.TickInterval = 100 * time.Millisecond
	}
	if c.DefaultTimeout == 0 {
		c.DefaultTimeout = 10 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate returns an error that names every mistake, or nil.
func (c GatewayConfig) Validate() error {
	c = c.withDefaults()
	errs := []error{c.settings().ValidateCalls()}
	bad := func(field string, value any, want string) {
		errs = append(errs, fmt.Errorf("%w: %s is %v, want %s", ErrInvalid, field, value, want))
	}
	if isNil(c.Transport) {
		bad("Transport", c.Transport, "a way to the nodes")
	}
	if c.Homes == nil {
		bad("Homes", "nil", "a function that returns the nodes to ask")
	}
	set := c.settings()
	messageMistakes(bad, c.Transport, partOf{"MaxCommandBytes", set.MaxCommandBytes}, partOf{"MaxBatchBytes", set.MaxBatchBytes})
	timeMistakes(bad, c.ElectionTick, c.TickInterval, c.DefaultTimeout, 0)
	return errors.Join(errs...)
}

// Gateway takes commands and queries for a group, and has no replica of it: no log, no state machine, no disk. It
// batches commands, sends them to the leader, and gets the results from its home, a replica of the group that
// it chooses, and leaves for another one when the home is silent or falls behind. The verdicts on commands are those
// of a [Host]. Its methods may be called from several goroutines.
type Gateway struct {
	cfg      GatewayConfig
	settings replica.Settings // of cfg, with defaults
	start    time.Time
	ready    chan struct{} // has a token if the loop has to look at the inputs
	stop     chan struct{} // closed when the loop is to end
	stopOnce sync.Once
	finished chan struct{}
	lines    quiet.Log[logKind]

	mu      sync.Mutex
	room    sync.Cond // inputs were taken, or the loop has ended
	inputs  []func(*replica.Gateway)
	calls   int // in inputs
	bytes   int // of inputs
	dropped uint64
	ended   bool
	last    replica.GatewayStatus // at the end of the loop

	// Used by the loop only.
	gateway *replica.Gateway
	waiting map[replica.Call]*gatewayCall
	lastID  replica.Call
}

// gatewayCall is a call under way.
type gatewayCall struct {
	begin    func(*replica.Gateway, replica.Call, replica.Deadline)
	record   func(d callEnd, took time.Duration) // tells Config.Recorder of a call that ended well
	deadline replica.Deadline
	begun    replica.Deadline
	done     chan callEnd // has room for one
	id       replica.Call // of the loop; 0: not begun
}

// NewGateway starts a gateway. It does not wait for a node. An error wraps [ErrInvalid], or is the transport's.
func NewGateway(cfg GatewayConfig) (*Gateway, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	pure, err := replica.NewGateway(cfg.settings())
	if err != nil {
		return nil, err
	}
	g := &Gateway{
		cfg: cfg, settings: cfg.settings(), start: time.Now(), gateway: pure, waiting: map[replica.Call]*gatewayCall{},
		ready: make(chan struct{}, 1), stop: make(chan struct{}), finished: make(chan struct{}),
	}
	g.room.L = &g.mu
	g.setHomes()
	if err := cfg.Transport.Join(cfg.Group, g); err != nil {
		return nil, fmt.Errorf("gateway %d, group %d: join the transport: %w", cfg.ID, cfg.Group, err)
	}
	go g.run()
	return g, nil
}

func (g *Gateway) now() replica.Deadline { return time.Since(g.start) }

// setHomes tells the gateway the nodes that may be its home.
func (g *Gateway) setHomes() {
	homes := g.cfg.Homes()
	var near []uint64
	if z, ok := g.cfg.Transport.(zoned); ok && z.Zone(g.cfg.ID) != "" {
		near = slices.DeleteFunc(slices.Clone(homes), func(id uint64) bool { return z.Zone(id) != z.Zone(g.cfg.ID) })
	}
	g.gateway.SetHomes(homes, near)
}

// run is the loop: the goroutine that has the gateway. It never waits.
func (g *Gateway) run() {
	defer close(g.finished)
	ticks, stop := newTicks(g.cfg.TickInterval, func() {})
	defer stop()
	var between alarm
	defer between.stop()
	g.flush()
	for {
		at, due := g.gateway.Deadline()
		select {
		case <-g.ready:
		case <-between.arm(at, due, g.now()):
			between.rang()
		case <-ticks:
			g.setHomes()
			g.gateway.Tick(g.now())
		case <-g.stop:
			g.end()
			return
		}
		g.turn()
	}
}

// turn feeds the gateway what has come in.
func (g *Gateway) turn() {
	g.gateway.At(g.now())
	for _, do := range g.take() {
		do(g.gateway)
	}
	g.flush()
}

// take returns the waiting inputs.
func (g *Gateway) take() []func(*replica.Gateway) {
	g.mu.Lock()
	defer g.mu.Unlock()
	inputs := g.inputs
	g.inputs, g.calls, g.bytes = nil, 0, 0
	g.room.Broadcast()
	return inputs
}

func (g *Gateway) flush() {
	out := g.gateway.Flush(g.now())
	if len(out.Sends) > 0 {
		g.cfg.Transport.Send(out.Sends)
	}
	now := g.now()
	for _, d := range out.Done {
		c := g.waiting[d.Call]
		delete(g.waiting, d.Call)
		end := callEnd{Done: d, times: commandTimes(d, c.begun, now)}
		if g.cfg.Recorder != nil && d.Err == nil {
			c.record(end, now-c.begun)
		}
		c.done <- end
	}
}

// end ends all calls.
func (g *Gateway) end() {
	g.cfg.Transport.Leave(g.cfg.Group)
	g.mu.Lock()
	g.ended = true
	g.room.Broadcast()
	g.mu.Unlock()
	g.turn()
	g.gateway.Stop()
	g.flush()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = g.gateway.Status()
}

// add queues an input of so many bytes. The caller holds g.mu.
func (g *Gateway) add(do func(*replica.Gateway), bytes int) {
	g.inputs = append(g.inputs, do)
	g.bytes += bytes
	select {
	case g.ready <- struct{}{}:
	default:
	}
}

// call has the gateway do something of so many bytes, and waits for the end.
func (g *Gateway) call(ctx context.Context, op string, bytes int, begin func(*replica.Gateway, replica.Call, replica.Deadline), record func(callEnd, time.Duration)) (callEnd, error) {
	refused := func(err error) (callEnd, error) {
		return callEnd{}, &CallError{Op: op, Verdict: ErrRefused, Cause: err}
	}
	if err := ended(ctx); err != nil {
		return refused(err)
	}
	c := &gatewayCall{begin: begin, record: record, begun: g.now(), done: make(chan callEnd, 1)}
	c.deadline = deadline(ctx, c.begun, g.cfg.DefaultTimeout)
	if err := g.enter(c, bytes); err != nil {
		return refused(err)
	}
	select {
	case d := <-c.done:
		return d, d.Err
	case <-ctx.Done():
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		cause = nil
	}
	g.post(func(r *replica.Gateway) {
		if g.waiting[c.id] == c {
			r.Cancel(c.id, cause)
		}
	})
	d := <-c.done // the loop never waits
	return d, d.Err
}

// enter hands a call to the loop, or returns why not.
func (g *Gateway) enter(c *gatewayCall, bytes int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.ended:
		return ErrStopped
	case g.calls >= g.settings.MaxCalls || g.bytes > 0 && g.bytes+bytes > g.settings.MaxQueueBytes:
		return fmt.Errorf("%w: %d calls of %d bytes have just come in, the bounds are %d and %d; try again later", ErrOverloaded, g.calls, g.bytes, g.settings.MaxCalls, g.settings.MaxQueueBytes)
	}
	g.calls++
	g.add(func(r *replica.Gateway) {
		g.lastID++
		c.id = g.lastID
		g.waiting[c.id] = c
		c.begin(r, c.id, c.deadline)
	}, bytes)
	return nil
}

// post queues a function, if the loop goes on.
func (g *Gateway) post(do func(*replica.Gateway)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ended {
		g.add(do, 0)
	}
}

// Propose is [Host.Propose], but for the Value of the result: that is a []byte, see [ResultEncoder].
func (g *Gateway) Propose(ctx context.Context, command []byte) (Result, error) {
	d, err := g.call(ctx, callOps[opPropose], len(command), func(r *replica.Gateway, id replica.Call, by replica.Deadline) {
		r.Propose(id, command, by)
	}, func(d callEnd, _ time.Duration) { g.cfg.Recorder.Proposed(d.times) })
	return Result{Value: d.Result, Index: d.Index, Times: d.times}, err
}

// Query asks the state machine of a replica, a [Querier], behind the read barrier of the options. The request has at
// most MaxCommandBytes, and the answer at most 48 MiB and 1 MiB less than the transport takes. An error wraps
// ErrRefused: a query has no effect, and may be asked again.
func (g *Gateway) Query(ctx context.Context, request []byte, o ReadOptions) ([]byte, ReadResult, error) {
	d, err := g.call(ctx, "query", len(request), func(r *replica.Gateway, id replica.Call, by replica.Deadline) {
		r.Query(id, request, replica.ReadOptions(o), by)
	}, func(d callEnd, took time.Duration) { recordRead(g.cfg.Recorder, o.Policy, d.Read.By, took) })
	answer, _ := d.Result.([]byte)
	return answer, ReadResult(d.Read), err
}

// Status returns the present status, or the last one of a gateway that has ended: the home, or 0; the leader known here,
// or 0; the index that the home has applied; the members; calls and bytes that wait; and counters since the start.
func (g *Gateway) Status() replica.GatewayStatus {
	got := make(chan replica.GatewayStatus, 1)
	g.post(func(r *replica.Gateway) { got <- r.Status() })
	select {
	case s := <-got:
		return s
	case <-g.finished:
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.last
	}
}

// Done returns a channel that is closed when the gateway has stopped.
func (g *Gateway) Done() <-chan struct{} { return g.finished }

// Stop ends the gateway and its calls. The transport stays open.
func (g *Gateway) Stop() {
	g.stopOnce.Do(func() { close(g.stop) })
	<-g.finished
}

// Receive implements Receiver. Without room a control message is dropped, and another one waits in the network.
func (g *Gateway) Receive(m wire.Message) {
	size := m.Size()
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.bytes > 0 && g.bytes+size > g.settings.MaxQueueBytes && !g.ended {
		if m.Class() == wire.ClassControl {
			g.dropped++
			return
		}
		g.room.Wait()
	}
	if !g.ended {
		g.add(func(r *replica.Gateway) {
			if err := r.Receive(m); err != nil {
				g.lines.Log(g.cfg.Logger, slog.LevelWarn, logKind{"message refused", m.From}, "message refused", "gateway", g.cfg.ID, "group", g.cfg.Group, "error", err)
			}
		}, size)
	}
}

// Unreachable implements Receiver.
func (g *Gateway) Unreachable(peer uint64) {
	g.post(func(r *replica.Gateway) { r.Unreachable(peer) })
}
