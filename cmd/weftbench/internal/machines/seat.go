// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/cmd/weftbench/internal/costs"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/replica/replicatest"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// Run is the virtual time of a simulation, up to a failure.
type Run struct {
	world.Agenda
	err error
}

// Fail ends the run with an error, unless another failure came first.
func (r *Run) Fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("at %v: "+format, append([]any{r.Now()}, args...)...)
	}
}

// Err returns the failure of the run.
func (r *Run) Err() error { return r.err }

// Until lets time pass until something is the case, or for so long.
func (r *Run) Until(most time.Duration, done func() bool) bool {
	for end := r.Now() + most; r.err == nil && !done(); {
		if !r.Step(end) {
			return done()
		}
	}
	return r.err == nil
}

// Pass lets time pass.
func (r *Run) Pass(d time.Duration) { r.Until(d, func() bool { return false }) }

// Longest is the deadline of calls: none passes.
const Longest = time.Hour

// Seat is a replica with a log in memory and a processor: what members of simulations have in common.
// A member embeds the seat, and has the other methods of world.Surroundings.
type Seat struct {
	world.NoStreams // members begin together, and logs are kept
	Core            replica.Core
	Drive           *world.Drive
	entries         replicatest.MemLog
	process         *Process
	waiting         map[replica.Call]func()
	last            replica.Call
}

// NewSeat returns the seat of a member at a process.
func NewSeat(p *Process) *Seat {
	s := &Seat{entries: replicatest.NewMemLog(), process: p, waiting: map[replica.Call]func(){}}
	s.Wanted = func(to uint64) { p.run.Fail("%s wants to send %d a snapshot", p.who, to) }
	return s
}

// Settings returns those that members of all simulations have.
func (s *Seat) Settings(seed, group, id uint64) replica.Settings {
	return replica.Settings{
		ID: id, Group: group, Log: s.entries, Boot: 1, HeartbeatTick: 1, MaxCalls: 1 << 20, RetainEntries: 1 << 40, RetainBytes: 1 << 50,
		Rand: world.NewDraws(seed, 100*group+id),
	}
}

// Begin begins the replica, in a group that begins with some voters and learners.
func (s *Seat) Begin(cfg replica.Config, core func(raft.Config) (replica.Core, error), on world.Surroundings, voters, learners []uint64) error {
	founder := cfg
	founder.ID, founder.Peers = voters[0], voters
	first, err := replica.PrepareLog(founder)
	if err != nil {
		return err
	}
	conf := first.Snapshot.GetMetadata().GetConfState()
	conf.Learners = append(conf.Learners, learners...)
	if err := s.entries.Append(*first, nil); err != nil {
		return err
	}
	cfg.Core = func(rc raft.Config) (_ replica.Core, err error) {
		s.Core, err = core(rc)
		return s.Core, err
	}
	r, err := replica.New(cfg)
	if err != nil {
		return err
	}
	s.Drive = world.NewDrive(r, on, world.DriveOptions{Group: cfg.Group, ID: cfg.ID, Life: 1, Patience: Longest})
	s.Drive.Kick()
	return nil
}

// Campaign has the member begin an election.
func (s *Seat) Campaign() {
	s.Drive.Post(0, func(r *replica.Replica) {
		if err := r.Campaign(); err != nil {
			s.process.run.Fail("%s does not campaign: %v", s.process.who, err)
		}
	})
}

// Tick is the member's clock.
func (s *Seat) Tick() { s.Drive.Post(0, func(r *replica.Replica) { r.Tick(s.process.run.Now()) }) }

// Receive takes a message.
func (s *Seat) Receive(m wire.Message) {
	s.Drive.Post(0, func(*replica.Replica) {
		if err := s.Drive.Deliver(m); err != nil {
			s.process.run.Fail("%s refuses a message of %d: %v", s.process.who, m.From, err)
		}
	})
}

// Call begins a call, and calls done at its end.
func (s *Seat) Call(cost time.Duration, done func(), begin func(*replica.Replica, replica.Call)) {
	s.last++
	call := s.last
	s.waiting[call] = done
	s.Drive.Post(cost, func(r *replica.Replica) { begin(r, call) })
}

// Propose has the group of a leader replicate a command, and calls done when the leader has applied it.
func (s *Seat) Propose(command []byte, done func()) {
	s.Call(s.process.costs.Propose, done, func(r *replica.Replica, call replica.Call) { r.Propose(call, command, s.Now()+Longest) })
}

// Append queues a write of the log.
func (s *Seat) Append(a *replica.Append) {
	c, cost := s.process.costs, time.Duration(0)
	for _, e := range a.Write.Entries {
		cost += c.Entry + costs.PerKiB(proto.Size(e), c.LogKiB)
	}
	s.process.Write(cost, func() { s.written(a) })
}

func (s *Seat) written(a *replica.Append) {
	if err := s.entries.Append(a.Write, nil); err != nil {
		s.process.run.Fail("%s writes its log: %v", s.process.who, err)
	}
	s.Drive.Post(0, func(r *replica.Replica) { r.AppendDone(*a) })
}

// Apply applies all that waits, given what a step takes.
func (s *Seat) Apply(cost func(world.Step) time.Duration, apply func(commands [][]byte)) {
	s.process.CPU.Add(func() (sum time.Duration, effect func()) {
		steps := s.Drive.TakeApplies()
		for _, x := range steps {
			sum += cost(x)
		}
		return sum, func() {
			for _, x := range steps {
				apply(x.Apply.Batch.Commands)
				s.Drive.Post(0, func(r *replica.Replica) { r.ApplyDone(*x.Apply, make([]any, len(x.Apply.Batch.Commands))) })
			}
			s.Drive.Stepped()
		}
	})
}

// Now implements world.Surroundings, as the methods below do.
func (s *Seat) Now() time.Duration { return s.process.run.Now() }

// Work gives the processor a task.
func (s *Seat) Work(t world.Task) { s.process.CPU.Add(t) }

// Later plans a call.
func (s *Seat) Later(d time.Duration, happen func()) { s.process.run.After(d, happen) }

// TurnBegins returns no cost: a turn costs what is in it.
func (s *Seat) TurnBegins() time.Duration { return 0 }

// Flushed ends the run if the replica is out of service.
func (s *Seat) Flushed(err error) bool {
	if err != nil {
		s.process.run.Fail("%s is out of service: %v", s.process.who, err)
	}
	return err == nil
}

// TurnEnds has nothing to do.
func (s *Seat) TurnEnds() {}

// Ended ends a call.
func (s *Seat) Ended(d replica.Done) {
	done := s.waiting[d.Call]
	delete(s.waiting, d.Call)
	if d.Err != nil {
		s.process.run.Fail("%s: a call ends with %v", s.process.who, d.Err)
		return
	}
	done()
}

// Compact does not happen: logs are kept.
func (s *Seat) Compact(*replica.Compact) {}
