// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// Keyring has the credentials of a node, and reads the files again when they
// change. Its methods may be called from several goroutines.
type Keyring struct {
	files Files

	mu      sync.Mutex
	current *Credentials
	seen    [3]os.FileInfo // of the files that current is from
}

// NewKeyring reads the files.
func NewKeyring(files Files) (*Keyring, error) {
	k := &Keyring{files: files}
	_, err := k.Current()
	if err != nil {
		return nil, err
	}
	return k, nil
}

// Current returns the credentials in the files. If these are no good now, as
// when one of two has been replaced, it returns those that were good before, and
// the error beside them. It looks at the files' times each time, and reads them
// when one has changed.
func (k *Keyring) Current() (*Credentials, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var found [3]os.FileInfo
	same := k.current != nil
	for i, name := range []string{k.files.Cert, k.files.Key, k.files.CA} {
		info, err := os.Stat(name)
		if err != nil {
			same = false // Load says it better
			continue
		}
		found[i] = info
		old := k.seen[i]
		same = same && os.SameFile(old, info) && old.ModTime().Equal(info.ModTime()) && old.Size() == info.Size()
	}
	if same {
		return k.current, nil
	}
	c, err := k.files.Load(time.Now())
	if err == nil && k.current != nil && c.Identity != k.current.Identity {
		err = fmt.Errorf("%w: certificate file %s is for %v, the one in use is for %v", ErrInvalid, k.files.Cert, c.Identity, k.current.Identity)
	}
	if err != nil {
		return k.current, err
	}
	k.current, k.seen = c, found
	return c, nil
}
