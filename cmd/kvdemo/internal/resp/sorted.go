// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/redcon"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
)

var (
	errNoFloat = errors.New("ERR value is not a valid float")
	errNoRange = errors.New("ERR min or max is not a float")
)

// score reads a score, which infinity can be.
func score(b []byte) (float64, bool) {
	text := string(b)
	if len(text) == 0 || strings.ContainsAny(text, "_ ") {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	if errors.Is(err, strconv.ErrRange) && math.IsInf(f, 0) {
		return 0, false
	}
	return f, (err == nil || errors.Is(err, strconv.ErrRange)) && !math.IsNaN(f)
}

// formatScore returns a score as Redis writes it: whole numbers as such, and of others 17
// digits, which bring the same number back.
func formatScore(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case f == math.Trunc(f) && math.Abs(f) < 1<<52:
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', 17, 64)
}

// zaddFlags reads the options in front of the scores, and returns what is behind.
func zaddFlags(args [][]byte) (f kv.ActionFlags, rest [][]byte, err error) {
	flags := map[string]kv.ActionFlags{"NX": kv.IfAbsent, "XX": kv.IfPresent, "GT": kv.IfGreater, "LT": kv.IfLess, "CH": kv.CountChanged}
	for rest = args; len(rest) > 0; rest = rest[1:] {
		option := upper(rest[0])
		if option == "INCR" {
			return 0, nil, errors.New("ERR not supported: ZADD with INCR; read the score with ZSCORE between WATCH and EXEC")
		}
		flag, ok := flags[option]
		if !ok {
			break
		}
		f |= flag
	}
	switch {
	case f&kv.IfAbsent != 0 && f&kv.IfPresent != 0:
		err = errors.New("ERR XX and NX options at the same time are not compatible")
	case f&kv.IfGreater != 0 && f&(kv.IfAbsent|kv.IfLess) != 0, f&kv.IfLess != 0 && f&kv.IfAbsent != 0:
		err = errors.New("ERR GT, LT, and/or NX options at the same time are not compatible")
	}
	return f, rest, err
}

// planZAdd is ZADD key [NX | XX] [GT | LT] [CH] score member [score member ...].
func planZAdd(args [][]byte, _ time.Time) (*plan, error) {
	flags, pairs, err := zaddFlags(args[1:])
	if len(pairs)%2 != 0 || len(pairs) == 0 && err == nil {
		return nil, errSyntax
	}
	if err != nil {
		return nil, err
	}
	a := kv.Action{Kind: kv.ActSortedAdd, Key: string(args[0]), Flags: flags}
	for i := 0; i < len(pairs); i += 2 {
		number, ok := score(pairs[i])
		if !ok {
			return nil, errNoFloat
		}
		a.Value = kv.AppendScored(a.Value, number, pairs[i+1])
	}
	return alone(a, writeNumber)
}

func planZRem(args [][]byte, _ time.Time) (*plan, error) {
	return alone(kv.Action{Kind: kv.ActSortedRemove, Key: string(args[0]), Value: items(args[1:])}, writeNumber)
}

func planZCard(args [][]byte, _ time.Time) (*plan, error) {
	return alone(kv.Action{Kind: kv.ActSortedCount, Key: string(args[0])}, writeNumber)
}

func planZScore(args [][]byte, _ time.Time) (*plan, error) {
	return alone(kv.Action{Kind: kv.ActSortedScore, Key: string(args[0]), Value: args[1]}, func(w redcon.Conn, r kv.ActionResult) {
		list := kv.ScoredOf(r.Value)
		if !list.Next() {
			writeNull(w)
			return
		}
		writeScore(w, list.Score())
	})
}

// bound reads an end of a range: a score, behind a ( if it is left out itself.
func bound(b []byte) (number float64, open, ok bool) {
	if len(b) > 0 && b[0] == '(' {
		number, ok = score(b[1:])
		return number, true, ok
	}
	number, ok = score(b)
	return number, false, ok
}

// planZRangeByScore is ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count].
func planZRangeByScore(args [][]byte, _ time.Time) (*plan, error) {
	q := kv.Range{Count: -1}
	scores := false
	for rest := args[3:]; len(rest) > 0; {
		switch option := upper(rest[0]); {
		case option == "WITHSCORES":
			scores, rest = true, rest[1:]
		case option == "LIMIT" && len(rest) >= 3:
			var errs [2]error
			q.Offset, errs[0] = strconv.ParseInt(string(rest[1]), 10, 64)
			q.Count, errs[1] = strconv.ParseInt(string(rest[2]), 10, 64)
			if errors.Join(errs[:]...) != nil {
				return nil, errNoInteger
			}
			rest = rest[3:]
		default:
			return nil, errSyntax
		}
	}
	var ok [2]bool
	q.Min, q.MinOpen, ok[0] = bound(args[1])
	q.Max, q.MaxOpen, ok[1] = bound(args[2])
	if !ok[0] || !ok[1] {
		return nil, errNoRange
	}
	if q.Offset < 0 { // Redis finds nothing there
		q.Offset, q.Count = 0, 0
	}
	p, err := alone(kv.Action{Kind: kv.ActSortedRange, Key: string(args[0]), Value: q.Encode()}, func(w redcon.Conn, r kv.ActionResult) {
		writeMembers(w, r.Value, scores)
	})
	if err == nil {
		p.skips = q.Offset
	}
	return p, err
}

func writeMembers(w redcon.Conn, b []byte, scores bool) {
	n := 0
	for list := kv.ScoredOf(b); list.Next(); {
		n++
	}
	pairs := scores && three(w) // each member and its score are an array of their own
	if scores && !pairs {
		n *= 2
	}
	w.WriteArray(n)
	for list := kv.ScoredOf(b); list.Next(); {
		if pairs {
			w.WriteArray(2)
		}
		w.WriteBulk(list.Member())
		if scores {
			writeScore(w, list.Score())
		}
	}
}
