// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Tables. The numbers are the order of locks.
const (
	warehouses byte = iota + 1
	districts
	customers
	stocks
	orders
	newOrders
	orderLines
	lastOrders // the last order of a customer: an index
	histories
	records // of transactions over several ranges
)

// The numbers of rows, by table.
const (
	wYTD, wTax                                                = 0, 1
	dYTD, dTax, dNext                                         = 0, 1, 2
	cBalance, cPaid, cPayments, cDeliveries, cBadCredit       = 0, 1, 2, 3, 4
	sQuantity, sYTD, sOrders, sRemote                         = 0, 1, 2, 3
	oCustomer, oEntered, oCarrier, oLines                     = 0, 1, 2, 3
	olItem, olSupply, olQuantity, olAmount, olDelivered       = 0, 1, 2, 3, 4
	hAmount, hCustomerWarehouse, hCustomerDistrict, hCustomer = 0, 1, 2, 3
)

const keyLen = 10

// key is the key of a row: the table, warehouse, district, number, and the line of an order.
func key(table byte, w, d, id, line int) string {
	var k [keyLen]byte
	k[0] = table
	binary.BigEndian.PutUint16(k[1:], uint16(w))
	k[3] = byte(d)
	binary.BigEndian.PutUint32(k[4:], uint32(id))
	k[8] = byte(line)
	return string(k[:])
}

// parts takes a key apart.
func parts(k string) (table byte, w, d, id int) {
	b := []byte(k)
	return b[0], int(binary.BigEndian.Uint16(b[1:])), int(b[3]), int(binary.BigEndian.Uint32(b[4:]))
}

// row is numbers, and text of a specified length.
type row struct {
	n    []int64
	text []byte
}

func (r row) encode() []byte {
	b := make([]byte, 0, 1+4*len(r.n)+len(r.text))
	b = append(b, byte(len(r.n)))
	for _, n := range r.n {
		b = binary.AppendVarint(b, n)
	}
	return append(b, r.text...)
}

func decode(b []byte) row {
	r := row{n: make([]int64, b[0])}
	b = b[1:]
	for i := range r.n {
		n, size := binary.Varint(b)
		r.n[i], b = n, b[size:]
	}
	r.text = b
	return r
}

// The kinds of commands.
const (
	write  = 'w' // rows, at once
	intent = 'i' // rows, kept aside
	commit = 'c' // the transaction's intent becomes rows
)

// batch is the writes of a transaction in a range.
type batch struct {
	r    *ranged
	puts []byte
}

// put adds a row; no value deletes the row.
func (b *batch) put(key string, value []byte) {
	b.puts = append(b.puts, key...)
	b.puts = binary.AppendUvarint(b.puts, uint64(len(value)))
	b.puts = append(b.puts, value...)
}

// commandHead is the bytes of a command before its rows.
const commandHead = 9

func command(kind byte, txn uint64, puts []byte) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{kind}, txn), puts...)
}

// bugKind is a planted bug.
type bugKind int

// The bugs, each of which some condition must find.
const (
	noBug       bugKind = iota
	lostIntent          // a commit drops the intent
	doubleApply         // a command is applied once more behind the next
	skippedLock         // nobody locks districts
)

// state is what a replica has applied. All replicas begin with the same rows, which nobody changes.
type state struct {
	base, own map[string][]byte
	intents   map[uint64][]byte
	commands  int
	bug       bugKind
	last      []byte
}

func newState(base map[string][]byte, bug bugKind) *state {
	return &state{base: base, own: map[string][]byte{}, intents: map[uint64][]byte{}, bug: bug}
}

// get returns a row, or nil.
func (s *state) get(key string) []byte {
	if v, ok := s.own[key]; ok {
		return v
	}
	return s.base[key]
}

var errCommand = errors.New("not a command of this state")

// apply applies a committed command.
func (s *state) apply(c []byte) error {
	if err := s.once(c); err != nil {
		return err
	}
	s.commands++
	if s.bug == doubleApply && s.commands%8 == 0 {
		if err := s.once(s.last); err != nil {
			return err
		}
	}
	s.last = c
	return nil
}

func (s *state) once(c []byte) error {
	if len(c) < commandHead {
		return fmt.Errorf("%w: %d bytes", errCommand, len(c))
	}
	txn, puts := binary.BigEndian.Uint64(c[1:]), c[commandHead:]
	switch c[0] {
	case write:
		return s.put(puts)
	case intent:
		s.intents[txn] = puts
		return nil
	case commit:
		kept := s.intents[txn]
		delete(s.intents, txn)
		if s.bug == lostIntent {
			return nil
		}
		return s.put(kept)
	}
	return fmt.Errorf("%w: kind %q", errCommand, c[0])
}

func (s *state) put(puts []byte) error {
	return eachPut(puts, func(k string, v []byte) error {
		s.own[k] = v
		return nil
	})
}

// eachPut takes the writes of a batch apart; a value of no bytes is nil.
func eachPut(puts []byte, do func(key string, value []byte) error) error {
	for len(puts) > 0 {
		if len(puts) <= keyLen {
			return fmt.Errorf("%w: a key of %d bytes", errCommand, len(puts))
		}
		v, rest, ok := cut(puts[keyLen:])
		if !ok {
			return fmt.Errorf("%w: %d bytes for a row", errCommand, len(puts)-keyLen)
		}
		if err := do(string(puts[:keyLen]), v); err != nil {
			return err
		}
		puts = rest
	}
	return nil
}

// cut takes bytes behind their length; none are nil.
func cut(b []byte) (v, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || uint64(len(b)-size) < n {
		return nil, nil, false
	}
	if rest = b[size+int(n):]; n > 0 {
		v = b[size : size+int(n)]
	}
	return v, rest, true
}
