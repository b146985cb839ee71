// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftraft/weft/internal/certs"
	"github.com/weftraft/weft/internal/quiet"
	"github.com/weftraft/weft/internal/shaping"
	"github.com/weftraft/weft/internal/strangers"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/storage"
)

// TCP is a rawnode.Transport over TCP. Its methods may be called from several
// goroutines.
type TCP struct {
	cfg        Config
	keys       *certs.Keyring   // nil without TLS
	now        func() time.Time // for the validity of certificates
	listener   net.Listener
	context    context.Context // ends at Close
	cancel     context.CancelFunc
	goroutines sync.WaitGroup
	strangers  *strangers.Table
	lines      quiet.Log[logKind]
	card       *card // nil without Config.Egress
	count      counters
	groups     sync.Map // group to rawnode.Receiver
	joined     atomic.Int64
	process    uint64 // drawn at the start, 1 or more

	mu     sync.Mutex                       // guards changes of peers, and closed
	peers  atomic.Pointer[map[uint64]*peer] // the map is never changed, but replaced
	closed bool
	close  sync.Once
}

var _ rawnode.Transport = (*TCP)(nil)

// Identity returns cluster and node.
func (t *TCP) Identity() storage.Identity {
	return storage.Identity{Cluster: t.cfg.Cluster, Node: t.cfg.Node}
}

// HasAddress reports whether messages for a node can be sent. It does not wait.
func (t *TCP) HasAddress(node uint64) bool {
	p := t.peer(node)
	return p != nil && t.address(p) != ""
}

// MaxMessageBytes returns how large a message may be; see [rawnode.Transport].
func (t *TCP) MaxMessageBytes() int { return t.cfg.MaxFrameBytes - wire.HeaderLen }

// SealsLate says that coded entries get the form for their receiver as they are written;
// see [rawnode.Transport].
func (*TCP) SealsLate() {}

// Backlog returns the bytes of appends that wait for a member, and whether that is known. It
// does not wait. Bytes unsent by the kernel count on Linux
// only.
func (t *TCP) Backlog(to uint64) (bytes int, known bool) {
	if p := t.peer(to); p != nil {
		if l := p.sending[wire.ClassAppend].Load(); l != nil {
			return l.backlog()
		}
	}
	return 0, false
}

// Standing returns how long the oldest control message or append for a node has waited in its queue here, 0 if
// none waits. It does not wait for the network.
func (t *TCP) Standing(to uint64) (age time.Duration) {
	p := t.peer(to)
	if p == nil {
		return 0
	}
	now := time.Now()
	for _, class := range [...]wire.Class{wire.ClassControl, wire.ClassAppend} {
		if l := p.sending[class].Load(); l != nil {
			age = max(age, l.standing(now))
		}
	}
	return age
}

// peer is the state for a known node.
type peer struct {
	id       uint64
	sending  [wire.NumClasses]atomic.Pointer[link] // nil until used
	traffic  [wire.NumClasses]traffic
	receive  budget
	reading  [wire.NumClasses]chan struct{} // holds a token while a connection is read
	shaper   shaper
	announce atomic.Pointer[announced]

	gateway bool // and no node; constant

	// Under TCP.mu.
	address  string
	rivals   rivals
	incoming [wire.NumClasses]*incoming // nil when there is none
}

// incoming is a connection from a peer.
type incoming struct {
	net.Conn
	process  uint64        // of the hello
	replaced chan struct{} // closed when a later connection takes its place
}

// announced is a peer's announcement at the last connection.
type announced struct {
	kinds        wire.Kinds
	capabilities wire.Capabilities
	zone         string
}

// New listens and returns a transport. The error names an address in use, or the file
// of an invalid certificate.
func New(cfg Config) (*TCP, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	keys, err := loadKeys(cfg)
	if err != nil {
		return nil, err
	}
	return open(cfg, keys, time.Now)
}

