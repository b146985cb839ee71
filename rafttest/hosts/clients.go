// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"time"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/rafttest/internal/register"
)

// breakEvery is how often clients rest for a while, all at once.
const breakEvery = 1500 * time.Millisecond

// beginClients lets clients put and get until the calm.
func (w *sim) beginClients() {
	for c := range clients {
		var next func()
		next = func() {
			if w.calm || w.err != nil {
				return
			}
			if since := w.Now() % breakEvery; since < w.plan.idle {
				w.After(w.plan.idle-since, next)
				return
			}
			m := world.Pick(w.clients, w.live()...)
			if m.proc == nil {
				w.After(5*time.Millisecond, next)
				return
			}
			kind := register.Write
			if w.clients.Chance(0.3) {
				kind = register.Read
			}
			answered := false
			goOn := func() {
				if !answered {
					answered = true
					w.After(w.clients.Wait(w.plan.think), next)
				}
			}
			w.call(c, m, kind, goOn)
			w.After(callTime, goOn)
		}
		w.After(w.clients.Wait(w.plan.think), next)
	}
}

// size draws the length of a payload.
func (w *sim) size() int {
	if w.clients.Chance(w.plan.big) {
		return int(w.clients.Scale(4<<10, largePayload))
	}
	return w.clients.IntN(smallPayload)
}

// call asks a member for one operation. done is called with the answer, if any.
func (w *sim) call(client int, m *machine, kind register.Kind, done func()) {
	at := len(w.history)
	seq := uint32(at + 1)
	key := byte(w.clients.IntN(keys))
	w.history = append(w.history, access{key: key, Access: register.Access{
		Client: client, Kind: kind, Call: int64(w.Now()), Return: never, Value: seq}})
	c := command{head: head{id: newCommandID(client, seq)}, key: key, value: seq}
	answer := func(value uint32) {
		a := &w.history[at]
		if a.Known {
			return
		}
		a.Known, a.Return = true, int64(w.Now())
		if kind == register.Read {
			a.Value = value
		}
		done()
	}
	if kind == register.Read {
		c.op = opGet
		m.run(func() { m.proc.get(c, answer); m.proc.work() })
		return
	}
	c.size = w.size()
	switch {
	case c.size > 32<<10:
		c.encoding = sideloaded
	case w.clients.Chance(0.7):
		c.encoding, c.priority = admitted, byte(1+w.clients.IntN(8))
	}
	m.run(func() { m.proc.put(c, func() { answer(0) }); m.proc.work() })
}
