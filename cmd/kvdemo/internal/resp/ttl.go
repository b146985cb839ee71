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

var errExpireTime = errors.New("ERR invalid expire time")

// instant reads a time: from now, or since 1970 if it is absolute, in a unit. It
// returns milliseconds since 1970.
func instant(b []byte, unit time.Duration, absolute bool, now time.Time) (int64, error) {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return 0, errNoInteger
	}
	factor := unit.Milliseconds()
	if n > kv.MaxDeadline/factor || n < math.MinInt64/2/factor {
		return 0, errExpireTime
	}
	n *= factor
	if !absolute {
		n += now.UnixMilli()
	}
	if n > kv.MaxDeadline {
		return 0, errExpireTime
	}
	return n, nil
}

// deadlineOf is instant for a SET, which wants a time of more than 0.
func deadlineOf(b []byte, unit time.Duration, absolute bool, now time.Time) (int64, error) {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err == nil && n <= 0 {
		return 0, errExpireTime
	}
	return instant(b, unit, absolute, now)
}

// expireFlags reads the conditions of EXPIRE.
func expireFlags(options [][]byte) (f kv.ActionFlags, err error) {
	flags := map[string]kv.ActionFlags{"NX": kv.IfAbsent, "XX": kv.IfPresent, "GT": kv.IfGreater, "LT": kv.IfLess}
	for _, option := range options {
		flag, ok := flags[upper(option)]
		if !ok {
			return 0, fmt.Errorf("ERR Unsupported option %s", printable(option))
		}
		f |= flag
	}
	switch {
	case f&kv.IfAbsent != 0 && f != kv.IfAbsent:
		return 0, errors.New("ERR NX and XX, GT or LT options at the same time are not compatible")
	case f&kv.IfGreater != 0 && f&kv.IfLess != 0:
		return 0, errors.New("ERR GT and LT options at the same time are not compatible")
	}
	return f, nil
}

// planExpire is EXPIRE and the like: key time [NX | XX | GT | LT].
func planExpire(unit time.Duration, absolute bool) func([][]byte, time.Time) (*plan, error) {
	return func(args [][]byte, now time.Time) (*plan, error) {
		flags, err := expireFlags(args[2:])
		if err != nil {
			return nil, err
		}
		deadline, err := instant(args[1], unit, absolute, now)
		if err != nil {
			return nil, err
		}
		a := kv.Action{Kind: kv.ActDeadline, Key: string(args[0]), Deadline: deadline, Flags: flags}
		switch passed := deadline <= now.UnixMilli(); {
		case passed && flags == 0:
			a = kv.Action{Kind: kv.ActDelete, Key: a.Key}
		case passed: // a time before 1970 is compared as its first millisecond
			a.Deadline, a.Flags = max(deadline, 1), flags|kv.RemoveNow
		}
		return one(a, func(w redcon.Conn, r kv.ActionResult) { writeBool(w, r.Existed && r.Code == kv.TxnDone) })
	}
}

func planPersist(args [][]byte, _ time.Time) (*plan, error) {
	key := string(args[0])
	return checkKeys(&plan{
		actions: []kv.Action{{Kind: kv.ActTTL, Key: key}, {Kind: kv.ActDeadline, Key: key}}, writes: true,
		reply: func(w redcon.Conn, r []kv.ActionResult) { writeBool(w, r[0].Number != 0) },
	})
}

// nowAt is the time by the clock of the server that a connection is of.
func nowAt(w redcon.Conn) time.Time {
	if c, ok := w.Context().(*client); ok {
		return c.server.now()
	}
	return time.Now()
}

func planTTL(unit time.Duration) func([][]byte, time.Time) (*plan, error) {
	return func(args [][]byte, _ time.Time) (*plan, error) {
		return one(kv.Action{Kind: kv.ActTTL, Key: string(args[0])}, func(w redcon.Conn, r kv.ActionResult) {
			switch {
			case !r.Existed:
				w.WriteInt(-2)
			case r.Number == 0:
				w.WriteInt(-1)
			default:
				left := max(0, time.Duration(r.Number-nowAt(w).UnixMilli())*time.Millisecond)
				w.WriteInt64(int64((left + unit/2) / unit))
			}
		})
	}
}