// open is New with a keyring, nil for none, and the keyring's clock.
func open(cfg Config, keys *certs.Keyring, now func() time.Time) (*TCP, error) {
	cfg = cfg.withDefaults()
	t := &TCP{cfg: cfg, listener: cfg.Listener, keys: keys, now: now, process: 1 + rand.Uint64N(math.MaxUint64), strangers: strangers.New(strangers.Limit, int(wire.NumClasses), rand.IntN)}
	if cfg.Egress > 0 {
		t.card = &card{bytesPerSecond: cfg.Egress}
	}
	if t.listener == nil {
		var err error
		if t.listener, err = net.Listen("tcp", cfg.Listen); err != nil {
			return nil, fmt.Errorf("transport: listen for peers at %s (is another node running there?): %w", cfg.Listen, err)
		}
	}
	peers := map[uint64]*peer{}
	for id, address := range cfg.Peers {
		if id != cfg.Node {
			peers[id] = t.newPeer(id, address)
		}
	}
	t.peers.Store(&peers)
	t.context, t.cancel = context.WithCancel(context.Background())
	t.spawn(t.accept)
	return t, nil
}

func (t *TCP) newPeer(id uint64, address string) *peer {
	p := &peer{id: id, address: address}
	for class := range p.reading {
		p.reading[class] = make(chan struct{}, 1)
	}
	p.shaper = shaper{shape: t.cfg.Shape, rng: rand.New(rand.NewPCG(t.cfg.Node, id)), card: t.card}
	return p
}

// Addr returns the address that the transport listens at.
func (t *TCP) Addr() net.Addr { return t.listener.Addr() }

// spawn starts a goroutine that Close waits for. The caller holds t.mu, or is a spawned
// goroutine, or is New.
func (t *TCP) spawn(f func()) {
	t.goroutines.Add(1)
	go func() {
		defer t.goroutines.Done()
		f()
	}()
}

// SetPeer makes a node known, or gives the node another address from its next
// connection on. A node with an empty address is not dialed.
func (t *TCP) SetPeer(id uint64, address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id == 0 || id == t.cfg.Node {
		return
	}
	switch p := t.peer(id); {
	case p == nil:
	case p.gateway: // and is a node now
		t.drop(p)
	default:
		p.address = address
		return
	}
	t.put(t.newPeer(id, address))
}

// put makes a peer known. The caller holds t.mu.
func (t *TCP) put(p *peer) {
	peers := maps.Clone(*t.peers.Load())
	peers[p.id] = p
	t.peers.Store(&peers)
}

// drop forgets a peer and closes its connections. The caller holds t.mu.
func (t *TCP) drop(p *peer) {
	peers := maps.Clone(*t.peers.Load())
	delete(peers, p.id)
	t.peers.Store(&peers)
	p.close()
}

// RemovePeer forgets a node and closes its connections.
func (t *TCP) RemovePeer(id uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.peer(id); p != nil {
		t.drop(p)
	}
}

// SetShape gives the link to a known node another shape, from the next byte on.
func (t *TCP) SetShape(id uint64, shape shaping.Shape) error {
	if err := shape.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	p := t.peer(id)
	if p == nil {
		return fmt.Errorf("%w: node %d is not known", errUnreachable, id)
	}
	p.shaper.set(shape)
	return nil
}

// Announced returns a node's announcement at the last connection: the kinds of messages
// taken from this node, and further capabilities. The result is false before the first
// connection.
func (t *TCP) Announced(id uint64) (wire.Kinds, wire.Capabilities, bool) {
	p := t.peer(id)
	if p == nil {
		return 0, 0, false
	}
	a := p.announce.Load()
	if a == nil {
		return 0, 0, false
	}
	return a.kinds, a.capabilities, true
}

// Zone returns the zone of a node, this one or another, as that one has announced it; empty if it has none, or none
// is known.
func (t *TCP) Zone(id uint64) string {
	if id == t.cfg.Node {
		return t.cfg.Zone
	}
	if p := t.peer(id); p != nil {
		if a := p.announce.Load(); a != nil {
			return a.zone
		}
	}
	return ""
}

// peer returns the state for a node, or nil if unknown.
func (t *TCP) peer(id uint64) *peer { return (*t.peers.Load())[id] }

