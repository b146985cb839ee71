// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ParsePeers reads the flag --peers, "1=host:port,2=host:port", with ids of 1 or more. An error names the part that is wrong.
func ParsePeers(s string) (map[uint64]string, error) {
	peers := map[uint64]string{}
	for part := range strings.SplitSeq(s, ",") {
		id, address, ok := strings.Cut(part, "=")
		n, err := strconv.ParseUint(id, 10, 64)
		if !ok || err != nil || n == 0 || peers[n] != "" {
			return nil, fmt.Errorf("--peers: %q, want id=host:port, each id once", part)
		}
		peers[n] = address
	}
	return peers, nil
}

// UntilEOF returns a context that ends when r does.
func UntilEOF(ctx context.Context, r io.Reader) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, r) // an error is an end, too
		cancel(errors.New("standard input ended"))
	}()
	return ctx
}
