// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/tidwall/redcon"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
)

// Errors that clients of Redis know by these words.
var (
	errSyntax    = errors.New("ERR syntax error")
	errNoInteger = errors.New("ERR value is not an integer or out of range")
)

// bad replies to an action that was not done, and reports whether it was such.
func bad(w redcon.Conn, r kv.ActionResult) bool {
	switch r.Code {
	case kv.TxnDone, kv.TxnSkipped:
		return false
	case kv.TxnWrongType:
		w.WriteError("WRONGTYPE Operation against a key holding the wrong kind of value")
	case kv.TxnFull:
		w.WriteError(fmt.Sprintf("ERR a hash has at most %d bytes with its lengths, and a sorted set %d: spread it over several keys", kv.MaxInlineBytes, int64(kv.MaxSortedBytes)))
	case kv.TxnNoNumber:
		w.WriteError(errNoInteger.Error())
	case kv.TxnOverflow:
		w.WriteError("ERR increment or decrement would overflow")
	case kv.TxnLarge:
		w.WriteError(fmt.Sprintf("ERR the value has more than %d bytes: read it with kvdemo get", kv.MaxInlineBytes))
	case kv.TxnReplyFull:
		w.WriteError(fmt.Sprintf("ERR the values of one command or transaction have more than %d bytes: ask for fewer at a time", kv.MaxTxnReplyBytes))
	}
	return true
}

// writeValue replies with the value of a get, or nil.
func writeValue(w redcon.Conn, r kv.ActionResult) {
	switch {
	case bad(w, r):
	case !r.Existed:
		writeNull(w)
	default:
		w.WriteBulk(r.Value)
	}
}

func writeBool(w redcon.Conn, yes bool) {
	if yes {
		w.WriteInt(1)
	} else {
		w.WriteInt(0)
	}
}

// checkKeys returns the error of the first key that cannot be one.
func checkKeys(p *plan) (*plan, error) {
	for i := range p.actions {
		if err := kv.CheckKey(p.actions[i].Key); err != nil {
			return nil, fmt.Errorf("ERR %w", err)
		}
		if n := len(p.actions[i].Value); n > kv.MaxInlineBytes {
			return nil, fmt.Errorf("ERR a value of %d bytes, want at most %d here; store a larger one with kvdemo put", n, kv.MaxInlineBytes)
		}
	}
	if n := p.size(); n > kv.MaxCommandBytes && p.writes && !p.splits {
		return nil, fmt.Errorf("ERR keys and values of %d bytes in one command, want at most %d", n, kv.MaxCommandBytes)
	}
	return p, nil
}

// each returns an action of a kind on each key.
func each(kind kv.ActionKind, keys [][]byte) (actions []kv.Action) {
	for _, key := range keys {
		actions = append(actions, kv.Action{Kind: kind, Key: string(key)})
	}
	return actions
}

// one is a plan of one action, with a reply unless the result is an error.
func one(a kv.Action, reply func(w redcon.Conn, r kv.ActionResult)) (*plan, error) {
	return checkKeys(&plan{actions: []kv.Action{a}, writes: a.Kind.Writes(), reply: func(w redcon.Conn, r []kv.ActionResult) {
		if !bad(w, r[0]) {
			reply(w, r[0])
		}
	}})
}

func planGet(args [][]byte, _ time.Time) (*plan, error) {
	return one(kv.Action{Kind: kv.ActGet, Key: string(args[0])}, writeValue)
}

func planMGet(args [][]byte, _ time.Time) (*plan, error) {
	return checkKeys(&plan{actions: each(kv.ActGet, args), reply: func(w redcon.Conn, r []kv.ActionResult) {
		for i := range r {
			if r[i].Code == kv.TxnWrongType { // as Redis answers
				r[i] = kv.ActionResult{}
			}
			if bad(w, r[i]) { // one error for all
				return
			}
		}
		w.WriteArray(len(r))
		for i := range r {
			writeValue(w, r[i])
		}
	}})
}

func planStrlen(args [][]byte, _ time.Time) (*plan, error) {
	return one(kv.Action{Kind: kv.ActGet, Key: string(args[0])}, func(w redcon.Conn, r kv.ActionResult) { w.WriteInt(len(r.Value)) })
}

func planType(args [][]byte, _ time.Time) (*plan, error) {
	return one(kv.Action{Kind: kv.ActType, Key: string(args[0])}, func(w redcon.Conn, r kv.ActionResult) {
		w.WriteString(kv.Type(r.Number).String())
	})
}

// writeCount replies how many keys existed.
func writeCount(w redcon.Conn, r []kv.ActionResult) {
	n := 0
	for i := range r {
		if r[i].Existed {
			n++
		}
	}
	w.WriteInt(n)
}

func planExists(args [][]byte, _ time.Time) (*plan, error) {
	return checkKeys(&plan{actions: each(kv.ActHas, args), reply: writeCount})
}

