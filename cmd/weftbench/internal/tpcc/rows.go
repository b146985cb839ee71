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
	intents // kept aside: the value is no row, but the writes of a batch
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

func decode(b []byte) (r row, err error) {
	if len(b) == 0 {
		return r, fmt.Errorf("%w: a row of no bytes", errCommand)
	}
	r.n, r.text = make([]int64, b[0]), b[1:]
	for i := range r.n {
		n, size := binary.Varint(r.text)
		if size <= 0 {
			return r, fmt.Errorf("%w: a row with %d numbers of %d", errCommand, i, len(r.n))
		}
		r.n[i], r.text = n, r.text[size:]
	}
	return r, nil
}

// The kinds of commands.
const (
	write  = 'w' // rows, at once
	intent = 'i' // rows, kept aside
	commit = 'c' // the transaction's intent becomes rows
	begin  = 'b' // the rows at the beginning
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

// Bug is a planted bug.
type Bug int

// The bugs, each of which some condition must find.
const (
	noBug       Bug = iota
	lostIntent      // a commit drops the intent
	doubleApply     // a command is applied once more behind the next
	skippedLock     // nobody locks districts
)

// store is where a replica has its rows. A row that is not there is nil.
type store interface {
	get(key string) []byte
	set(key string, value []byte)
}

// memory is rows in memory. All replicas begin with the same rows, which nobody changes.
type memory struct{ base, own map[string][]byte }

func (m *memory) get(key string) []byte {
	if v, ok := m.own[key]; ok {
		return v
	}
	return m.base[key]
}

func (m *memory) set(key string, value []byte) {
	if m.own[key] = value; value == nil && m.base[key] == nil {
		delete(m.own, key)
	}
}

// state applies commands to rows.
type state struct {
	commands int
	bug      Bug
	fill     func() map[string][]byte // returns the rows at the beginning
	last     []byte
}

var errCommand = errors.New("not a command of this state")

// apply applies a committed command.
func (s *state) apply(rows store, c []byte) error {
	if err := s.once(rows, c); err != nil {
		return err
	}
	s.commands++
	if s.bug == doubleApply && s.commands%8 == 0 {
		if err := s.once(rows, s.last); err != nil {
			return err
		}
	}
	s.last = c
	return nil
}

func (s *state) once(rows store, c []byte) error {
	if len(c) < commandHead {
		return fmt.Errorf("%w: %d bytes", errCommand, len(c))
	}
	puts, aside := c[commandHead:], string(append([]byte{intents}, append(c[1:commandHead:commandHead], 0)...))
	switch c[0] {
	case begin:
		for k, v := range s.fill() {
			rows.set(k, v)
		}
		return nil
	case write:
		return put(rows, puts)
	case intent:
		rows.set(aside, puts)
		return nil
	case commit:
		kept := rows.get(aside)
		rows.set(aside, nil)
		if s.bug == lostIntent {
			return nil
		}
		return put(rows, kept)
	}
	return fmt.Errorf("%w: kind %q", errCommand, c[0])
}

func put(rows store, puts []byte) error {
	return eachPut(puts, func(k string, v []byte) error {
		rows.set(k, v)
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
