// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"errors"
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

func planExpire(unit time.Duration, absolute bool) func([][]byte, time.Time) (*plan, error) {
	return func(args [][]byte, now time.Time) (*plan, error) {
		if len(args) > 2 {
			return nil, errors.New("ERR not supported: EXPIRE with NX, XX, GT or LT; compare with TTL between WATCH and EXEC")
		}
		deadline, err := instant(args[1], unit, absolute, now)
		if err != nil {
			return nil, err
		}
		a := kv.Action{Kind: kv.ActDeadline, Key: string(args[0]), Deadline: deadline}
		if deadline <= now.UnixMilli() { // the time has passed
			a = kv.Action{Kind: kv.ActDelete, Key: a.Key}
		}
		return checkKeys(&plan{actions: []kv.Action{a}, writes: true, reply: writeCount})
	}
}

func planPersist(args [][]byte, _ time.Time) (*plan, error) {
	key := string(args[0])
	return checkKeys(&plan{
		actions: []kv.Action{{Kind: kv.ActTTL, Key: key}, {Kind: kv.ActDeadline, Key: key}}, writes: true,
		reply: func(w redcon.Conn, r []kv.ActionResult) { writeBool(w, r[0].Number != 0) },
	})
}

func planTTL(unit time.Duration) func([][]byte, time.Time) (*plan, error) {
	return func(args [][]byte, _ time.Time) (*plan, error) {
		return checkKeys(&plan{actions: each(kv.ActTTL, args), reply: func(w redcon.Conn, r []kv.ActionResult) {
			switch {
			case !r[0].Existed:
				w.WriteInt(-2)
			case r[0].Number == 0:
				w.WriteInt(-1)
			default:
				left := max(0, time.Duration(r[0].Number-time.Now().UnixMilli())*time.Millisecond)
				w.WriteInt64(int64((left + unit/2) / unit))
			}
		}})
	}
}
