// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import "github.com/weftraft/weft/raft/internal/extend"

// BeQuiet has a node count so many ticks as quiet ones, as if TickQuiesced had been called as often.
func BeQuiet(rn *RawNode, ticks int32) { rn.raft.quietTicks = ticks }

// TickInOrder is Tick with the effects of extensions carried out in another order. order gets
// what they are, by kind, and returns where each is to stand.
func TickInOrder(rn *RawNode, order func(kinds []string) []int) error {
	r := rn.raft
	r.role.tick()
	r.extension.Tick()
	return r.inOrder(order)
}

var kinds = map[extend.Do]string{extend.Append: "append", extend.Retry: "retry", extend.Refuse: "refuse"}

func (r *raft) inOrder(order func(kinds []string) []int) error {
	effects := r.extension.Asked()
	var names []string
	for _, e := range effects {
		names = append(names, kinds[e.Do])
	}
	for _, i := range order(names) {
		r.do(effects[i])
	}
	r.settle()
	if c := r.coding(); c != nil {
		return c.Broken()
	}
	return nil
}
