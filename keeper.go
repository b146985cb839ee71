// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

// keep is the node's own goroutine.
func (n *Node) keep() { <-n.context.Done() }
