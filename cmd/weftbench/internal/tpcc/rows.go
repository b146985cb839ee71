// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// Sizes of tables. The specification has 100,000 items, 3,000 customers and orders a district.
const (
	districts    = 10
	customers    = 30 // of a district
	items        = 1000
	firstOrders  = 30 // of a district, at the beginning
	firstPending = 9  // of these, not delivered
)

// Bytes of text in a row, as specified; means, where the length varies.
const (
	customerText = 550 // names, address, phone, and 300 to 500 of data
	historyText  = 18
	stockText    = 278 // ten times 24 of district information, and 26 to 50 of data
	lineText     = 24
)

// key joins the name of a table and the columns of its primary key.
func key(table string, columns ...int64) string {
	var b strings.Builder
	b.WriteString(table)
	for _, c := range columns {
		b.WriteByte('/')
		b.WriteString(strconv.FormatInt(c, 10))
	}
	return b.String()
}

// columns returns the columns of a key.
func columns(k string) (table string, of []int64) {
	parts := strings.Split(k, "/")
	for _, p := range parts[1:] {
		n, _ := strconv.ParseInt(p, 10, 64) // key wrote it
		of = append(of, n)
	}
	return parts[0], of
}

// row is numbers, and so many bytes of text, whose content does not matter.
func row(text int, numbers ...int64) []byte {
	b := make([]byte, 0, 1+4*len(numbers)+text)
	b = append(b, byte(len(numbers)))
	for _, n := range numbers {
		b = binary.AppendVarint(b, n)
	}
	return append(b, make([]byte, text)...)
}

// numbers returns the numbers of a row; nil, if there is no row.
func numbers(b []byte) []int64 {
	if len(b) == 0 {
		return nil
	}
	of := make([]int64, b[0])
	b = b[1:]
	for i := range of {
		n, size := binary.Varint(b)
		of[i], b = n, b[size:]
	}
	return of
}

// Tables, and the numbers of their rows.
//
//	wy/w          ytd                                                  warehouse
//	dy/w/d        ytd                                                  district
//	dn/w/d        next order                                           district
//	dd/w/d        first order that is not delivered                    district
//	c/w/d/c       balance, ytd payment, payments, deliveries           customer
//	cl/w/d/c      last order                                           an index
//	h/w/d/txn     amount, customer's w, d, c                           history
//	o/w/d/o       customer, carrier (0: none), lines, remote lines     order
//	no/w/d/o                                                           new order
//	ol/w/d/o/n    item, supplier, quantity, amount, delivered          order line
//	s/w/i         quantity, ytd, orders, remote orders                 stock

// write is a row to put, or to delete if value is nil.
type write struct {
	key   string
	value []byte
}

// Kinds of entries.
const (
	direct  = byte('d') // rows of a transaction in one range
	intents = byte('i') // rows of a transaction that are not there yet
	resolve = byte('r') // now they are
)

// entry is the bytes that a group replicates.
func entry(id, txn uint64, kind byte, writes []write) []byte {
	b := binary.LittleEndian.AppendUint64(nil, id)
	b = binary.LittleEndian.AppendUint64(b, txn)
	b = append(b, kind)
	for _, w := range writes {
		b = binary.AppendUvarint(b, uint64(len(w.key)))
		b = append(b, w.key...)
		b = binary.AppendUvarint(b, uint64(len(w.value)))
		b = append(b, w.value...)
	}
	return b
}

// parse takes an entry apart. The values are parts of it.
func parse(b []byte) (id, txn uint64, kind byte, writes []write) {
	id, txn, kind = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), b[16]
	next := func() []byte {
		n, size := binary.Uvarint(b)
		part := b[size : size+int(n)]
		b = b[size+int(n):]
		return part
	}
	for b = b[17:]; len(b) > 0; {
		w := write{key: string(next())}
		if v := next(); len(v) > 0 {
			w.value = v
		}
		writes = append(writes, w)
	}
	return id, txn, kind, writes
}
