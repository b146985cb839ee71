// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/adaptive"
	"github.com/weftraft/weft/raft"
)

// script is a small cluster of real cores that does what a text file says, one
// thing at a time: a message arrives, or does not; a write becomes durable, or
// is torn by a crash; a host compacts its log. The invariants of the simulator
// are checked after each command. When a schedule fails, or with -v, the messages that
// arrived and were lost are printed below the commands.
//
// The commands:
//
//	cluster nodes=5 [learners=1] [spares=2] [threshold=16] [memory=1000] [plain=(2,3)]
//	assign 2=3 3=1 ...     units for the entries proposed from here on; the rest get none
//	assign level=2         the same number of units for everybody
//	assign policy=full     or levelled, or adaptive: one of the library's policies
//	propose N name [size=60]
//	change N v4 r1 [transition=joint|explicit]    leave N
//	campaign N, tick N [n=10], transfer N to=M, densify N
//	run 1 2 3 [except=Snap]        delivers what these nodes send each other until they are quiet
//	pass 1 2 3 [n=10] [except=Snap]  ticks pass at these nodes, and they run after each
//	deliver [from=1] [to=2] [type=App] [count=1]   delivers these messages only
//	lose [from=1] [to=2] [type=App]                and these never arrive
//	copy [from=1] [to=2] [type=App]                these are doubled: the copy comes last
//	hold N, write N        the log writer stops; it makes everything durable and goes on
//	hold-apply N, apply N  the same for the state machine
//	crash N [keep=3]       loses power: of what was not durable some records stay
//	restart N [plain]
//	compact N [to=5]       a checkpoint at what is applied, and the log is cut
//	snapshot N to=M        N, which leads, sends M the snapshot that it has
//	status [N ...], holdings INDEX, applied N
//	events                 what the cores said they did about coding, since the last time
type script struct {
	nodes  map[uint64]*scriptNode
	ids    []uint64
	pool   []scriptPacket
	rules  scriptRules
	truth  *truth
	out    strings.Builder
	policy scriptPolicy
	events scriptEvents
	// threshold is raft.Coding's.
	threshold, memory int
	// trace is the commands, with the messages that they delivered or lost.
	trace strings.Builder
}

// scriptPacket is a message on its way.
type scriptPacket struct {
	from, to uint64
	typ      pb.MessageType
	data     []byte
}

// scriptPolicy assigns what the script says.
type scriptPolicy struct {
	level int
	units map[uint64]int
	other ecraft.Policy // decides if it is not nil
}

// Assign implements [ecraft.Policy].
func (p *scriptPolicy) Assign(r *ecraft.Round, units []int) ecraft.Plan {
	if p.other != nil {
		return p.other.Assign(r, units)
	}
	for i, m := range r.Followers {
		if p.level > 0 {
			units[i] = r.Layout.UnitsAt(p.level)
		} else {
			units[i] = min(p.units[m.ID], r.Layout.D)
		}
	}
	return ecraft.Plan{Level: p.level}
}

// scriptRules is what must be so after each command, whatever it was.
type scriptRules struct {
	applied   map[uint64]string // by index: what the first node applied there
	committed map[uint64]uint64 // by index: the term of what was ever committed
	broken    string
}

// breaks notes the first rule that does not hold.
func (r *scriptRules) breaks(format string, args ...any) {
	if r.broken == "" {
		r.broken = fmt.Sprintf(format, args...)
	}
}

func newScript() *script {
	return &script{nodes: map[uint64]*scriptNode{}, rules: scriptRules{applied: map[uint64]string{}, committed: map[uint64]uint64{}}, policy: scriptPolicy{level: 1}}
}

// TestScripts runs the schedules in testdata/coded. Each says what it shows.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/coded", func(t *testing.T, path string) {
		s := newScript()
		defer func() {
			if t.Failed() || s.rules.broken != "" || testing.Verbose() {
				t.Logf("messages:\n%s", &s.trace)
			}
		}()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return s.do(d)
		})
		if s.rules.broken != "" {
			t.Errorf("%s: %s", path, s.rules.broken)
		}
	})
}

