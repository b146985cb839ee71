// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"fmt"
	"time"

	"github.com/tidwall/redcon"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
)

// alone is a plan of one action, with a reply for the case that the action was done.
func alone(a kv.Action, reply func(w redcon.Conn, r kv.ActionResult)) (*plan, error) {
	if len(a.Value) > kv.MaxInlineBytes {
		return nil, fmt.Errorf("ERR fields, members and values of %d bytes with their lengths in one command, want at most %d: send several", len(a.Value), kv.MaxInlineBytes)
	}
	if err := (&kv.Txn{Then: []kv.Action{a}}).CheckActions(); err != nil {
		return nil, fmt.Errorf("ERR %w", err)
	}
	return one(a, reply)
}

// items returns arguments as one list.
func items(args [][]byte) []byte {
	size := 0
	for _, a := range args {
		size += len(a) + 4
	}
	b := make([]byte, 0, size)
	for _, a := range args {
		b = kv.AppendItem(b, a)
	}
	return b
}

func writeNumber(w redcon.Conn, r kv.ActionResult) { w.WriteInt64(r.Number) }

// planHSet is HSET and HMSET: key field value [field value ...].
func planHSet(name string, reply func(redcon.Conn, kv.ActionResult)) func([][]byte, time.Time) (*plan, error) {
	return func(args [][]byte, _ time.Time) (*plan, error) {
		if len(args)%2 != 1 {
			return nil, fmt.Errorf("ERR wrong number of arguments for '%s' command", name)
		}
		return alone(kv.Action{Kind: kv.ActHashSet, Key: string(args[0]), Value: items(args[1:])}, reply)
	}
}

func planHSetNX(args [][]byte, _ time.Time) (*plan, error) {
	return alone(kv.Action{Kind: kv.ActHashSet, Key: string(args[0]), Value: items(args[1:]), Flags: kv.IfAbsent}, writeNumber)
}

func planHDel(args [][]byte, _ time.Time) (*plan, error) {
	return alone(kv.Action{Kind: kv.ActHashRemove, Key: string(args[0]), Value: items(args[1:])}, writeNumber)
}

// planHash is a command that reads a hash and has no argument but the key.
func planHash(reply func(redcon.Conn, kv.ActionResult)) func([][]byte, time.Time) (*plan, error) {
	return func(args [][]byte, _ time.Time) (*plan, error) {
		return alone(kv.Action{Kind: kv.ActHash, Key: string(args[0])}, reply)
	}
}

// fieldsOf calls f with each field and value of a hash.
func fieldsOf(r kv.ActionResult, f func(field, value []byte)) {
	for list := kv.ItemsOf(r.Value); list.Next(); {
		field := list.Item()
		if list.Next() {
			f(field, list.Item())
		}
	}
}

func count(r kv.ActionResult) (n int) {
	fieldsOf(r, func([]byte, []byte) { n++ })
	return n
}

func writeFieldCount(w redcon.Conn, r kv.ActionResult) { w.WriteInt(count(r)) }

func writeFields(w redcon.Conn, r kv.ActionResult) {
	writeMap(w, count(r))
	fieldsOf(r, func(field, value []byte) {
		w.WriteBulk(field)
		w.WriteBulk(value)
	})
}

// writeEvery replies with the fields, 0, or the values, 1.
func writeEvery(which int) func(redcon.Conn, kv.ActionResult) {
	return func(w redcon.Conn, r kv.ActionResult) {
		w.WriteArray(count(r))
		fieldsOf(r, func(field, value []byte) { w.WriteBulk([2][]byte{field, value}[which]) })
	}
}

// planField is a command that reads one field. The value of a missing field is nil.
func planField(args [][]byte, reply func(w redcon.Conn, value []byte)) (*plan, error) {
	return alone(kv.Action{Kind: kv.ActHash, Key: string(args[0])}, func(w redcon.Conn, r kv.ActionResult) {
		reply(w, pick(r, args[1:])[0])
	})
}

// pick returns the values of fields, nil where there is none.
func pick(r kv.ActionResult, fields [][]byte) [][]byte {
	values := make([][]byte, len(fields))
	var at map[string][]byte
	if len(fields) > 8 {
		at = map[string][]byte{}
	}
	fieldsOf(r, func(field, value []byte) {
		if at != nil {
			at[string(field)] = value
			return
		}
		for i := range fields {
			if string(fields[i]) == string(field) {
				values[i] = value
			}
		}
	})
	for i := range fields {
		if at != nil {
			values[i] = at[string(fields[i])]
		}
	}
	return values
}

func writeOrNull(w redcon.Conn, value []byte) {
	if value == nil {
		writeNull(w)
		return
	}
	w.WriteBulk(value)
}

func planHGet(args [][]byte, _ time.Time) (*plan, error) { return planField(args, writeOrNull) }

func planHExists(args [][]byte, _ time.Time) (*plan, error) {
	return planField(args, func(w redcon.Conn, value []byte) { writeBool(w, value != nil) })
}

func planHStrlen(args [][]byte, _ time.Time) (*plan, error) {
	return planField(args, func(w redcon.Conn, value []byte) { w.WriteInt(len(value)) })
}

func planHMGet(args [][]byte, _ time.Time) (*plan, error) {
	return alone(kv.Action{Kind: kv.ActHash, Key: string(args[0])}, func(w redcon.Conn, r kv.ActionResult) {
		values := pick(r, args[1:])
		w.WriteArray(len(values))
		for _, value := range values {
			writeOrNull(w, value)
		}
	})
}
