// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

// replica is the state of a range at one machine.
type replica struct {
	rows    map[string][]byte
	intents map[uint64][]write // by transaction
	deaf    bool               // to resolve: a planted bug
}

// bug is planted, for tests of the checks.
type bug int

const (
	noBug bug = iota
	// lostIntents: the intents of one range are not resolved.
	lostIntents
	// noLocks: locks are had at once.
	noLocks
	// deafReplica: a replica leaves an entry out.
	deafReplica
)

// apply applies a committed entry, and returns its id.
func (r *replica) apply(data []byte) uint64 {
	id, txn, kind, writes := parse(data)
	switch kind {
	case intents:
		r.intents[txn] = writes
		return id
	case resolve:
		writes = r.intents[txn]
		delete(r.intents, txn)
		if r.deaf {
			return id
		}
	}
	for _, w := range writes {
		if w.value == nil {
			delete(r.rows, w.key)
		} else {
			r.rows[w.key] = w.value
		}
	}
	return id
}

func (r *replica) get(k string) []int64 { return numbers(r.rows[k]) }