// do carries out one command and returns what there is to see of it.
func (s *script) do(d *datadriven.TestData) (result string) {
	s.out.Reset()
	fmt.Fprintf(&s.trace, "%s: %s\n", d.Pos, commandLine(d))
	defer func() {
		switch x := recover().(type) {
		case nil:
		case scriptError:
			result = "error: " + string(x) + "\n"
		case corePanic:
			s.rules.breaks("%s: a core panics: %s", d.Pos, x.text)
			result = "PANIC " + x.text + "\n"
		default:
			panic(x)
		}
	}()
	if err := s.command(d); err != nil {
		return "error: " + err.Error() + "\n"
	}
	if wrong := s.wrong(); wrong != "" {
		s.rules.breaks("%s: %s", d.Pos, wrong)
		return s.out.String() + "VIOLATION " + wrong + "\n"
	}
	if s.out.Len() == 0 {
		return "ok\n"
	}
	return s.out.String()
}

// commandLine is a command as it stands in the file, about.
func commandLine(d *datadriven.TestData) string {
	words := []string{d.Cmd}
	for _, a := range d.CmdArgs {
		words = append(words, a.String())
	}
	return strings.Join(words, " ")
}

// scriptArgs is a command's arguments: names with a value, and plain words.
type scriptArgs struct {
	words []string
	named map[string]string
}

func argsOf(d *datadriven.TestData) scriptArgs {
	a := scriptArgs{named: map[string]string{}}
	for _, x := range d.CmdArgs {
		if len(x.Vals) == 0 {
			a.words = append(a.words, x.Key)
		} else {
			a.named[x.Key] = strings.Join(x.Vals, " ")
		}
	}
	return a
}

// scriptError is the panic value of a command that makes no sense.
type scriptError string

func (a scriptArgs) number(name string, otherwise uint64) uint64 {
	if text, ok := a.named[name]; ok {
		return number(text)
	}
	return otherwise
}

func number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(scriptError(fmt.Sprintf("%q is not a number", text)))
	}
	return n
}

func numbers(words []string) (ns []uint64) {
	for _, w := range words {
		ns = append(ns, number(w))
	}
	return ns
}

// command does what a command says.
func (s *script) command(d *datadriven.TestData) error {
	a := argsOf(d)
	switch d.Cmd {
	case "cluster":
		s.found(a)
		return nil
	case "assign":
		return s.assign(a)
	case "run":
		return s.run(numbers(a.words), a.named["except"])
	case "pass":
		return s.pass(a)
	case "deliver", "lose", "copy":
		s.deliver(a, d.Cmd)
		return nil
	case "status":
		s.status(a)
		return nil
	case "holdings":
		return s.holdings(a)
	case "events":
		s.out.WriteString(s.events.take())
		return nil
	}
	if len(a.words) == 0 {
		return fmt.Errorf("%s: which node?", d.Cmd)
	}
	id := number(a.words[0])
	n := s.nodes[id]
	if n == nil {
		return fmt.Errorf("there is no node %q", a.words[0])
	}
	a.words = a.words[1:]
	if n.rn == nil && d.Cmd != "restart" && d.Cmd != "applied" {
		return fmt.Errorf("node %d is down", id)
	}
	err := n.command(d.Cmd, a)
	n.work()
	return err
}

func (s *script) found(a scriptArgs) {
	voters := a.number("nodes", 0)
	members := voters + a.number("learners", 0)
	s.threshold, s.memory = int(a.number("threshold", 16)), int(a.number("memory", 0))
	conf := &pb.ConfState{}
	for id := uint64(1); id <= members; id++ {
		if id <= voters {
			conf.Voters = append(conf.Voters, id)
		} else {
			conf.Learners = append(conf.Learners, id)
		}
	}
	first := &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: new(uint64(1)), Term: new(uint64(1)), ConfState: conf}}
	s.truth = newTruth(0)
	s.truth.configured(1, conf)
	for id := uint64(1); id <= members+a.number("spares", 0); id++ {
		n := &scriptNode{s: s, id: id}
		n.disk = newDisk(nil, func() bool { return false })
		if id <= members {
			n.disk = newDisk(first, func() bool { return false })
		}
		n.plain = slices.Contains(strings.Fields(a.named["plain"]), fmt.Sprint(id))
		s.nodes[id], s.ids = n, append(s.ids, id)
		n.start()
	}
}