func planDel(args [][]byte, _ time.Time) (*plan, error) {
	if len(args) > kv.MaxTxnItems {
		return nil, fmt.Errorf("ERR %d keys, want at most %d", len(args), kv.MaxTxnItems)
	}
	return checkKeys(&plan{actions: each(kv.ActDelete, args), writes: true, splits: true, reply: writeCount})
}

func planGetDel(args [][]byte, _ time.Time) (*plan, error) {
	return one(kv.Action{Kind: kv.ActDelete, Key: string(args[0]), Flags: kv.ReturnOld}, writeValue)
}

func planGetSet(args [][]byte, _ time.Time) (*plan, error) {
	return one(kv.Action{Kind: kv.ActPut, Key: string(args[0]), Value: args[1], Flags: kv.ReturnOld}, writeValue)
}

func planSetNX(args [][]byte, _ time.Time) (*plan, error) {
	return one(kv.Action{Kind: kv.ActPut, Key: string(args[0]), Value: args[1], Flags: kv.IfAbsent}, func(w redcon.Conn, r kv.ActionResult) {
		writeBool(w, r.Code == kv.TxnDone)
	})
}

func planSetEX(unit time.Duration) func([][]byte, time.Time) (*plan, error) {
	return func(args [][]byte, now time.Time) (*plan, error) {
		deadline, err := deadlineOf(args[1], unit, false, now)
		if err != nil {
			return nil, err
		}
		return one(kv.Action{Kind: kv.ActPut, Key: string(args[0]), Value: args[2], Deadline: deadline}, writeOK)
	}
}

func writeOK(w redcon.Conn, _ kv.ActionResult) { w.WriteString("OK") }

// planSet is SET key value [NX | XX] [GET] [EX | PX | EXAT | PXAT number | KEEPTTL].
func planSet(args [][]byte, now time.Time) (*plan, error) {
	a := kv.Action{Kind: kv.ActPut, Key: string(args[0]), Value: args[1]}
	timed := false
	for rest := args[2:]; len(rest) > 0; rest = rest[1:] {
		option := upper(rest[0])
		switch option {
		case "NX":
			a.Flags |= kv.IfAbsent
		case "XX":
			a.Flags |= kv.IfPresent
		case "GET":
			a.Flags |= kv.ReturnOld
		case "KEEPTTL", "EX", "PX", "EXAT", "PXAT":
			if timed {
				return nil, errSyntax
			}
			timed = true
			if option == "KEEPTTL" {
				a.Flags |= kv.KeepDeadline
				break
			}
			if rest = rest[1:]; len(rest) == 0 {
				return nil, errSyntax
			}
			var err error
			unit := map[byte]time.Duration{'E': time.Second, 'P': time.Millisecond}[option[0]]
			if a.Deadline, err = deadlineOf(rest[0], unit, len(option) == 4, now); err != nil {
				return nil, err
			}
		default:
			return nil, errSyntax
		}
	}
	if a.Flags&(kv.IfAbsent|kv.IfPresent) == kv.IfAbsent|kv.IfPresent {
		return nil, errSyntax
	}
	if a.Flags&kv.ReturnOld != 0 {
		return one(a, writeValue)
	}
	return one(a, func(w redcon.Conn, r kv.ActionResult) {
		if r.Code == kv.TxnSkipped {
			writeNull(w)
		} else {
			w.WriteString("OK")
		}
	})
}

func planMSet(args [][]byte, _ time.Time) (*plan, error) {
	if len(args)%2 != 0 {
		return nil, errors.New("ERR wrong number of arguments for 'mset' command")
	}
	if len(args)/2 > kv.MaxTxnItems {
		return nil, fmt.Errorf("ERR %d keys, want at most %d", len(args)/2, kv.MaxTxnItems)
	}
	p := &plan{writes: true, reply: func(w redcon.Conn, _ []kv.ActionResult) { w.WriteString("OK") }}
	for i := 0; i < len(args); i += 2 {
		p.actions = append(p.actions, kv.Action{Kind: kv.ActPut, Key: string(args[i]), Value: args[i+1]})
	}
	return checkKeys(p)
}

func planIncr(delta int64) func([][]byte, time.Time) (*plan, error) {
	return func(args [][]byte, _ time.Time) (*plan, error) { return add(args[0], delta) }
}

func planIncrBy(sign int64) func([][]byte, time.Time) (*plan, error) {
	return func(args [][]byte, _ time.Time) (*plan, error) {
		n, err := strconv.ParseInt(string(args[1]), 10, 64)
		if err != nil || sign < 0 && n == math.MinInt64 {
			return nil, errNoInteger
		}
		return add(args[0], sign*n)
	}
}

func add(key []byte, delta int64) (*plan, error) {
	return one(kv.Action{Kind: kv.ActAdd, Key: string(key), Delta: delta}, writeNumber)
}