// close ends a peer's connections. The caller holds TCP.mu.
func (p *peer) close() {
	for class := range wire.NumClasses {
		if l := p.sending[class].Load(); l != nil {
			l.close()
		}
		if c := p.incoming[class]; c != nil {
			_ = c.Close() // given up; the error is of no interest
		}
	}
}

// Join implements rawnode.Transport.
func (t *TCP) Join(group uint64, r rawnode.Receiver) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errClosed
	}
	if _, taken := t.groups.LoadOrStore(group, r); taken {
		return fmt.Errorf("%w: group %d", errGroupTaken, group)
	}
	t.countJoined(r, 1)
	return nil
}

// Leave implements rawnode.Transport.
func (t *TCP) Leave(group uint64) {
	if r, had := t.groups.LoadAndDelete(group); had {
		t.countJoined(r, -1)
	}
}

// countJoined counts a group that takes turns; another receiver never needs the goroutine
// of a connection for long.
func (t *TCP) countJoined(r any, n int64) {
	if _, ok := r.(batchReceiver); ok {
		t.joined.Add(n)
	}
}

// Send implements rawnode.Transport.
func (t *TCP) Send(messages []wire.Message) {
	now := time.Now()
	drops := drops{t: t}
	var space [8]*link
	links := space[:0]
	for _, m := range messages {
		size := m.Size()
		l, err := t.link(m, size)
		if err == nil {
			err = l.offer(queued{m, size, now})
		}
		if err != nil {
			drops.add(m, t.peer(m.To), reasonOf(err))
		} else if !slices.Contains(links, l) {
			links = append(links, l)
		}
	}
	for _, l := range links {
		l.start(now, &drops)
	}
	drops.report()
}

// SendWait implements rawnode.Transport.
func (t *TCP) SendWait(ctx context.Context, m wire.Message) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	l, err := t.link(m, m.Size())
	if err != nil {
		return err
	}
	return l.offerWait(ctx, m)
}

// link returns the connection for a message.
func (t *TCP) link(m wire.Message, size int) (*link, error) {
	if n, bound := size+wire.HeaderLen, t.cfg.maxFrame(m.Class()); n > bound {
		return nil, dropped(dropSize, fmt.Errorf("%w: %d bytes, the bound is %d", errTooLarge, n, bound))
	}
	p := t.peer(m.To)
	if p == nil {
		return nil, dropped(dropPeer, fmt.Errorf("%w: node %d is not known", errUnreachable, m.To))
	}
	if l := p.sending[m.Class()].Load(); l != nil {
		return l, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch l := p.sending[m.Class()].Load(); {
	case t.closed:
		return nil, errDropClosed
	case l != nil:
		return l, nil
	case t.peer(m.To) != p:
		return nil, dropped(dropPeer, fmt.Errorf("%w: node %d is not known any more", errUnreachable, m.To))
	case p.address == "":
		return nil, noAddress(p)
	}
	l := newLink(t, p, m.Class())
	p.sending[m.Class()].Store(l)
	t.spawn((&sender{link: l}).run)
	return l, nil
}

func noAddress(p *peer) error {
	return dropped(dropPeer, fmt.Errorf("%w: node %d has no address", errUnreachable, p.id))
}

func (t *TCP) receiver(group uint64) rawnode.Receiver {
	if r, ok := t.groups.Load(group); ok {
		return r.(rawnode.Receiver)
	}
	return nil
}

// broken tells all groups of a lost connection to a peer, because written messages may
// not have arrived.
func (t *TCP) broken(to uint64) {
	t.groups.Range(func(_, r any) bool {
		r.(rawnode.Receiver).Unreachable(to)
		return true
	})
}

func (t *TCP) address(p *peer) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return p.address
}

// Close ends all connections and waits for the goroutines behind them. Groups
// should have left before. A second call waits for the first to end, does nothing,
// and returns nil.
func (t *TCP) Close() (err error) {
	t.close.Do(func() { err = t.closeNow() })
	return err
}

func (t *TCP) closeNow() error {
	t.mu.Lock()
	t.closed = true
	for _, p := range *t.peers.Load() {
		p.close()
	}
	t.mu.Unlock()
	t.cancel()
	err := t.listener.Close()
	t.goroutines.Wait()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return err
}
