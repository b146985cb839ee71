// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package files

import "io"

// maxIdleReads is how often a reader may return nothing at all.
const maxIdleReads = 100

// Fill reads until buf is full or the reader ends, and reports which. Unlike io.ReadFull it
// tells an end from a failure: a reader that fails with io.ErrUnexpectedEOF, as the file
// below is cut off, has not ended.
func Fill(r io.Reader, buf []byte) (n int, ended bool, err error) {
	for idle := 0; n < len(buf); {
		k, err := r.Read(buf[n:])
		n += k
		if err == io.EOF {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
		if idle++; k > 0 {
			idle = 0
		}
		if idle == maxIdleReads {
			return n, false, io.ErrNoProgress
		}
	}
	return n, false, nil
}
