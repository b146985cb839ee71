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

// ParsePeers reads the value of a flag: "1=host:port,2=host:port".
func ParsePeers(flag, s string) (map[uint64]string, error) {
	peers := map[uint64]string{}
	var errs []error
	for part := range strings.SplitSeq(s, ",") {
		id, address, ok := strings.Cut(part, "=")
		n, err := strconv.ParseUint(id, 10, 64)
		switch {
		case !ok || err != nil:
			errs = append(errs, fmt.Errorf("--%s: %q, want id=host:port", flag, part))
		case peers[n] != "":
			errs = append(errs, fmt.Errorf("--%s: node %d is named twice (%s, %s)", flag, n, peers[n], address))
		default:
			peers[n] = address
		}
	}
	return peers, errors.Join(errs...)
}

// UntilEOF returns a context that ends when r does.
func UntilEOF(ctx context.Context, r io.Reader) context.Context {
	return Until(ctx, func() error {
		_, err := io.Copy(io.Discard, r)
		return err
	})
}

// Until returns a context that ends when standard input does, which read reads.
func Until(ctx context.Context, read func() error) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_ = read() // an error is an end, too
		cancel(errors.New("standard input ended"))
	}()
	return ctx
}