func (s *script) assign(a scriptArgs) error {
	s.policy = scriptPolicy{level: int(a.number("level", 0)), units: map[uint64]int{}}
	for name, value := range a.named {
		switch name {
		case "level":
		case "policy":
			s.policy.other = map[string]ecraft.Policy{"full": ecraft.Full{}, "levelled": ecraft.Levelled{},
				"adaptive": adaptive.New(adaptive.Options{})}[value]
			if s.policy.other == nil {
				return fmt.Errorf("there is no policy %q", value)
			}
		default:
			s.policy.units[number(name)] = int(number(value))
		}
	}
	return nil
}

// send puts a message into the pool.
func (s *script) send(m *pb.Message) {
	data, err := proto.Marshal(m)
	if err != nil {
		s.rules.breaks("%v does not encode: %v", m.GetType(), err)
		return
	}
	s.pool = append(s.pool, scriptPacket{from: m.GetFrom(), to: m.GetTo(), typ: m.GetType(), data: data})
}

// take removes the first message that fits from the pool.
func (s *script) take(fits func(scriptPacket) bool) (scriptPacket, bool) {
	i := slices.IndexFunc(s.pool, fits)
	if i < 0 {
		return scriptPacket{}, false
	}
	p := s.pool[i]
	s.pool = slices.Delete(s.pool, i, i+1)
	return p, true
}

// arrive lets a message arrive at a node that is up.
func (s *script) arrive(p scriptPacket) {
	m := &pb.Message{}
	if err := proto.Unmarshal(p.data, m); err != nil {
		s.rules.breaks("a message does not survive its encoding: %v", err)
		return
	}
	n := s.nodes[p.to]
	if n == nil || n.rn == nil {
		s.tell("  down", m)
		return
	}
	s.tell("     <", m)
	if err := n.rn.Step(m); err != nil {
		fmt.Fprintf(&s.out, "%d refuses %v of %d: %v\n", p.to, p.typ, p.from, err)
	}
	n.work()
	if from := s.nodes[p.from]; p.typ == pb.MsgSnap && from != nil && from.rn != nil {
		from.rn.ReportSnapshot(p.to, raft.SnapshotFinish)
		from.work()
	}
}

// tell notes what becomes of a message.
func (s *script) tell(what string, m *pb.Message) {
	fmt.Fprintf(&s.trace, "%s %s\n", what, appendMessage(nil, m))
}

// mostDeliveries bounds one run command.
const mostDeliveries = 10_000

// run delivers what the nodes send each other until they are quiet. Messages to
// and from others stay, and those of one type.
func (s *script) run(ids []uint64, except string) error {
	for range mostDeliveries {
		p, ok := s.take(func(p scriptPacket) bool {
			return slices.Contains(ids, p.from) && slices.Contains(ids, p.to) && typeName(p.typ) != except
		})
		if !ok {
			return nil
		}
		s.arrive(p)
	}
	return fmt.Errorf("%d messages, and no end", mostDeliveries)
}

// pass lets ticks pass.
func (s *script) pass(a scriptArgs) error {
	ids := numbers(a.words)
	for range a.number("n", 1) {
		for _, id := range ids {
			if n := s.nodes[id]; n != nil && n.rn != nil {
				n.rn.Tick()
				n.work()
			}
		}
		if err := s.run(ids, a.named["except"]); err != nil {
			return err
		}
	}
	return nil
}

// deliver lets the messages that fit arrive, or be lost, or doubled: those there
// are now.
func (s *script) deliver(a scriptArgs, how string) {
	from, to, count := a.number("from", 0), a.number("to", 0), a.number("count", uint64(len(s.pool)))
	typ, typed := a.named["type"]
	var taken []scriptPacket
	for uint64(len(taken)) < count {
		p, ok := s.take(func(p scriptPacket) bool {
			return (from == 0 || p.from == from) && (to == 0 || p.to == to) && (!typed || typeName(p.typ) == typ)
		})
		if !ok {
			break
		}
		taken = append(taken, p)
	}
	if how == "copy" {
		s.pool = append(append(taken[:len(taken):len(taken)], s.pool...), taken...)
	}
	if how == "lose" {
		for _, p := range taken {
			m := &pb.Message{}
			if proto.Unmarshal(p.data, m) == nil {
				s.tell("  lost", m)
			}
		}
	}
	if how == "deliver" {
		for _, p := range taken {
			s.arrive(p)
		}
	}
	if s.out.Len() == 0 {
		fmt.Fprintf(&s.out, "%d\n", len(taken))
	}
}
